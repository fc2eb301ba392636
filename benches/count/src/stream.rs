//! A process sends many messages to a sink in each step: the first message finds the sink idle, the
//! next messages find it queued.

use crate::one_worker::{OneWorker, ended};
use ganger_proc_api::{BoxError, Context, Event, Events, Message, Process, StepOutput, StepResult};
use ganger_sched::Address;

/// How many messages the feeder sends in a step; fewer than a step is shown at once.
pub(crate) const BATCH: u64 = 64;

/// The means of finding the sink.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Address,
    Pid,
}

pub(crate) fn run(worker: &OneWorker, by: By, messages: u64) -> Result<(), BoxError> {
    let sink = worker.submit(Sink {
        left: messages,
        feeder: None,
    })?;
    let feeder = worker.submit(Feeder {
        left: messages,
        by,
        sink: sink.address().clone(),
    })?;
    // Makes itself known; the feeder begins when the sink has answered.
    let introduction = ganger_proc_api::Payload::any(feeder.address().clone());
    sink.send(Message::new("feeder", introduction))?;
    ended(sink)?;
    ended(feeder)
}

/// Sends the next batch when the receiver has confirmed the last.
struct Feeder {
    left: u64,
    by: By,
    sink: Address,
}

impl Process for Feeder {
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        if events.next().is_none() {
            return Ok(());
        }
        for _ in 0..BATCH.min(self.left) {
            match self.by {
                By::Pid => ctx.send(self.sink.pid(), "item", self.left)?,
                By::Address => self.sink.send(Message::new("item", self.left))?,
            }
            self.left -= 1;
        }
        if self.left == 0 {
            out.done(());
        }
        Ok(())
    }
}

/// Asks for the next batch after each batch, and ends with the last message.
struct Sink {
    left: u64,
    feeder: Option<Address>,
}

impl Process for Sink {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        let mut taken = 0;
        for event in events {
            let Event::Message(message) = event else {
                continue;
            };
            match &self.feeder {
                None => self.feeder = message.payloads.into_first().downcast().ok(),
                Some(_)
                    if message.payloads.first().and_then(|it| it.as_u64())
                        != Some(self.left - taken) =>
                {
                    return Err("a message is lost".into());
                }
                Some(_) => taken += 1,
            }
        }
        self.left -= taken;
        match &self.feeder {
            _ if self.left == 0 => out.done(()),
            Some(feeder) => feeder.send(Message::new("more", ()))?,
            None => {}
        }
        Ok(())
    }
}
