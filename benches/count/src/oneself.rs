//! A process sends a number to itself and counts it down: each send finds the process running.

use crate::one_worker::{OneWorker, ended};
use ganger_proc_api::{BoxError, Context, Event, Events, Message, Process, StepOutput, StepResult};
use ganger_sched::Address;
use std::sync::{Arc, OnceLock};

pub(crate) fn by_address(worker: &OneWorker, sends: u64) -> Result<(), BoxError> {
    let own = Arc::new(OnceLock::<Address>::new());
    let process = Talker {
        send: {
            let own = Arc::clone(&own);
            move |_: &Context, number| {
                let own = own.get().ok_or("without an address")?;
                Ok(own.send(Message::new("number", number))?)
            }
        },
    };
    let handle = worker.submit(process)?;
    own.get_or_init(|| handle.address().clone());
    handle.send(Message::new("number", sends))?;
    ended(handle)
}

pub(crate) fn by_pid(worker: &OneWorker, sends: u64) -> Result<(), BoxError> {
    let process = Talker {
        send: |ctx: &Context, number| Ok(ctx.send(ctx.pid(), "number", number)?),
    };
    let handle = worker.submit(process)?;
    handle.send(Message::new("number", sends))?;
    ended(handle)
}

/// Sends each received number, less 1, to itself, and ends at 0.
struct Talker<F> {
    send: F,
}

impl<F> Process for Talker<F>
where
    F: Fn(&Context, u64) -> Result<(), BoxError> + Send + 'static,
{
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for event in events {
            let Event::Message(message) = event else {
                continue;
            };
            let number = message.payloads.into_first();
            match number.as_u64().ok_or("not a number")?.checked_sub(1) {
                Some(left) => (self.send)(ctx, left)?,
                None => out.done(()),
            }
        }
        Ok(())
    }
}
