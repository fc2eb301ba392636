//! Answers that other processes give, and what comes of the completers.
#![cfg(not(loom))]

mod support;

use ganger_proc_api::{Command, CommandId, Completer, Event, Process};
use ganger_sched::Scheduler;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use support::*;

const ASK: CommandId = CommandId::new(1);

/// Yields so many commands, each after the answer to the one before.
fn asker(commands: u64) -> impl Process {
    let mut left = commands;
    process(move |_, events, out| {
        out.wait_for_yields();
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

/// What has been asked and not answered, and how much has been answered.
#[derive(Default)]
struct Asked {
    completers: Mutex<Vec<Completer>>,
    answered: AtomicUsize,
}

/// Answers whatever has been asked, until it and others have answered so much.
fn server(asked: &Arc<Asked>, enough: usize) -> impl Process {
    let asked = Arc::clone(asked);
    process(move |_, _, out| {
        let completer = asked.completers.lock().unwrap().pop();
        if let Some(completer) = completer {
            completer.complete(());
            // Ordering: Relaxed: a count.
            asked.answered.fetch_add(1, Ordering::Relaxed);
        }
        // Ordering: Relaxed, as above.
        if asked.answered.load(Ordering::Relaxed) == enough {
            out.done(());
        }
        Ok(())
    })
}

/// A scheduler with a handler that leaves its completers there.
fn scheduler(workers: usize, asked: &Arc<Asked>) -> Scheduler {
    let scheduler = Scheduler::builder().workers(workers).build().unwrap();
    let asked = Arc::clone(asked);
    let ask = move |_: Command, completer: Completer| {
        asked.completers.lock().unwrap().push(completer);
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
            // Nobody waits for them.
            drop(scheduler.submit(asker(COMMANDS as u64), "main", ()));
        }
        for server in servers {
            assert!(exit(server).is_done());
        }
        until("all have ended", || scheduler.stats().live == 0);
        drop(scheduler);
        // The handler goes with the scheduler, which every process that is left keeps alive, and a thread for a
        // moment after it has counted itself out.
        until("nothing is left", || Arc::strong_count(&asked) == 1);
    }
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
