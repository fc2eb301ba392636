//! Many senders to a single receiver, and a single sender to many.

use super::Tokio;
use super::typed::Numbered;
use crate::whole::contestant::Timed;
use crate::whole::gate::Gate;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// How many messages a consumer takes at a time, as many as a step of Ganger sees.
const BATCH: usize = 256;

pub(super) fn run_in<M: Numbered>(tokio: &Tokio, producers: u64, messages: u64) -> Timed {
    let gate = tokio.gate;
    let (to, numbers) = unbounded_channel();
    tokio
        .runtime
        .spawn(consume::<M>(numbers, producers * messages, gate));
    gate.time(1, || {
        for _ in 0..producers {
            tokio.runtime.spawn(produce(vec![to.clone()], messages));
        }
        Ok(())
    })
}

pub(super) fn run_out<M: Numbered>(tokio: &Tokio, receivers: u64, messages: u64) -> Timed {
    let gate = tokio.gate;
    let consumer = |_| {
        let (to, numbers) = unbounded_channel();
        tokio.runtime.spawn(consume::<M>(numbers, messages, gate));
        to
    };
    let to: Vec<_> = (0..receivers).map(consumer).collect();
    gate.time(receivers, || {
        drop(tokio.runtime.spawn(produce(to, messages)));
        Ok(())
    })
}

/// Takes `count` numbers and brings their sum to the gate.
async fn consume<M: Numbered>(mut numbers: UnboundedReceiver<M>, count: u64, gate: &'static Gate) {
    let mut batch = Vec::with_capacity(BATCH);
    let (mut left, mut sum) = (count, 0);
    while left > 0 {
        left -= numbers.recv_many(&mut batch, BATCH).await as u64;
        sum += batch.drain(..).filter_map(|it| it.number()).sum::<u64>();
    }
    gate.hit_with(sum);
}

/// Sends each of the numbers below `messages` to all, without a pause.
async fn produce<M: Numbered>(to: Vec<UnboundedSender<M>>, messages: u64) {
    for number in 0..messages {
        for consumer in &to {
            consumer
                .send(M::new(number))
                .expect("the consumer is there");
        }
    }
}
