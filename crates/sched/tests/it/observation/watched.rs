//! The watchers of a process's end, as a reader finds them.

use crate::support::*;
use ganger_proc_api::{Context, ExitCause, Message, Pid, process_fn};
use ganger_sched::{ExitAction, Observe, ProcessState, Scheduler, Watcher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn observed() -> Scheduler {
    let builder = Scheduler::builder().workers(1).observe(Observe::Counts);
    builder.quiet_failures().start().unwrap()
}

/// The answer of an exit action about its watcher.
enum Says {
    Watches(Watcher),
    Nothing,
    Panics,
    IsOver,
}

impl ExitAction for Says {
    fn tell(self: Box<Self>, _: Pid, _: &ExitCause) {}

    fn watcher(&self) -> Option<Watcher> {
        match self {
            Self::Watches(watcher) => Some(*watcher),
            Self::Nothing => None,
            Self::Panics => panic!("it does not say"),
            Self::IsOver => Some(Watcher::Outside),
        }
    }

    fn is_over(&self) -> bool {
        matches!(self, Self::IsOver)
    }
}

fn watchers(scheduler: &Scheduler, pid: Pid, most: usize) -> Option<(Vec<Pid>, usize, usize)> {
    let found = scheduler.look_at(pid, |it| it.watchers(most)).unwrap();
    found.map(|it| (it.processes, it.outside, it.unseen))
}

/// Creates a process that watches, or ceases to watch, the process in the message.
fn monitors() -> impl ganger_proc_api::Process {
    process_fn(|ctx: &Context, events, _| {
        for event in events {
            let Ok(message) = event.into_message() else {
                continue;
            };
            let is_begun = message.topic == "watch";
            let pid = message.payloads.into_first().as_pid().ok_or("a PID")?;
            match is_begun {
                true => ctx.monitor(pid, 7)?,
                false => ctx.demonitor(pid, 7),
            }
        }
        Ok(())
    })
}

// pins: V10
#[test]
fn monitors_are_watchers_until_they_are_taken_back_or_end() {
    let scheduler = observed();
    let target = scheduler.submit(waiter(), "target", ()).unwrap().pid();
    let watch = [monitors(), monitors()].map(|it| scheduler.submit(it, "monitors", ()).unwrap());
    let found = || watchers(&scheduler, target, 100).map(|it| it.0);
    until("nothing watches", || found() == Some(Vec::new()));
    for it in &watch {
        it.send(Message::new("watch", target)).unwrap();
        until("it watches", || {
            found().is_some_and(|all| all.contains(&it.pid()))
        });
    }
    let [one, two] = watch;
    assert_eq!(found(), Some(vec![one.pid(), two.pid()]));
    let by = |pid| {
        scheduler
            .look_at(target, |it| it.watched_by(pid, 100))
            .unwrap()
    };
    assert_eq!(
        (by(one.pid()), by(two.pid()), by(target)),
        (Some(1), Some(1), Some(0))
    );
    one.send(Message::new("no more", target)).unwrap();
    until("it is taken back", || found() == Some(vec![two.pid()]));
    scheduler.terminate(two.pid()).unwrap();
    until("it has ended", || found() == Some(Vec::new()));
}

// pins: V10
#[test]
fn actions_say_their_watchers_and_one_that_panics_hides_no_other() {
    let scheduler = observed();
    let target = scheduler.submit(waiter(), "target", ()).unwrap().pid();
    let add = |says| scheduler.add_exit_action(target, Box::new(says)).unwrap();
    let other = Pid::new(scheduler.host_name(), 4711);
    add(Says::Panics);
    add(Says::Watches(Watcher::Outside));
    add(Says::Nothing);
    add(Says::IsOver);
    add(Says::Watches(Watcher::Process(other)));
    let found = |most| watchers(&scheduler, target, most);
    until("all are there", || found(100) == Some((vec![other], 1, 0)));
    assert_eq!(found(4), Some((Vec::new(), 1, 1)));
    assert_eq!(found(0), Some((Vec::new(), 0, 5)));
    // The process goes on.
    assert!(scheduler.stats().total.panics > 0);
    assert!(scheduler.process(target).is_some());
    scheduler.terminate(target).unwrap();
    until("it ends", || scheduler.process(target).is_none());
}

// pins: V10
#[test]
fn of_a_process_that_runs_no_reader_says_anything() {
    let scheduler = observed();
    let may_end = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&may_end);
    let runs = process(move |_, _, _| {
        until("it may end", || told.load(Ordering::SeqCst));
        Ok(())
    });
    let runs = scheduler.submit(runs, "runs", ()).unwrap().pid();
    until_state(&scheduler, runs, ProcessState::Running);
    assert_eq!(watchers(&scheduler, runs, 100), None);
    assert_eq!(scheduler.look_at(runs, |it| it.bytes()), Some(None));
    may_end.store(true, Ordering::SeqCst);
    until_state(&scheduler, runs, ProcessState::Idle);
    let large = process({
        let bytes = [1_u8; 1_000];
        move |_, _, _| {
            assert_eq!(bytes[0], 1);
            Ok(())
        }
    });
    let large = scheduler.submit(large, "large", ()).unwrap().pid();
    until_state(&scheduler, large, ProcessState::Idle);
    let bytes = |pid| scheduler.look_at(pid, |it| it.bytes()).flatten().unwrap();
    assert!(bytes(runs) > 200 && bytes(runs) < 1_000);
    assert!(
        (bytes(runs) + 900..3_000).contains(&bytes(large)),
        "{}",
        bytes(large)
    );
}
