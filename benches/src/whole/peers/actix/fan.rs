//! Many senders to a single receiver, and a single sender to many.

use super::{Actix, Number};
use crate::whole::contestant::Timed;
use crate::whole::gate::Gate;
use ::actix::{Actor, ActorContext, Addr, Context, Handler};

pub(super) fn run_in(actix: &Actix, producers: u64, messages: u64) -> Timed {
    let consumer = actix.start(Consumer::new(producers * messages, actix.gate));
    actix.gate.time(1, || {
        for _ in 0..producers {
            let to = vec![consumer.clone()];
            drop(actix.start(Producer { messages, to }));
        }
        Ok(())
    })
}

pub(super) fn run_out(actix: &Actix, receivers: u64, messages: u64) -> Timed {
    let to = actix.start_all(receivers, |_| Consumer::new(messages, actix.gate));
    actix.gate.time(receivers, || {
        drop(actix.start(Producer { messages, to }));
        Ok(())
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

impl Actor for Consumer {
    type Context = Context<Self>;
}

impl Handler<Number> for Consumer {
    type Result = ();

    fn handle(&mut self, Number(number): Number, ctx: &mut Context<Self>) {
        self.sum += number;
        self.left -= 1;
        if self.left == 0 {
            self.gate.hit_with(self.sum);
            ctx.stop();
        }
    }
}

/// Sends each of the numbers below `messages` to all, without a pause, and ends.
struct Producer {
    messages: u64,
    to: Vec<Addr<Consumer>>,
}

impl Actor for Producer {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        for number in 0..self.messages {
            for consumer in &self.to {
                consumer.do_send(Number(number));
            }
        }
        ctx.stop();
    }
}
