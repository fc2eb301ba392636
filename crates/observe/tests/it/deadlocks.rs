//! Alarms about deadlocks of processes, and about restarted children.

use crate::alarms::{PATIENCE, next, subscriber};
use ganger_lock::{Barrier, Mutex};
use ganger_observe::{Alarms, Kind, Observer, Party};
use ganger_proc_api::{Pid, actor_fn, process_fn};
use ganger_sched::{Handle, ProcessHandle, Scheduler};
use ganger_supervise::{ChildSpec, Supervisor};
use ganger_task::Cx;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Starts a task that takes its lock, meets the other task, and takes the other task's lock.
fn take_both(
    (scheduler, pid): (&Handle, &str),
    locks: &Arc<[Mutex<()>; 2]>,
    meet: &Arc<Barrier>,
    own: usize,
) -> ProcessHandle {
    let (locks, meet) = (Arc::clone(locks), Arc::clone(meet));
    let body = async move |cx: Cx| {
        let _first = locks[own].lock().await.map_err(|it| it.to_string())?;
        meet.wait().await;
        let second = cx.until_cancelled(locks[1 - own].lock()).await?;
        drop(second);
        Ok(())
    };
    let task = ganger_task::process(body);
    let pid: Pid = pid.parse().unwrap();
    scheduler.submit_as(pid, task, "main", ()).unwrap()
}

/// Starts two tasks that lock two mutexes in opposite order, and waits until both wait.
fn embrace(schedulers: [&Handle; 2], pids: [&str; 2]) -> [ProcessHandle; 2] {
    let (locks, meet) = (Arc::default(), Arc::new(Barrier::new(2)));
    let both = [0, 1].map(|own| take_both((schedulers[own], pids[own]), &locks, &meet, own));
    let parties = [0, 1].map(|it| Party::Process(both[it].pid(), schedulers[it].number()));
    let begun = Instant::now();
    loop {
        let seen = Observer::of(schedulers[0]).waits();
        let is_it = |cycle: &Vec<usize>| {
            let waiters = cycle.iter().map(|it| seen.waits[*it].waiter);
            waiters.filter(|it| parties.contains(it)).count() == 2
        };
        if seen.cycles.iter().any(is_it) {
            return both;
        }
        assert!(begun.elapsed() < PATIENCE, "{seen:?}");
        std::thread::yield_now();
    }
}

/// Lets the first process give up, and the second process go on.
fn part(scheduler: &Handle, [one, other]: [ProcessHandle; 2]) {
    scheduler.cancel(one.pid(), "a deadlock").unwrap();
    drop(one.wait());
    assert!(other.wait().is_done());
}

fn scheduler(host: &str) -> Scheduler {
    let builder = Scheduler::builder().host(host).workers(2);
    builder.quiet_failures().start().unwrap()
}

// pins: V16
#[test]
fn a_deadlock_raises_a_severe_alarm_at_the_second_look_once_and_ends_with_it() {
    let (_scheduler, address, told) = subscriber();
    let scheduler = scheduler("embrace");
    let mut looker = Alarms::new().deadlocks().tell(address).looker(&scheduler);
    looker.look();
    let first = embrace([&scheduler; 2], ["{embrace|7}", "{embrace|8}"]);
    looker.look();
    part(&scheduler, first);
    // Two further processes wait for each other: a look has seen them once.
    let both = embrace([&scheduler; 2], ["{embrace|7}", "{embrace|8}"]);
    looker.look();
    assert!(looker.raised().is_empty());
    looker.look();
    let raised = looker.raised();
    let [alarm] = &*raised else {
        panic!("{raised:?}");
    };
    assert_eq!((alarm.kind, alarm.is_severe), (Kind::Deadlock, true));
    assert_eq!((alarm.value, alarm.limit), (2, 1));
    let [one, other] = both.each_ref().map(ProcessHandle::pid);
    for (waiter, owner) in [(one, other), (other, one)] {
        let begins = |it: &&str| it.trim_start().starts_with(&format!("{waiter} ("));
        let text = alarm.text.strip_prefix("a deadlock:").unwrap();
        let line = text.split(';').find(begins).expect("its wait");
        assert!(line.contains("waits for the mutex"), "{line}");
        assert!(line.contains(&format!("which {owner} (")), "{line}");
    }
    looker.look();
    assert_eq!(looker.raised(), raised);
    assert_eq!(next(&told), ("deadlock", true));
    part(&scheduler, both);
    looker.look();
    assert_eq!(next(&told), ("deadlock", false));
    assert!(looker.raised().is_empty());
    drop(looker);
    assert_eq!(told.try_recv().ok(), None, "each is told once");
}

// pins: V16
#[test]
fn schedulers_of_the_same_host_have_the_alarms_of_their_own_processes() {
    let all = [0; 3].map(|_| scheduler("twin"));
    let mut lookers = [0, 1, 2].map(|it| Alarms::new().deadlocks().looker(&all[it]));
    let idle = || process_fn(|_, _, _| Ok(()));
    let bystander = all[2].submit_as("{twin|7}".parse().unwrap(), idle(), "main", ());
    let bystander = bystander.unwrap();
    let both = embrace([&all[0], &all[1]], ["{twin|7}"; 2]);
    let pids: [Pid; 3] = [both[0].pid(), both[1].pid(), bystander.pid()];
    assert_eq!(pids, [pids[0]; 3], "the PIDs are the same");
    for looker in &mut lookers {
        looker.look();
        looker.look();
    }
    for (own, looker) in lookers[..2].iter().enumerate() {
        let raised = looker.raised();
        assert_eq!((raised.len(), raised[0].kind), (1, Kind::Deadlock));
        let other = format!("of scheduler {}", all[1 - own].number());
        assert!(raised[0].text.contains(&other), "{}", raised[0].text);
    }
    assert!(lookers[2].raised().is_empty());
    part(&all[0], both);
    lookers.iter_mut().for_each(|it| it.look());
    assert!(lookers.iter().all(|it| it.raised().is_empty()));
}

// pins: V16
#[test]
fn a_child_that_restarts_again_and_again_raises_an_alarm() {
    let (_scheduler, address, told) = subscriber();
    let scheduler = scheduler("restarts");
    let child = ChildSpec::new("r", || actor_fn(|_, (): (), _| Err("no luck".into())));
    let tree = Supervisor::one_for_one().label("root");
    let tree = tree.intensity(1_000, Duration::from_secs(1));
    let tree = tree.with(child.in_place()).start(&scheduler).unwrap();
    let fail = |times: u64| {
        let before = tree.children()[0].restarts;
        for _ in 0..times {
            tree.address::<()>("r").unwrap().send(()).unwrap();
        }
        let begun = Instant::now();
        while tree.children()[0].restarts < before + times {
            assert!(begun.elapsed() < PATIENCE);
            std::thread::yield_now();
        }
    };
    let alarms = Alarms::new().without(Kind::Failures).tell(address);
    // A late thread of a busy machine is no part of this.
    let alarms = alarms.without(Kind::WorkersBusy).without(Kind::LongStep);
    let mut looker = alarms.looker(&scheduler);
    // The failures before the first look do not count.
    fail(5);
    looker.look();
    fail(2);
    looker.look();
    assert!(looker.raised().is_empty());
    fail(1);
    looker.look();
    assert_eq!(next(&told), ("restarts", true));
    let alarm = &looker.raised()[0];
    let text = "r of root has restarted 3 times, the last time after: failed: no luck; \
                the limit is 3";
    assert_eq!((&*alarm.text, alarm.is_severe), (text, false));
    // Nine looks later the last restart still counts.
    for _ in 0..9 {
        looker.look();
        assert_eq!(looker.raised().len(), 1);
    }
    looker.look();
    assert_eq!(next(&told), ("restarts", false));
    drop(looker);
    assert_eq!(told.try_recv().ok(), None, "each is told once");
}
