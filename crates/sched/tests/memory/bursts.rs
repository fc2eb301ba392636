//! The memory left after a burst: of yields, monitors, names, PIDs, or queued processes.

use crate::support::*;
use crate::{LIVE, alone, end};
use ganger_proc_api::{
    BoxError, Command, CommandId, Completer, Context, Event, Events, Message, Payload, Pid,
    Process, StepOutput, StepResult,
};
use ganger_sched::{ProcessHandle, ProcessState, Scheduler};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, mpsc};

/// The allowed rest of any burst: a few slabs in caches, and the memory of a small queue or table.
const KEPT: usize = 96 << 10;

const AT_ONCE: CommandId = CommandId::new(256);
const LATER: CommandId = CommandId::new(257);

/// Returns the bytes in use, after the caches of messages and processes have been emptied.
fn live(scheduler: &Scheduler) -> usize {
    scheduler.release_memory();
    // Ordering: Relaxed: a count, of acts that this thread has seen.
    LIVE.load(Ordering::Relaxed)
}

#[track_caller]
fn assert_kept(before: usize, after: usize) {
    let kept = after.saturating_sub(before);
    assert!(kept <= KEPT, "{kept} bytes stay");
}

fn number(message: &Message) -> u64 {
    let first = message.payloads.first().and_then(Payload::as_u64);
    first.unwrap_or_default()
}

/// Yields as many commands as a message asks for, and notifies the test when `expected` have
/// completed, or all but those to leave.
struct Asker {
    command: CommandId,
    leaves: u64,
    expected: u64,
    told: mpsc::Sender<()>,
}

impl Process for Asker {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for event in events {
            match event {
                Event::Message(message) => {
                    let yields = number(&message);
                    self.expected = yields - self.leaves;
                    for tag in 0..yields {
                        out.yield_command(Command::new(self.command, ()), tag);
                    }
                }
                Event::Completion(_) => {
                    self.expected -= 1;
                    if self.expected == 0 {
                        self.told.send(())?;
                    }
                }
                _ => out.done(()),
            }
        }
        Ok(())
    }
}

/// Returns the bytes in use after few yields in a step, and then after many. A handler answers all
/// at once, or another thread answers all but one.
fn after_yields(command: CommandId, many: u64) -> (usize, usize) {
    let (kept, completers) = mpsc::channel();
    let kept = Mutex::new(kept);
    let scheduler = Scheduler::builder()
        .workers(1)
        .max_spares(0)
        .build()
        .unwrap();
    let at_once = |_: Command, completer: Completer| -> Result<(), BoxError> {
        completer.complete(());
        Ok(())
    };
    let later = move |_: Command, completer: Completer| -> Result<(), BoxError> {
        kept.lock().unwrap().send(completer)?;
        Ok(())
    };
    scheduler.register(AT_ONCE, "at once", at_once).unwrap();
    scheduler.register(LATER, "later", later).unwrap();
    scheduler.start().unwrap();
    let (told, is_told) = mpsc::channel();
    let leaves = u64::from(command == LATER);
    let asker = Asker {
        command,
        leaves,
        expected: 0,
        told,
    };
    let asker = scheduler.submit(asker, "main", ()).unwrap();
    let mut left = Vec::new();
    let mut ask = |yields: u64| {
        asker.send(Message::new("ask", yields)).unwrap();
        if command == LATER {
            left.push(completers.recv().unwrap());
            (1..yields).for_each(|_| completers.recv().unwrap().complete(()));
        }
        is_told.recv_timeout(PATIENCE).unwrap();
        let state = [ProcessState::Idle, ProcessState::Blocked][usize::from(command == LATER)];
        until_state(&scheduler, asker.pid(), state);
        live(&scheduler)
    };
    let result = (ask(10), ask(many));
    scheduler.terminate(asker.pid()).unwrap();
    // Completers keep the scheduler.
    drop((left, completers));
    end(scheduler, vec![asker]);
    result
}

#[test]
fn a_step_with_many_yields_leaves_nothing() {
    let _alone = alone();
    let (before, after) = after_yields(AT_ONCE, 1_000_000);
    assert_kept(before, after);
}

#[test]
fn of_outstanding_yields_only_those_that_are_left_take_memory() {
    let _alone = alone();
    let (before, after) = after_yields(LATER, 300_000);
    assert_kept(before, after);
}

/// Creates a process that notifies the test of its message: the work sent before is done.
fn teller(told: mpsc::Sender<()>) -> impl Process {
    process(move |_, events, out| {
        for event in events {
            match event {
                Event::Message(_) => told.send(())?,
                _ => out.done(()),
            }
        }
        Ok(())
    })
}

#[test]
fn monitors_that_are_taken_back_leave_nothing() {
    let _alone = alone();
    let scheduler = start(1);
    let (told, is_told) = mpsc::channel();
    let target = scheduler.submit(teller(told), "main", ()).unwrap();
    let pid = target.pid();
    let monitor = process(move |ctx, events, out| {
        for event in events {
            match event {
                Event::Message(message) => {
                    (0..number(&message)).try_for_each(|_| ctx.monitor(pid, 1))?;
                    ctx.demonitor(pid, 1);
                    // A monitor stays, and so does the list.
                    ctx.monitor(pid, 2)?;
                    ctx.send(pid, "all", ())?;
                }
                _ => out.done(()),
            }
        }
        Ok(())
    });
    let monitor = scheduler.submit(monitor, "main", ()).unwrap();
    let watch = |monitors: u64| {
        monitor.send(Message::new("watch", monitors)).unwrap();
        is_told.recv_timeout(PATIENCE).unwrap();
        until_state(&scheduler, pid, ProcessState::Idle);
        live(&scheduler)
    };
    let before = watch(10);
    let after = watch(500_000);
    assert_kept(before, after);
    end(scheduler, vec![target, monitor]);
}

/// Checks the memory after monitors and calls have left, while the process has as many events.
#[test]
fn monitors_that_have_ended_and_calls_taken_back_leave_nothing() {
    const BURST: usize = 20_000;
    let _alone = alone();
    let (keep, kept) = mpsc::channel();
    let keep = Mutex::new(keep);
    let scheduler = Scheduler::builder()
        .workers(1)
        .max_spares(0)
        .build()
        .unwrap();
    let keeper = move |_: Command, completer: Completer| -> Result<(), BoxError> {
        keep.lock().unwrap().send(completer)?;
        Ok(())
    };
    scheduler.register(LATER, "later", keeper).unwrap();
    scheduler.start().unwrap();
    let target = process(|_, events, out| {
        for event in events {
            match event {
                Event::Message(message) if message.topic == "yield" => {
                    out.yield_command(Command::new(LATER, ()), 0);
                }
                Event::Message(_) => {}
                _ => out.done(()),
            }
        }
        Ok(())
    });
    let target = scheduler.submit(target, "main", ()).unwrap();
    let pid = target.pid();
    target.send(Message::new("yield", ())).unwrap();
    let completer = kept.recv().unwrap();
    // The crowd has the same size each time, because the table of PIDs keeps places for it.
    let burst = |size: usize| {
        let monitor = |nth: usize| {
            let monitor = process(move |ctx, events, out| {
                match events.next() {
                    None if nth < size => ctx.monitor(pid, 1)?,
                    None => {}
                    Some(_) => out.done(()),
                }
                Ok(())
            });
            scheduler.submit(monitor, "main", ()).unwrap()
        };
        let monitors: Vec<_> = (0..BURST).map(monitor).collect();
        for monitor in &monitors {
            until_state(&scheduler, monitor.pid(), ProcessState::Idle);
        }
        let watches: Vec<_> = (0..size).map(|_| completer.on_end(|| ())).collect();
        drop(watches);
        for monitor in monitors {
            monitor.send(Message::new("end", ())).unwrap();
            drop(exit(monitor));
        }
        for _ in 0..3 * size {
            target.send(Message::new("n", ())).unwrap();
        }
        until_state(&scheduler, pid, ProcessState::Blocked);
        live(&scheduler)
    };
    let before = burst(10);
    let after = burst(BURST);
    assert_kept(before, after);
    scheduler.terminate(pid).unwrap();
    drop((completer, kept));
    end(scheduler, vec![target]);
}

/// Gives the process `names` names, of which the caller takes some away.
fn name(scheduler: &Scheduler, pid: Pid, names: usize) {
    let name = |nth: usize| scheduler.register_name(&nth.to_string(), pid).unwrap();
    (0..names).for_each(name);
}

#[test]
fn names_that_are_taken_away_leave_nothing() {
    let _alone = alone();
    let scheduler = start(1);
    let process = scheduler.submit(waiter(), "main", ()).unwrap();
    let and_back = |names: usize| {
        name(&scheduler, process.pid(), names);
        for nth in 1..names {
            assert_eq!(
                scheduler.unregister_name(&nth.to_string()),
                Some(process.pid())
            );
        }
        let bytes = live(&scheduler);
        scheduler.unregister_name("0").unwrap();
        bytes
    };
    let before = and_back(10);
    let after = and_back(250_000);
    assert_kept(before, after);
    end(scheduler, vec![process]);
}

#[test]
fn processes_with_names_and_chosen_pids_leave_nothing() {
    let _alone = alone();
    let scheduler = start(1);
    let come_and_go = |processes: u64| {
        let submit = |id: u64| {
            let pid = Pid::new(scheduler.host_name(), id);
            let handle = scheduler.submit_as(pid, waiter(), "main", ()).unwrap();
            scheduler.register_name(&id.to_string(), pid).unwrap();
            handle
        };
        let all: Vec<_> = (1..=processes).map(submit).collect();
        for handle in &all {
            scheduler.cancel(handle.pid(), "over").unwrap();
        }
        all.into_iter().for_each(|handle| drop(exit(handle)));
        until("all are gone", || scheduler.stats().live == 0);
        live(&scheduler)
    };
    // Enough to fill the caches of ended processes.
    let before = come_and_go(300);
    let after = come_and_go(20_000);
    assert_kept(before, after);
    end(scheduler, Vec::new());
}

#[test]
fn a_worker_that_has_had_many_processes_to_run_leaves_nothing() {
    const MANY: usize = 50_000;
    let _alone = alone();
    let scheduler = start(1);
    let submit = |_| scheduler.submit(waiter(), "main", ()).unwrap();
    let many: Vec<ProcessHandle> = (0..MANY).map(submit).collect();
    let pids: Vec<_> = many.iter().map(|handle| handle.pid()).collect();
    let waker = process(move |ctx, events, out| {
        for event in events {
            match event {
                Event::Message(message) => {
                    let woken = usize::try_from(number(&message))?;
                    pids[..woken]
                        .iter()
                        .try_for_each(|&pid| ctx.send(pid, "wake", ()))?;
                }
                _ => out.done(()),
            }
        }
        Ok(())
    });
    let waker = scheduler.submit(waker, "main", ()).unwrap();
    let wake = |woken: usize| {
        let before = scheduler.stats().total.steps;
        waker.send(Message::new("wake", woken as u64)).unwrap();
        let all = before + 1 + woken as u64;
        until("all have been woken", || {
            scheduler.stats().total.steps >= all
        });
        for handle in &many {
            until_state(&scheduler, handle.pid(), ProcessState::Idle);
        }
        live(&scheduler)
    };
    let before = wake(10);
    wake(MANY);
    // When it has gone to sleep.
    until("the memory is given back", || {
        live(&scheduler) <= before + KEPT
    });
    end(scheduler, many.into_iter().chain([waker]).collect());
}
