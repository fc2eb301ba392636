//! A handler that answers at once, and one that never does.

use crate::one_worker::{OneWorker, ended};
use ganger_proc_api::{
    BoxError, Command, CommandId, Completer, Event, Events, Process, StepOutput,
};
use ganger_sched::Scheduler;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

/// Answered at once, with what it was given.
const ECHO: CommandId = CommandId::new(1);

/// Not answered until [`Held::release`].
pub(crate) const HOLD: CommandId = CommandId::new(2);

/// The completers of the commands that have not been answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held(Arc<Mutex<Vec<Completer>>>);

impl Held {
    fn keep(&self, completer: Completer) {
        let mut completers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        completers.push(completer);
    }

    /// Fails all of them.
    pub(crate) fn release(&self) {
        let completers = mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        drop(completers);
    }
}

pub(crate) fn register(scheduler: &Scheduler) -> Result<Held, BoxError> {
    let echo = |command: Command, completer: Completer| {
        completer.complete(command.payloads.into_first());
        Ok(())
    };
    scheduler.register(ECHO, "echo", echo)?;
    let held = Held::default();
    let keeper = held.clone();
    let hold = move |_: Command, completer: Completer| {
        keeper.keep(completer);
        Ok(())
    };
    scheduler.register(HOLD, "hold", hold)?;
    Ok(held)
}

pub(crate) fn run(worker: &OneWorker, commands: u64) -> Result<(), BoxError> {
    ended(worker.submit(Asker { left: commands })?)
}

/// Yields a command with each of the numbers from `left` down to 1, after the answer to the one
/// before.
struct Asker {
    left: u64,
}

impl Process for Asker {
    fn step(&mut self, events: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
        for event in events {
            if let Event::Completion(completion) = event {
                if completion.result?.as_u64() != Some(self.left) {
                    return Err("another answer".into());
                }
                self.left -= 1;
            }
        }
        if self.left == 0 {
            out.done(());
        } else {
            out.yield_command(Command::new(ECHO, self.left), 0);
            out.wait_for_yields();
        }
        Ok(())
    }
}
