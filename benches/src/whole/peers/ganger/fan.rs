//! Many senders to a single receiver, and a single sender to many.

use super::Ganger;
use crate::whole::contestant::{Timed, failed};
use crate::whole::gate::Gate;
use ganger_proc_api::{Context, Event, Events, Message, Process, StepOutput, StepResult};
use ganger_sched::{Address, Scheduler};
use std::thread;

pub(super) fn run_in<P: Process + 'static>(
    ganger: &Ganger,
    producers: u64,
    messages: u64,
    producer: impl Fn(Vec<Address>) -> P,
) -> Timed {
    let consumer = ganger.submit(Consumer::new(producers * messages, ganger.gate))?;
    ganger.gate.time(1, || {
        (0..producers).try_for_each(|_| {
            let to = vec![consumer.address().clone()];
            ganger.submit(producer(to)).map(drop)
        })
    })
}

pub(super) fn run_from_threads(
    scheduler: &Scheduler,
    gate: &'static Gate,
    threads: u64,
    messages: u64,
) -> Timed {
    let consumer = Consumer::new(threads * messages, gate);
    let consumer = scheduler.submit(consumer, "main", ()).map_err(failed)?;
    thread::scope(|scope| {
        gate.time(1, || {
            for _ in 0..threads {
                let to = consumer.address();
                scope.spawn(move || {
                    for number in 0..messages {
                        let sent = to.send_blocking(Message::new("number", number));
                        sent.expect("the consumer is there");
                    }
                });
            }
            Ok(())
        })
    })
}

pub(super) fn run_out(ganger: &Ganger, receivers: u64, messages: u64) -> Timed {
    let to = ganger.submit_all(receivers, |_| Consumer::new(messages, ganger.gate))?;
    ganger.gate.time(receivers, || {
        ganger.submit(Producer { messages, to }).map(drop)
    })
}

/// Takes `left` numbers, brings their sum to the gate, and ends.
struct Consumer {
    left: u64,
    sum: u64,
    gate: &'static Gate,
}

impl Consumer {
    fn new(left: u64, gate: &'static Gate) -> Self {
        let sum = 0;
        Self { left, sum, gate }
    }
}

impl Process for Consumer {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for event in events {
            if let Event::Message(message) = event {
                let number = message.payloads.first().and_then(|number| number.as_u64());
                self.sum += number.expect("a number");
                self.left -= 1;
            }
        }
        if self.left == 0 {
            self.gate.hit_with(self.sum);
            out.done(());
        }
        Ok(())
    }
}

/// Sends each of the numbers below `messages` to all, in a single step, and ends.
pub(super) struct Producer {
    pub(super) messages: u64,
    pub(super) to: Vec<Address>,
}

impl Process for Producer {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for number in 0..self.messages {
            for consumer in &self.to {
                consumer.send(Message::new("number", number))?;
            }
        }
        out.done(());
        Ok(())
    }
}

/// As a producer, but sends each receiver all numbers by a single call.
pub(super) struct AtOnce {
    pub(super) messages: u64,
    pub(super) to: Vec<Address>,
}

impl Process for AtOnce {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for consumer in &self.to {
            consumer.send_all((0..self.messages).map(|number| Message::new("number", number)))?;
        }
        out.done(());
        Ok(())
    }
}
