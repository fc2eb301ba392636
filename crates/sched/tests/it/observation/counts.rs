//! The counts and measures of an observed scheduler, and looks during its work.

use crate::support::*;
use ganger_proc_api::{
    Command, CommandId, Completer, Context, Events, Message, Pid, StepOutput, StepResult,
};
use ganger_sched::{
    ContextExt, NotAllowed, Observe, ProcessCounts, ProcessHandle, ProcessState, Scheduler, Wait,
};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

const KEPT: CommandId = CommandId::new(256);

fn observed(level: Observe) -> Scheduler {
    Scheduler::builder()
        .workers(1)
        .observe(level)
        .build()
        .unwrap()
}

fn counts(scheduler: &Scheduler, pid: Pid) -> ProcessCounts {
    let mut found = None;
    scheduler.each_process(|it| {
        if it.pid() == pid {
            found = it.counts();
        }
    });
    found.expect("it lives and is observed")
}

fn waits(scheduler: &Scheduler, pid: Pid) -> Vec<Wait> {
    let mut found = Vec::new();
    scheduler.each_process(|it| {
        if it.pid() == pid {
            it.each_wait(|wait| found.push(wait));
        }
    });
    found
}

fn takes_all(_: &Context, events: &mut Events<'_>, _: &mut StepOutput) -> StepResult {
    let _taken = events.count();
    Ok(())
}

fn message() -> Message {
    Message::new("n", ())
}

// pins: V4
#[test]
fn without_observation_there_is_nothing_to_see_and_nothing_to_turn_on() {
    let scheduler = observed(Observe::Off);
    let process = scheduler
        .spawner()
        .labelled("x")
        .submit(waiter(), "main", ());
    let process = process.unwrap();
    scheduler.each_process(|it| {
        assert_eq!((it.pid(), it.counts()), (process.pid(), None));
        assert_eq!(it.label(), None);
    });
    assert_eq!(scheduler.observes(), Observe::Off);
    assert_eq!(scheduler.events(), None);
    assert!(scheduler.worker_times().is_empty() && scheduler.distributions().is_none());
    let NotAllowed { level, most, .. } = scheduler.set_observe(Observe::Counts).unwrap_err();
    assert_eq!((level, most), (Observe::Counts, Observe::Off));
    scheduler.set_observe(Observe::Off).unwrap();
}

// pins: V4
#[test]
fn a_level_changes_below_the_one_of_the_builder() {
    let scheduler = observed(Observe::Histograms);
    assert_eq!(scheduler.observes(), Observe::Histograms);
    scheduler.set_observe(Observe::Counts).unwrap();
    assert_eq!(scheduler.observes(), Observe::Counts);
    let refused = scheduler.set_observe(Observe::Off).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("built with `observe(Histograms)`")
    );
    let scheduler = observed(Observe::Counts);
    assert!(scheduler.set_observe(Observe::Histograms).is_err());
}

/// Checks the counts of a process that takes its only event, and of a process that takes its first
/// event alone.
// pins: V5
#[test]
fn turns_steps_and_events_are_counted_one_by_one() {
    let scheduler = observed(Observe::Counts);
    let takes = scheduler.submit(process(takes_all), "takes", ());
    let takes = takes.unwrap();
    let leaves = process(|_, events, out| {
        let _first = events.next();
        if !events.is_empty() {
            out.step_again();
        }
        Ok(())
    });
    let leaves = scheduler.submit(leaves, "leaves", ()).unwrap();
    for _ in 0..10 {
        takes.send(message()).unwrap();
        leaves.send(message()).unwrap();
    }
    assert_eq!(counts(&scheduler, takes.pid()).waiting, 10);
    scheduler.start().unwrap();
    let idle = |pid| scheduler.process(pid).unwrap().state == ProcessState::Idle;
    until("both wait", || idle(takes.pid()) && idle(leaves.pid()));
    let seen = counts(&scheduler, takes.pid());
    assert_eq!(
        (seen.turns, seen.steps, seen.events, seen.waiting),
        (1, 1, 10, 0)
    );
    let seen = counts(&scheduler, leaves.pid());
    // A left event is not new.
    assert_eq!((seen.events, seen.waiting, seen.steps), (10, 0, 10));
    assert_eq!(seen.turns, 10);
    takes.send(message()).unwrap();
    until("it has taken the message", || {
        counts(&scheduler, takes.pid()).turns == 2
    });
    until("it waits", || idle(takes.pid()));
    assert_eq!(counts(&scheduler, takes.pid()).events, 11);
    assert_eq!(scheduler.events(), Some(21));
}

// pins: V5
#[test]
fn what_waits_behind_a_stuck_step_is_counted() {
    let scheduler = observed(Observe::Counts);
    let goes_on = Arc::new(AtomicBool::new(false));
    let may = Arc::clone(&goes_on);
    let stuck = process(move |ctx, events, out| {
        until("it may go on", || may.load(Ordering::SeqCst));
        takes_all(ctx, events, out)
    });
    let stuck = scheduler.submit(stuck, "stuck", ()).unwrap();
    scheduler.start().unwrap();
    let state = || scheduler.process(stuck.pid()).unwrap().state;
    until("it runs", || state() == ProcessState::Running);
    let senders: Vec<_> = (0..4)
        .map(|_| {
            let address = ganger_sched::Address::from(&stuck);
            thread::spawn(move || {
                for _ in 0..250 {
                    address.send(message()).unwrap();
                }
            })
        })
        .collect();
    senders.into_iter().for_each(|it| it.join().unwrap());
    assert_eq!(counts(&scheduler, stuck.pid()).waiting, 1_000);
    goes_on.store(true, Ordering::SeqCst);
    until("it has taken all", || {
        counts(&scheduler, stuck.pid()).events == 1_000
    });
    until("nothing waits", || {
        counts(&scheduler, stuck.pid()).waiting == 0
    });
}

// pins: V8
#[test]
fn a_label_goes_to_the_children_that_are_started_after_it() {
    let scheduler = observed(Observe::Counts);
    let parent = process(|ctx, _, out| {
        ctx.submit(waiter(), "first", ())?;
        ctx.set_label("later");
        ctx.submit(waiter(), "second", ())?;
        ctx.spawner()
            .labelled("own")
            .submit(waiter(), "third", ())?;
        ctx.spawner().monitored(1).submit(waiter(), "fourth", ())?;
        out.defer_cancel();
        Ok(())
    });
    drop(
        scheduler
            .spawner()
            .labelled("tenant")
            .submit(parent, "parent", ()),
    );
    drop(scheduler.submit(waiter(), "stranger", ()).unwrap());
    scheduler.start().unwrap();
    until("all are started", || scheduler.stats().live == 6);
    let mut labels = Vec::new();
    scheduler.each_process(|it| labels.push((it.method().to_string(), it.label())));
    labels.sort_unstable();
    let labels: Vec<_> = labels
        .iter()
        .map(|(of, it)| (&**of, it.as_deref()))
        .collect();
    let expected = [
        ("first", Some("tenant")),
        ("fourth", Some("later")),
        ("parent", Some("later")),
        ("second", Some("later")),
        ("stranger", None),
        ("third", Some("own")),
    ];
    assert_eq!(labels, expected);
}

/// Uses a cell again for the next process.
// pins: V5, V8
#[test]
fn a_process_begins_with_nothing_of_the_one_before() {
    let scheduler = observed(Observe::Counts);
    scheduler.start().unwrap();
    let (tell, told) = mpsc::channel();
    // Processes started and ended by workers have cells of earlier processes.
    let parent = process(move |ctx, events, _| {
        for _ in 0..events.count() {
            let ends = process(|_, events, out| {
                if events.count() > 0 {
                    out.done(());
                }
                Ok(())
            });
            let labelled = ctx.spawner().labelled("x");
            ctx.send(labelled.submit(ends, "ends", ())?, "n", ())?;
            tell.send(ctx.spawner().submit(waiter(), "next", ())?)?;
        }
        Ok(())
    });
    let parent = scheduler.submit(parent, "parent", ()).unwrap();
    for _ in 0..100 {
        parent.send(message()).unwrap();
        let next = told.recv_timeout(PATIENCE).unwrap();
        until_state(&scheduler, next, ProcessState::Idle);
        until("the turn is over", || counts(&scheduler, next).turns > 0);
        let seen = counts(&scheduler, next);
        assert_eq!(
            (seen.turns, seen.steps, seen.events, seen.waiting),
            (1, 1, 0, 0)
        );
        until("the labelled process is over", || {
            scheduler.stats().live == 2
        });
        scheduler.each_process(|it| assert_eq!(it.label(), None));
        scheduler.terminate(next).unwrap();
        until("the next process is over", || scheduler.stats().live == 1);
    }
}

// pins: V7
#[test]
fn a_process_that_waits_says_for_what_and_since_when() {
    let scheduler = observed(Observe::Counts);
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&kept);
    let handler = move |_: Command, completer: Completer| {
        keep.lock().unwrap().push(completer);
        Ok(())
    };
    scheduler.register(KEPT, "kept", handler).unwrap();
    scheduler.start().unwrap();
    let asks = process(|_, events, out| {
        if events.count() == 0 {
            out.yield_command(Command::new(KEPT, ()), 7);
            out.sleep(Duration::from_secs(3_600), 8);
            out.yield_command(Command::new(KEPT, ()), 9);
        }
        Ok(())
    });
    let asks = scheduler.submit(asks, "asks", ()).unwrap();
    until_state(&scheduler, asks.pid(), ProcessState::Blocked);
    let seen = || {
        let mut seen = waits(&scheduler, asks.pid());
        seen.sort_unstable_by_key(|it| it.tag);
        seen
    };
    let names = |waits: &[Wait]| -> Vec<_> {
        let name = |it: &Wait| (it.tag, it.name.map(|name| name.to_string()));
        waits.iter().map(name).collect()
    };
    until("all are outstanding", || seen().len() == 3);
    let all = seen();
    assert_eq!(all[0].command, Some(KEPT));
    assert_eq!(names(&all)[0], (7, Some("kept".into())));
    assert!(
        names(&all)[1]
            .1
            .as_deref()
            .is_some_and(|it| it.contains("sleep")),
        "{all:?}"
    );
    assert!(all.iter().all(|it| it.since < PATIENCE));
    until("time passes", || {
        seen()[0].since >= Duration::from_millis(4)
    });
    kept.lock().unwrap().swap_remove(0).complete(());
    until("the first is over", || seen().len() == 2);
    assert_eq!(
        names(&seen()),
        [(8, names(&all)[1].1.clone()), (9, Some("kept".into()))]
    );
    kept.lock().unwrap().clear();
    // For a process with a sleep as its only wait.
    let sleeps = process(|_, events, out| {
        if events.count() == 0 {
            out.sleep(Duration::from_secs(3_600), 1);
        }
        Ok(())
    });
    let sleeps = scheduler.submit(sleeps, "sleeps", ()).unwrap();
    until_state(&scheduler, sleeps.pid(), ProcessState::Blocked);
    let seen = waits(&scheduler, sleeps.pid());
    assert_eq!(names(&seen), [(1, names(&all)[1].1.clone())]);
}

/// Looks at processes while they take messages. The reader wakes the process for events that come
/// during a look.
// pins: V6
#[test]
fn looks_lose_no_message() {
    const MESSAGES: usize = 20_000;
    let scheduler = Scheduler::builder().workers(2).observe(Observe::Histograms);
    let scheduler = scheduler.start().unwrap();
    let taken = Arc::new(AtomicUsize::new(0));
    let all: Vec<_> = (0..4)
        .map(|_| {
            let taken = Arc::clone(&taken);
            let takes = process(move |_, events, out| {
                taken.fetch_add(events.count(), Ordering::SeqCst);
                out.defer_cancel();
                Ok(())
            });
            scheduler.submit(takes, "takes", ()).unwrap()
        })
        .collect();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let looker = scope.spawn(|| {
            let mut seen: HashMap<_, ProcessCounts> = HashMap::new();
            while !is_over.load(Ordering::SeqCst) {
                scheduler.each_process(|it| {
                    it.each_wait(|wait| panic!("it waits for nothing: {wait:?}"));
                    let now = it.counts().unwrap();
                    let before = seen.insert(it.pid(), now);
                    if let Some(before) = before {
                        assert!(before.steps <= now.steps && before.events <= now.events);
                        assert!(before.busy <= now.busy && before.age <= now.age);
                    }
                });
                drop(scheduler.distributions());
                drop(scheduler.worker_times());
            }
        });
        for _ in 0..MESSAGES {
            all.iter().for_each(|it| it.send(message()).unwrap());
        }
        until("all are taken", || {
            taken.load(Ordering::SeqCst) == 4 * MESSAGES
        });
        is_over.store(true, Ordering::SeqCst);
        looker.join().unwrap();
    });
    for process in &all {
        until("it waits", || {
            counts(&scheduler, process.pid()).waiting == 0
        });
        assert_eq!(counts(&scheduler, process.pid()).events, MESSAGES as u64);
    }
    let total = scheduler.stats().total;
    let mut sums = (0, 0);
    scheduler.each_process(|it| {
        let counts = it.counts().unwrap();
        sums = (sums.0 + counts.turns, sums.1 + counts.steps);
    });
    assert_eq!(sums, (total.turns, total.steps));
    let seen = scheduler.distributions().unwrap();
    assert!(
        seen.step.len() >= total.steps / 64 / 2,
        "{seen:?} of {total:?}"
    );
}

// pins: V5
#[test]
fn steps_waits_and_timers_are_measured() {
    let scheduler = observed(Observe::Histograms);
    let busy = process(|_, events, out| {
        let (_taken, start) = (events.count(), std::time::Instant::now());
        while start.elapsed() < Duration::from_micros(50) {}
        out.defer_cancel();
        out.step_again();
        Ok(())
    });
    let busy = scheduler.submit(busy, "busy", ()).unwrap();
    scheduler.start().unwrap();
    until("it has had many steps", || {
        counts(&scheduler, busy.pid()).steps > 1_000
    });
    for _ in 0..200 {
        busy.send(message()).unwrap();
    }
    until("its events are taken", || {
        counts(&scheduler, busy.pid()).events == 200
    });
    let _timer = scheduler.send_after(
        Duration::from_millis(1),
        ganger_proc_api::Envelope::new(busy.pid(), busy.pid(), "n", ()),
    );
    until("the timer has fired", || {
        counts(&scheduler, busy.pid()).events == 201
    });
    let seen = scheduler.distributions().unwrap();
    let counted = counts(&scheduler, busy.pid());
    assert!(seen.step.min() >= 40_000, "a step takes 50 us: {seen:?}");
    assert!(
        !seen.mail.is_empty() && seen.ready.len() >= 10 && !seen.timer.is_empty(),
        "{seen:?}"
    );
    let (_, of) = seen
        .by_type
        .iter()
        .find(|(name, _)| name.contains("FnProcess"))
        .unwrap();
    assert_eq!(
        (of.step.len(), of.ready.len()),
        (seen.step.len(), seen.ready.len())
    );
    // An estimate, but of many alike.
    let least = Duration::from_micros(50) * u32::try_from(counted.steps / 2).unwrap();
    assert!(
        counted.busy > least && counted.longest >= Duration::from_micros(50),
        "{counted:?}"
    );
    let [times] = scheduler.worker_times()[..] else {
        panic!("there is one worker");
    };
    assert!(times.busy > Duration::from_millis(40), "{times:?}");
    // Nothing more is measured, and counting goes on.
    scheduler.set_observe(Observe::Counts).unwrap();
    until("it has gone on", || {
        counts(&scheduler, busy.pid()).steps > counted.steps + 200
    });
    let before = scheduler.distributions().unwrap().step.len();
    let steps = counts(&scheduler, busy.pid()).steps;
    until("it has gone on", || {
        counts(&scheduler, busy.pid()).steps > steps + 200
    });
    assert_eq!(scheduler.distributions().unwrap().step.len(), before);
}

// pins: V5
#[test]
fn a_window_shows_what_each_process_has_done_in_it() {
    let scheduler = observed(Observe::Counts);
    let takes = || scheduler.submit(process(takes_all), "takes", ()).unwrap();
    let (old, quiet) = (takes(), takes());
    scheduler.start().unwrap();
    let has_taken = |it: &ProcessHandle, events| {
        until("it has taken them", || {
            counts(&scheduler, it.pid()).events == events
        });
    };
    (0..3).for_each(|_| old.send(message()).unwrap());
    has_taken(&old, 3);
    let (mut new, mut seen) = (None, Vec::new());
    let is_observed = scheduler.over_window(
        |it| it.counts().unwrap().events,
        || {
            (0..7).for_each(|_| old.send(message()).unwrap());
            has_taken(&old, 10);
            let started = takes();
            started.send(message()).unwrap();
            has_taken(&started, 1);
            new = Some(started);
        },
        |it, now, before| seen.push((it.pid(), now, before)),
    );
    assert!(is_observed);
    seen.sort_unstable();
    let new = new.unwrap();
    let mut expected = [(old.pid(), 10, 3), (quiet.pid(), 0, 0), (new.pid(), 1, 0)];
    expected.sort_unstable();
    assert_eq!(seen, expected);
    let nothing = observed(Observe::Off);
    let is_observed = nothing.over_window(|_| 0, || panic!("it waits"), |_, _, _| ());
    assert!(!is_observed);
}

// pins: V5
#[test]
fn a_worker_sleeps_where_there_is_nothing_to_do() {
    let scheduler = observed(Observe::Counts);
    scheduler.start().unwrap();
    until("it sleeps", || scheduler.stats().sleeping == 1);
    let asleep = || scheduler.worker_times()[0].asleep;
    let before = asleep();
    until("time passes", || {
        asleep() > before + Duration::from_millis(5)
    });
    let times = scheduler.worker_times()[0];
    assert!(times.busy < times.asleep, "{times:?}");
}

// pins: V15
#[test]
fn a_recorder_of_more_memory_than_there_is_is_refused_with_the_most_that_may_be() {
    let recorder = ganger_sched::Recorder::new().bytes(usize::MAX);
    let built = Scheduler::builder().workers(1).record(recorder).build();
    let text = built.map(drop).unwrap_err().to_string();
    assert!(text.contains("Recorder::bytes is"), "{text}");
    assert!(text.contains("it must be from 0 to"), "{text}");
}
