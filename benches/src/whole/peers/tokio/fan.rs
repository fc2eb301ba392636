//! Many that send to one, and one that sends to many.

use super::Tokio;
use crate::whole::contestant::Timed;
use crate::whole::gate::Gate;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// How many messages a consumer takes at a time, as many as a step of Ganger sees.
const BATCH: usize = 256;

pub(super) fn run_in(tokio: &Tokio, producers: u64, messages: u64) -> Timed {
    let gate = tokio.gate;
    let (to, numbers) = unbounded_channel();
    tokio
        .runtime
        .spawn(consume(numbers, producers * messages, gate));
    gate.time(1, || {
        for _ in 0..producers {
            tokio.runtime.spawn(produce(vec![to.clone()], messages));
        }
        Ok(())
    })
}

pub(super) fn run_out(tokio: &Tokio, receivers: u64, messages: u64) -> Timed {
    let gate = tokio.gate;
    let consumer = |_| {
        let (to, numbers) = unbounded_channel();
        tokio.runtime.spawn(consume(numbers, messages, gate));
        to
    };
    let to: Vec<_> = (0..receivers).map(consumer).collect();
    gate.time(receivers, || {
        drop(tokio.runtime.spawn(produce(to, messages)));
        Ok(())
    })
}

/// Takes that many numbers and brings their sum to the gate.
async fn consume(mut numbers: UnboundedReceiver<u64>, count: u64, gate: &'static Gate) {
    let mut batch = Vec::with_capacity(BATCH);
    let (mut left, mut sum) = (count, 0);
    while left > 0 {
        left -= numbers.recv_many(&mut batch, BATCH).await as u64;
        sum += batch.drain(..).sum::<u64>();
    }
    gate.hit_with(sum);
}

/// Sends each of the numbers below `messages` to all, in one go.
async fn produce(to: Vec<UnboundedSender<u64>>, messages: u64) {
    for number in 0..messages {
        for consumer in &to {
            consumer.send(number).expect("the consumer is there");
        }
    }
}
