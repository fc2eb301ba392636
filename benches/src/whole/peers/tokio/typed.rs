//! Pairs, rings and fans whose messages are values of one type.

use super::Tokio;
use crate::whole::contestant::{Timed, failed};
use crate::whole::gate::Gate;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// How many messages a consumer takes at a time, as many as a step of Ganger sees.
const BATCH: usize = 256;

/// A message.
enum Load {
    /// A number, and what makes the message large.
    Number([u64; 4]),
    /// The last one.
    End,
}

const _: () = assert!(size_of::<Load>() == 40);

/// A message with that number.
fn load(number: u64) -> Load {
    Load::Number([number, 1, 2, 3])
}

pub(super) fn ping_pong(tokio: &Tokio, pairs: u64, round_trips: u64) -> Timed {
    let gate = tokio.gate;
    let pair = |_| {
        let (to_white, white) = unbounded_channel();
        let (to_black, black) = unbounded_channel();
        tokio.runtime.spawn(half(white, to_black, gate));
        tokio.runtime.spawn(half(black, to_white.clone(), gate));
        to_white
    };
    let all: Vec<_> = (0..pairs).map(pair).collect();
    gate.time(2 * pairs, || {
        // The first message, and the last, which is a zero, are half a round trip each.
        all.iter()
            .try_for_each(|white| white.send(load(2 * round_trips)).map_err(failed))
    })
}

async fn half(
    mut balls: UnboundedReceiver<Load>,
    partner: UnboundedSender<Load>,
    gate: &'static Gate,
) {
    while let Load::Number([left, a, b, c]) = balls.recv().await.expect("a ball") {
        if left > 0 {
            let ball = Load::Number([left - 1, a, b, c]);
            partner.send(ball).expect("the partner is there");
        }
        // One half sees `1`, the other `0`.
        if left <= 1 {
            return gate.hit();
        }
    }
}

pub(super) fn ring(tokio: &Tokio, members: u64, tokens: u64, hops: u64) -> Timed {
    let gate = tokio.gate;
    let channels = (0..members).map(|_| unbounded_channel());
    let (senders, receivers): (Vec<_>, Vec<_>) = channels.unzip();
    for (tokens, next) in receivers.into_iter().zip(senders.iter().cycle().skip(1)) {
        tokio.runtime.spawn(member(tokens, next.clone(), gate));
    }
    let apart = (senders.len() / usize::try_from(tokens).map_err(failed)?).max(1);
    let starts = || senders.iter().step_by(apart);
    let time = gate.time(starts().count() as u64, || {
        starts().try_for_each(|member| member.send(load(hops)).map_err(failed))
    })?;
    gate.time(members, || {
        senders
            .iter()
            .try_for_each(|member| member.send(Load::End).map_err(failed))
    })?;
    Ok(time)
}

/// Sends tokens on, with one hop less to go.
async fn member(
    mut tokens: UnboundedReceiver<Load>,
    next: UnboundedSender<Load>,
    gate: &'static Gate,
) {
    loop {
        match tokens.recv().await.expect("a token") {
            Load::Number([0, ..]) => gate.hit(),
            Load::Number([left, a, b, c]) => {
                let token = Load::Number([left - 1, a, b, c]);
                next.send(token).expect("the next one is there");
            }
            Load::End => return gate.hit(),
        }
    }
}

pub(super) fn fan_in(tokio: &Tokio, producers: u64, messages: u64) -> Timed {
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

pub(super) fn fan_out(tokio: &Tokio, receivers: u64, messages: u64) -> Timed {
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
async fn consume(mut numbers: UnboundedReceiver<Load>, count: u64, gate: &'static Gate) {
    let mut batch = Vec::with_capacity(BATCH);
    let (mut left, mut sum) = (count, 0);
    while left > 0 {
        left -= numbers.recv_many(&mut batch, BATCH).await as u64;
        for load in batch.drain(..) {
            if let Load::Number([number, ..]) = load {
                sum += number;
            }
        }
    }
    gate.hit_with(sum);
}

/// Sends each of the numbers below `messages` to all, in one go.
async fn produce(to: Vec<UnboundedSender<Load>>, messages: u64) {
    for number in 0..messages {
        for consumer in &to {
            consumer.send(load(number)).expect("the consumer is there");
        }
    }
}
