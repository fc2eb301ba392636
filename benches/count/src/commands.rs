//! Three handlers: the first answers at once, the second only after the act, the third leaves the
//! answer to a process.

use crate::one_worker::{OneWorker, ended};
use ganger_proc_api::{BoxError, Command, CommandId, Completer, Event, Message, process_fn};
use ganger_sched::Scheduler;
use std::cell::Cell;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

/// Answered at once, with its input.
const ECHO: CommandId = CommandId::new(256);

/// Not answered until [`Held::release`].
pub(crate) const HOLD: CommandId = CommandId::new(257);

/// Answered by the process with a message of the same step.
const ASK: CommandId = CommandId::new(258);

thread_local! {
    /// The completer for the next process to answer: there is a single worker.
    static ASKED: Cell<Option<Completer>> = const { Cell::new(None) };
}

/// The completers of the unanswered commands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held(Arc<Mutex<Vec<Completer>>>);

impl Held {
    fn keep(&self, completer: Completer) {
        let mut completers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        completers.push(completer);
    }

    /// Fails all held commands.
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
    let ask = |_: Command, completer: Completer| {
        ASKED.set(Some(completer));
        Ok(())
    };
    scheduler.register(ASK, "ask", ask)?;
    Ok(held)
}

/// Runs a process that yields a command with each of the numbers down to 1, after the answer to the
/// command before.
pub(crate) fn run(worker: &OneWorker, commands: u64) -> Result<(), BoxError> {
    let mut left = commands;
    let asker = process_fn(move |_, events, out| {
        for event in events {
            if let Event::Completion(completion) = event {
                if completion.result?.as_u64() != Some(left) {
                    return Err("another answer".into());
                }
                left -= 1;
            }
        }
        if left == 0 {
            out.done(());
        } else {
            out.yield_command(Command::new(ECHO, left), 0);
        }
        Ok(())
    });
    ended(worker.submit(asker)?)
}

/// Runs a client that sends a message to the server and yields a command, again after each answer,
/// which the server gives.
pub(crate) fn ask(worker: &OneWorker, commands: u64) -> Result<(), BoxError> {
    let mut left = commands;
    let server = worker.submit(process_fn(move |_, events, out| {
        for event in events {
            if let Event::Message(_) = event {
                ASKED.take().ok_or("nothing has been asked")?.complete(());
                left -= 1;
            }
        }
        if left == 0 {
            out.done(());
        }
        Ok(())
    }))?;
    let address = server.address().clone();
    let asker = worker.submit(process_fn(move |_, events, out| {
        for event in events {
            if let Event::Completion(completion) = event {
                completion.result?;
                left -= 1;
            }
        }
        if left == 0 {
            out.done(());
        } else {
            address.send(Message::new("asked", ()))?;
            out.yield_command(Command::new(ASK, ()), 0);
        }
        Ok(())
    }))?;
    [server, asker].into_iter().try_for_each(ended)
}
