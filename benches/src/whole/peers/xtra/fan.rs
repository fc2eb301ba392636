//! Many senders to a single receiver, and a single sender to many.

use super::{Xtra, send, start};
use crate::whole::contestant::Timed;
use crate::whole::gate::Gate;
use ::xtra::{Actor, Address, Context, Handler, Mailbox};

pub(super) fn run_in(xtra: &Xtra, producers: u64, messages: u64) -> Timed {
    let _inside = xtra.enter();
    let consumer = start(Consumer::new(producers * messages, xtra.gate));
    xtra.gate.time(1, || {
        for _ in 0..producers {
            let to = vec![consumer.clone()];
            drop(start(Producer { messages, to }));
        }
        Ok(())
    })
}

pub(super) fn run_out(xtra: &Xtra, receivers: u64, messages: u64) -> Timed {
    let _inside = xtra.enter();
    let consumer = |_| start(Consumer::new(messages, xtra.gate));
    let to: Vec<_> = (0..receivers).map(consumer).collect();
    xtra.gate.time(receivers, || {
        drop(start(Producer { messages, to }));
        Ok(())
    })
}

/// Takes `left` numbers, brings their sum to the gate, and ends.
#[derive(Actor)]
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

impl Handler<u64> for Consumer {
    type Return = ();

    async fn handle(&mut self, number: u64, ctx: &mut Context<Self>) {
        self.sum += number;
        self.left -= 1;
        if self.left == 0 {
            self.gate.hit_with(self.sum);
            ctx.stop_self();
        }
    }
}

/// Sends each of the numbers below a bound to all, without a pause, and ends without a look at its
/// mailbox.
struct Producer {
    messages: u64,
    to: Vec<Address<Consumer>>,
}

impl Actor for Producer {
    type Stop = ();

    async fn started(&mut self, _: &Mailbox<Self>) -> Result<(), ()> {
        for number in 0..self.messages {
            for consumer in &self.to {
                send(consumer, number).expect("the consumer is there");
            }
        }
        Err(())
    }

    async fn stopped(self) {}
}
