//! Answers that other processes give, and what comes of the completers.
#![cfg(not(loom))]

mod support;

use ganger_proc_api::{Command, CommandId, Completer, Event, Process};
use ganger_sched::Scheduler;
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

type Asked = Arc<Mutex<Vec<Completer>>>;

/// Answers whatever has been asked, until it has answered so much.
fn server(asked: Asked, mut left: usize) -> impl Process {
    process(move |_, _, out| {
        let completers = std::mem::take(&mut *asked.lock().unwrap());
        left -= completers.len();
        for completer in completers {
            completer.complete(());
        }
        if left == 0 {
            out.done(());
        }
        Ok(())
    })
}

/// A scheduler with a handler that leaves its completers there.
fn scheduler(asked: &Asked) -> Scheduler {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let asked = Arc::clone(asked);
    let ask = move |_: Command, completer: Completer| {
        asked.lock().unwrap().push(completer);
        Ok(())
    };
    scheduler.register(ASK, "ask", ask).unwrap();
    scheduler.start().unwrap();
    scheduler
}

// pins: P12, D4
#[test]
fn processes_that_were_answered_leave_nothing_behind() {
    const ASKERS: usize = 50;
    const COMMANDS: usize = 4;
    let asked = Asked::default();
    let scheduler = scheduler(&asked);
    let server = scheduler.submit(server(Arc::clone(&asked), ASKERS * COMMANDS), "main", ());
    for _ in 0..ASKERS {
        // Nobody waits for them.
        drop(
            scheduler
                .submit(asker(COMMANDS as u64), "main", ())
                .unwrap(),
        );
    }
    assert!(exit(server.unwrap()).is_done());
    until("all have ended", || scheduler.stats().live == 0);
    drop(scheduler);
    // The handler went with the scheduler, which every process that is left keeps alive.
    assert_eq!(Arc::strong_count(&asked), 1);
}

// pins: P1, P6
#[test]
fn who_is_answered_by_a_process_of_another_scheduler_stays_where_it_is() {
    const COMMANDS: usize = 20;
    let asked = Asked::default();
    let (own, other) = (scheduler(&asked), start(1));
    let handle = own.submit(asker(COMMANDS as u64), "main", ()).unwrap();
    let server = other.submit(server(Arc::clone(&asked), COMMANDS), "main", ());
    assert!(exit(server.unwrap()).is_done());
    assert!(exit(handle).is_done());
    assert_eq!(own.stats().total.steps, COMMANDS as u64 + 1);
}
