//! Many senders to a single receiver, and a single sender to many.

use super::{Kameo, start};
use crate::whole::contestant::Timed;
use crate::whole::gate::Gate;
use ::kameo::Actor;
use ::kameo::actor::ActorRef;
use ::kameo::error::Infallible;
use ::kameo::message::{Context, Message};

pub(super) fn run_in(kameo: &Kameo, producers: u64, messages: u64) -> Timed {
    let _inside = kameo.enter();
    let consumer = start::<Consumer>(Consumer::new(producers * messages, kameo.gate));
    kameo.gate.time(1, || {
        for _ in 0..producers {
            let to = vec![consumer.clone()];
            drop(start::<Producer>((messages, to)));
        }
        Ok(())
    })
}

pub(super) fn run_out(kameo: &Kameo, receivers: u64, messages: u64) -> Timed {
    let _inside = kameo.enter();
    let consumer = |_| start::<Consumer>(Consumer::new(messages, kameo.gate));
    let to: Vec<_> = (0..receivers).map(consumer).collect();
    kameo.gate.time(receivers, || {
        drop(start::<Producer>((messages, to)));
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

impl Message<u64> for Consumer {
    type Reply = ();

    async fn handle(&mut self, number: u64, ctx: &mut Context<Self, ()>) {
        self.sum += number;
        self.left -= 1;
        if self.left == 0 {
            self.gate.hit_with(self.sum);
            ctx.stop();
        }
    }
}

/// Sends each of the numbers below a bound to all, without a pause. Ends because no reference to it
/// is left.
struct Producer;

impl Actor for Producer {
    type Args = (u64, Vec<ActorRef<Consumer>>);
    type Error = Infallible;

    async fn on_start((messages, to): Self::Args, _: ActorRef<Self>) -> Result<Self, Infallible> {
        for number in 0..messages {
            for consumer in &to {
                let sent = consumer.tell(number).try_send();
                sent.expect("the consumer is there");
            }
        }
        Ok(Self)
    }
}
