//! Answers from other processes, and the fate of the completers.

use crate::support::*;
use crossbeam_queue::SegQueue;
use ganger_proc_api::{Command, CommandId, Completer, Event, Lifecycle, Message, Payload, Process};
use ganger_sched::Scheduler;
use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::{fmt, mem};

const ASK: CommandId = CommandId::new(256);

/// Creates a process that yields `commands` commands, each after the answer to the last.
fn asker(commands: u64) -> impl Process {
    let mut left = commands;
    process(move |_, events, out| {
        left -= events
            .filter(|event| matches!(event, Event::Completion(_)))
            .count() as u64;
        if left == 0 {
            out.done(());
        } else {
            out.yield_command(Command::new(ASK, left), left);
        }
        Ok(())
    })
}

/// The completers of commands without an answer, and the count of the answers.
#[derive(Default)]
struct Asked {
    completers: SegQueue<Completer>,
    answered: AtomicUsize,
}

/// Creates a process that answers all commands in its list, until `enough` have been answered.
fn server(asked: &Arc<Asked>, enough: usize) -> impl Process {
    let asked = Arc::clone(asked);
    process(move |_, _, out| {
        let completer = asked.completers.pop();
        if let Some(completer) = completer {
            completer.complete(());
            // Ordering: Relaxed: a count.
            asked.answered.fetch_add(1, Ordering::Relaxed);
        }
        // Ordering: Relaxed: a count.
        if asked.answered.load(Ordering::Relaxed) == enough {
            out.done(());
        } else {
            out.step_again();
        }
        Ok(())
    })
}

/// Hooks that go with the last reference to the scheduler. Its handlers go with its workers.
struct Keeps(#[expect(dead_code, reason = "kept for its count")] Arc<Asked>);

impl Lifecycle for Keeps {}

/// Starts a scheduler whose handler leaves its completers in the list.
fn scheduler(workers: usize, asked: &Arc<Asked>) -> Scheduler {
    let builder = Scheduler::builder().workers(workers);
    let scheduler = builder.lifecycle(Keeps(Arc::clone(asked))).build().unwrap();
    let asked = Arc::clone(asked);
    let ask = move |_: Command, completer: Completer| {
        asked.completers.push(completer);
        Ok(())
    };
    scheduler.register(ASK, "ask", ask).unwrap();
    scheduler.start().unwrap();
    scheduler
}

// pins: P12, D4
#[test]
fn processes_that_were_answered_leave_nothing_behind() {
    const ASKERS: usize = 100;
    const COMMANDS: usize = 20;
    for workers in [1, 4] {
        let asked = Arc::default();
        let scheduler = scheduler(workers, &asked);
        let servers = [(); 3].map(|()| {
            let server = server(&asked, ASKERS * COMMANDS);
            scheduler.submit(server, "main", ()).unwrap()
        });
        for _ in 0..ASKERS {
            // The test does not wait for the askers.
            drop(scheduler.submit(asker(COMMANDS as u64), "main", ()));
        }
        for server in servers {
            assert!(exit(server).is_done());
        }
        until("all have ended", || scheduler.stats().live == 0);
        drop(scheduler);
        // The hooks go with the scheduler. Every remaining process keeps the scheduler alive, and
        // so does a thread for a moment after it has counted itself out.
        until("nothing is left", || Arc::strong_count(&asked) == 1);
    }
}

/// Checks the same for answers during the handler's call.
// pins: P12, D4
#[test]
fn processes_that_were_answered_at_once_leave_nothing_behind() {
    let asked = Arc::default();
    let builder = Scheduler::builder().workers(2);
    let scheduler = builder
        .lifecycle(Keeps(Arc::clone(&asked)))
        .build()
        .unwrap();
    let answer = |_: Command, completer: Completer| {
        completer.complete(());
        Ok(())
    };
    scheduler.register(ASK, "ask", answer).unwrap();
    scheduler.start().unwrap();
    for _ in 0..100 {
        drop(scheduler.submit(asker(3), "main", ()));
    }
    until("all have ended", || scheduler.stats().live == 0);
    drop(scheduler);
    until("nothing is left", || Arc::strong_count(&asked) == 1);
}

// pins: P1, P6
#[test]
fn who_is_answered_by_a_process_of_another_scheduler_stays_where_it_is() {
    const COMMANDS: usize = 20;
    let asked = Arc::default();
    let (own, other) = (scheduler(1, &asked), start(1));
    let handle = own.submit(asker(COMMANDS as u64), "main", ()).unwrap();
    let server = other.submit(server(&asked, COMMANDS), "main", ());
    assert!(exit(server.unwrap()).is_done());
    assert!(exit(handle).is_done());
    assert_eq!(own.stats().total.steps, COMMANDS as u64 + 1);
}

/// Says how often it has been dropped, as a result or as an error.
#[derive(Debug)]
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        // Ordering: Relaxed: a count, read when everything has gone.
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("on purpose: a failure")
    }
}

impl Error for Counted {}

/// When a command is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// Before its handler returns.
    AtOnce,
    /// Before its handler returns, and after the handler has sent something to the process.
    Behind,
    /// After the step, while the process waits.
    Later,
    /// When the process has ended.
    TooLate,
}

/// The process's use of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Takes,
    Leaves,
    /// The process has ended in the asking step.
    Ends,
}

// pins: P6
#[test]
fn what_is_in_an_answer_is_dropped_once() {
    for when in [When::AtOnce, When::Behind, When::Later, When::TooLate] {
        for then in [Then::Takes, Then::Leaves, Then::Ends] {
            for yields in [1, 3] {
                for fails in [false, true] {
                    let dropped = Arc::new(AtomicUsize::new(0));
                    answer_and_end(when, then, yields, fails, &dropped);
                    let dropped = dropped.load(Ordering::SeqCst);
                    assert_eq!(dropped, yields, "{when:?} {then:?} {yields} {fails}");
                }
            }
        }
    }
}

/// Checks that nothing stays of a process whose step yields `yields` commands, and ends it.
fn answer_and_end(when: When, then: Then, yields: usize, fails: bool, dropped: &Arc<AtomicUsize>) {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let kept = Arc::new(Mutex::new(Vec::new()));
    let ask = {
        let (kept, dropped) = (Arc::clone(&kept), Arc::clone(dropped));
        let handle = scheduler.handle().downgrade();
        move |_: Command, completer: Completer| {
            if when == When::Behind {
                let target = completer.pid().unwrap();
                let sent = Message::new("before", ()).to(target);
                handle.upgrade().unwrap().send(sent)?;
            }
            if matches!(when, When::AtOnce | When::Behind) {
                answer(completer, fails, &dropped);
            } else {
                kept.lock().unwrap().push(completer);
            }
            Ok(())
        }
    };
    scheduler.register(ASK, "ask", ask).unwrap();
    scheduler.start().unwrap();
    let seen = Arc::new(AtomicUsize::new(0));
    let process = {
        let (seen, mut has_asked) = (Arc::clone(&seen), false);
        process(move |_, events, out| {
            if !mem::replace(&mut has_asked, true) {
                (0..yields as u64).for_each(|tag| out.yield_command(Command::new(ASK, tag), tag));
                if then == Then::Ends {
                    out.done(());
                }
                return Ok(());
            }
            // Ordering: Relaxed: a count.
            if then == Then::Takes {
                seen.fetch_add(events.count(), Ordering::Relaxed);
            } else {
                seen.store(events.len(), Ordering::Relaxed);
            }
            Ok(())
        })
    };
    let handle = scheduler.submit(process, "main", ()).unwrap();
    if matches!(when, When::Later | When::TooLate) {
        until("it has asked", || kept.lock().unwrap().len() == yields);
    }
    let answer_late = || {
        let kept = mem::take(&mut *kept.lock().unwrap());
        kept.into_iter().for_each(|it| answer(it, fails, dropped));
    };
    if when == When::Later {
        answer_late();
    }
    if then != Then::Ends {
        let events = match when {
            When::TooLate => 0,
            When::Behind => 2 * yields,
            When::AtOnce | When::Later => yields,
        };
        // Ordering: Relaxed: a count.
        until("it has seen all", || seen.load(Ordering::Relaxed) == events);
        scheduler.handle().terminate(handle.pid()).unwrap();
    }
    exit(handle);
    answer_late();
}

fn answer(completer: Completer, fails: bool, dropped: &Arc<AtomicUsize>) {
    let value = Counted(Arc::clone(dropped));
    if fails {
        completer.fail(value);
    } else {
        completer.complete(Payload::any(value));
    }
}
