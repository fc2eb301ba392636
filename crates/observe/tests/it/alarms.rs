//! Alarms: raised once, ended once, and told to all that ask.

use ganger_observe::{AlarmChange, Alarms, Kind};
use ganger_proc_api::{Message, Process, actor_fn, process_fn};
use ganger_sched::{Address, Observe, Scheduler};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Starts a scheduler with a process, which hands each change on.
pub(crate) fn subscriber() -> (Scheduler, Address<AlarmChange>, Receiver<AlarmChange>) {
    let scheduler = Scheduler::builder().workers(1).start().unwrap();
    let (tell, told) = channel();
    let process = actor_fn(move |_, change: AlarmChange, _| {
        let _is_read = tell.send(change);
        Ok(())
    });
    let address = scheduler.spawn(process).unwrap().address().clone();
    (scheduler, address, told)
}

/// Takes all messages.
fn takes() -> impl Process {
    process_fn(|_, events, _| {
        let _taken = events.count();
        Ok(())
    })
}

fn fails() -> impl Process {
    process_fn(|_, _, _| Err("it fails".into()))
}

/// Waits for the next change; returns its kind's name and whether it is raised.
#[track_caller]
pub(crate) fn next(told: &Receiver<AlarmChange>) -> (&'static str, bool) {
    match told.recv_timeout(PATIENCE).expect("a change") {
        AlarmChange::Raised(alarm) => (alarm.kind.name(), true),
        AlarmChange::Ended(alarm) => (alarm.kind.name(), false),
        other => panic!("{other:?}"),
    }
}

// pins: V16
#[test]
fn a_long_mailbox_raises_an_alarm_once_until_it_is_short_or_its_process_ends() {
    let (_scheduler, address, told) = subscriber();
    let builder = Scheduler::builder().workers(1).observe(Observe::Counts);
    let scheduler = builder.build().unwrap();
    let alarms = Alarms::new().limits(Kind::Mailbox, 200, 150);
    // The end of a process with messages makes dead letters.
    let alarms = alarms.without(Kind::DeadLetters);
    let mut looker = alarms.tell(address).looker(&scheduler);
    let [one, two] = [0, 1].map(|_| scheduler.spawn(takes()).unwrap());
    let send = |count| {
        for _ in 0..count {
            one.send(Message::new("n", ())).unwrap();
        }
    };
    send(199);
    looker.look();
    assert!(looker.raised().is_empty());
    send(1);
    looker.look();
    let raised = looker.raised();
    let [alarm] = &*raised else {
        panic!("{raised:?}");
    };
    assert_eq!((alarm.kind, alarm.pid), (Kind::Mailbox, Some(one.pid())));
    assert_eq!(
        (alarm.value, alarm.limit, alarm.is_severe),
        (200, 200, false)
    );
    let text = format!(
        "the mailbox of {} holds 200 messages; the limit is 200",
        one.pid()
    );
    assert_eq!(alarm.text, text);
    send(300);
    looker.look();
    assert_eq!(looker.raised(), raised);
    assert_eq!(
        told.recv_timeout(PATIENCE),
        Ok(AlarmChange::Raised(alarm.clone()))
    );
    for _ in 0..200 {
        two.send(Message::new("n", ())).unwrap();
    }
    looker.look();
    let second = looker.raised().remove(1);
    assert!(second.pid == Some(two.pid()) && second.number > alarm.number);
    let raised = AlarmChange::Raised(second.clone());
    assert_eq!(told.recv_timeout(PATIENCE), Ok(raised));
    scheduler.terminate(two.pid()).unwrap();
    scheduler.start().unwrap();
    two.wait();
    while scheduler.look_at(one.pid(), |it| it.counts().unwrap().waiting) != Some(0) {
        std::thread::yield_now();
    }
    looker.look();
    // The first process has a short mailbox again, and the second process has ended.
    let ended: Vec<_> = (0..2)
        .map(|_| told.recv_timeout(PATIENCE).unwrap())
        .collect();
    for over in [alarm.clone(), second] {
        assert!(ended.contains(&AlarmChange::Ended(over)), "{ended:?}");
    }
    assert!(looker.raised().is_empty());
    looker.look();
    drop(looker);
    assert_eq!(told.try_recv().ok(), None, "each is told once");
}

// pins: V16
#[test]
fn rates_and_growth_raise_alarms_and_their_kinds_can_be_left_out() {
    let (_scheduler, address, told) = subscriber();
    let builder = Scheduler::builder().workers(1).quiet_failures();
    let scheduler = builder.start().unwrap();
    let alarms = Alarms::new().limits(Kind::Failures, 1, 1);
    let alarms = alarms
        .looks(Kind::Failures, 1, 1)
        .looks(Kind::TypeGrowth, 2, 1);
    let alarms = alarms
        .limits(Kind::TypeGrowth, 20, 10)
        .without(Kind::LongStep);
    let mut looker = alarms.tell(address).looker(&scheduler);
    looker.look();
    for _ in 0..1_000 {
        scheduler.spawn(fails()).unwrap().wait();
    }
    looker.look();
    assert_eq!(next(&told), ("failures", true));
    looker.look();
    assert_eq!(next(&told), ("failures", false));
    let mut live = Vec::new();
    for _ in 0..3 {
        live.extend((0..20).map(|_| scheduler.spawn(takes()).unwrap()));
        looker.look();
    }
    assert_eq!(next(&told), ("type_growth", true));
    let alarm = &looker.raised()[0];
    assert!(
        alarm.text.contains("takes") && alarm.pid.is_none(),
        "{alarm:?}"
    );
    for process in live.split_off(40) {
        scheduler.terminate(process.pid()).unwrap();
        process.wait();
    }
    looker.look();
    assert_eq!(next(&told), ("type_growth", false));
}

// pins: V16
#[test]
fn a_thread_looks_once_a_period_and_the_programs_own_values_have_alarms() {
    let (_scheduler, address, told) = subscriber();
    let scheduler = Scheduler::builder().workers(1).start().unwrap();
    let value = Arc::new(AtomicU64::new(0));
    let read = Arc::clone(&value);
    // Ordering: Relaxed here and below: a value alone.
    let own = move |_: &_| read.load(Ordering::Relaxed);
    let alarms = Alarms::new().custom("backlog", 10, 5, own).tell(address);
    let watch = alarms
        .every(Duration::from_millis(1))
        .watch(&scheduler)
        .unwrap();
    for _ in 0..3 {
        value.store(10, Ordering::Relaxed);
        assert_eq!(next(&told), ("backlog", true));
        // Between the limits nothing changes.
        value.store(5, Ordering::Relaxed);
        let silence = told.recv_timeout(Duration::from_millis(20));
        assert_eq!(silence, Err(RecvTimeoutError::Timeout));
        assert_eq!(watch.raised().len(), 1);
        value.store(4, Ordering::Relaxed);
        assert_eq!(next(&told), ("backlog", false));
    }
    value.store(10, Ordering::Relaxed);
    assert_eq!(next(&told), ("backlog", true));
    // The end of the watch is the end of its alarms.
    drop(watch);
    assert!(Alarms::new().looker(&scheduler).raised().is_empty());
}

// pins: V16
#[cfg(feature = "serve")]
#[test]
fn the_endpoint_shows_alarms_and_is_not_ready_while_a_severe_one_is_raised() {
    use crate::endpoint::support::{ask, get};
    use ganger_observe::api::Snapshot;
    use ganger_observe::serve;

    let builder = Scheduler::builder().workers(1).max_processes(10);
    let scheduler = builder.start().unwrap();
    let endpoint = serve("127.0.0.1:0").scheduler(&scheduler).start().unwrap();
    let secret = "0123456789abcdef";
    let guarded = serve("127.0.0.1:0").scheduler(&scheduler).token(secret);
    let guarded = guarded.start().unwrap();
    let mut looker = Alarms::new().looker(&scheduler);
    let mut live: Vec<_> = (0..8).map(|_| scheduler.spawn(takes()).unwrap()).collect();
    looker.look();
    get(&endpoint, "/readyz").refuses(200, "ready");
    live.push(scheduler.spawn(takes()).unwrap());
    looker.look();
    let text = "90 % of the processes that may be alive are";
    get(&endpoint, "/readyz").refuses(503, text);
    // A stranger learns of an alarm, and not of its subject.
    let answer = get(&guarded, "/readyz");
    answer.refuses(
        503,
        "the scheduler main has an alarm: ask with the token for more",
    );
    assert!(!answer.body.contains(text));
    let token = format!("authorization: Bearer {secret}");
    ask(&guarded, "GET", "/readyz", &[&token]).refuses(503, text);
    let snapshot: Snapshot = get(&endpoint, "/api/v1/snapshot").json();
    let [alarm] = &*snapshot.schedulers[0].alarms else {
        panic!("{snapshot:?}");
    };
    assert_eq!(
        (&*alarm.kind, alarm.is_severe, alarm.value),
        ("processes", true, 90)
    );
    let metrics = get(&endpoint, "/metrics").body;
    for line in [
        "ganger_alarm_raised{scheduler=\"main\",kind=\"processes\"} 1\n",
        "ganger_alarm_count_total{scheduler=\"main\",kind=\"processes\"} 1\n",
        "ganger_alarm_raised{scheduler=\"main\",kind=\"mailbox\"} 0\n",
    ] {
        assert!(metrics.contains(line), "{line}{metrics}");
    }
    for process in live.split_off(7) {
        scheduler.terminate(process.pid()).unwrap();
        process.wait();
    }
    looker.look();
    get(&endpoint, "/readyz").refuses(200, "ready");
    // The program can make another alarm severe, and this alarm not severe.
    drop(looker);
    let alarms = Alarms::new().severe(Kind::Processes, false);
    let mut looker = alarms.limits(Kind::Processes, 50, 50).looker(&scheduler);
    looker.look();
    assert_eq!(looker.raised().len(), 1);
    get(&endpoint, "/readyz").refuses(200, "ready");
}
