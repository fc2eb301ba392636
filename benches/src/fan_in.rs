//! Many that send to one.

use crate::Gate;
use ganger_proc_api::{BoxError, Event, Events, Message, Process, StepOutput};
use ganger_sched::Address;
use std::fmt;
use std::sync::Arc;

/// Takes that many messages, hits the gate, and ends.
#[derive(Debug)]
pub struct Consumer {
    /// How many messages are left.
    pub left: usize,
    /// What it hits then.
    pub gate: Arc<Gate>,
}

impl Process for Consumer {
    fn step(&mut self, events: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
        out.idle();
        self.left -= events
            .filter(|event| matches!(event, Event::Message(_)))
            .count();
        if self.left == 0 {
            self.gate.hit();
            out.done(());
        }
        Ok(())
    }
}

/// Sends that many numbers in one step, and ends.
pub struct Producer {
    /// How many it sends.
    pub messages: u64,
    /// Whom it sends them to.
    pub consumer: Address,
}

impl Process for Producer {
    fn step(&mut self, _: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
        for number in 0..self.messages {
            self.consumer.send(Message::new("number", number))?;
        }
        out.done(());
        Ok(())
    }
}

impl fmt::Debug for Producer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer")
            .field("messages", &self.messages)
            .finish_non_exhaustive()
    }
}
