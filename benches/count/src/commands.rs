//! A handler that answers at once, a handler that never does, and a handler that leaves the answer
//! to a process.

use crate::one_worker::{OneWorker, ended};
use ganger_proc_api::{
    BoxError, Command, CommandId, Completer, Context, Event, Events, Message, Process, StepOutput,
    StepResult,
};
use ganger_sched::{Address, Scheduler};
use std::cell::Cell;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

/// Answered at once, with its input.
const ECHO: CommandId = CommandId::new(256);

/// Not answered until [`Held::release`].
pub(crate) const HOLD: CommandId = CommandId::new(257);

/// Answered by the process that is sent a message in the same step.
const ASK: CommandId = CommandId::new(258);

thread_local! {
    /// The completer for the next process to answer: there is a single worker.
    static ASKED: Cell<Option<Completer>> = const { Cell::new(None) };
}

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
    let ask = |_: Command, completer: Completer| {
        ASKED.set(Some(completer));
        Ok(())
    };
    scheduler.register(ASK, "ask", ask)?;
    Ok(held)
}

pub(crate) fn run(worker: &OneWorker, commands: u64) -> Result<(), BoxError> {
    ended(worker.submit(Asker { left: commands })?)
}

/// Yields a command with each of the numbers from `left` down to 1, after the answer to the command
/// before.
struct Asker {
    left: u64,
}

impl Process for Asker {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
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
        }
        Ok(())
    }
}

pub(crate) fn ask(worker: &OneWorker, commands: u64) -> Result<(), BoxError> {
    let server = worker.submit(Server { left: commands })?;
    let asker = worker.submit(Client {
        server: server.address().clone(),
        left: commands,
    })?;
    [server, asker].into_iter().try_for_each(ended)
}

/// Sends a message to the server and yields a command, again after each answer, `left` times.
struct Client {
    server: Address,
    left: u64,
}

impl Process for Client {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for event in events {
            if let Event::Completion(completion) = event {
                completion.result?;
                self.left -= 1;
            }
        }
        if self.left == 0 {
            out.done(());
        } else {
            self.server.send(Message::new("asked", ()))?;
            out.yield_command(Command::new(ASK, ()), 0);
        }
        Ok(())
    }
}

/// Answers this many commands.
struct Server {
    left: u64,
}

impl Process for Server {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for event in events {
            if let Event::Message(_) = event {
                ASKED.take().ok_or("nothing has been asked")?.complete(());
                self.left -= 1;
            }
        }
        if self.left == 0 {
            out.done(());
        }
        Ok(())
    }
}
