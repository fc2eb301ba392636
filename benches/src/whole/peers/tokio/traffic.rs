//! Tasks that send: trees, pairs, rings and fans, whose messages are bare numbers, or values of a
//! single type.

use super::Tokio;
use crate::whole::bell::LAST;
use crate::whole::contestant::{Timed, failed};
use crate::whole::gate::Gate;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// A message with a number.
pub(super) trait Numbered: Send + 'static {
    fn new(number: u64) -> Self;

    /// Creates the last message, which has no number.
    fn last() -> Self;

    /// Returns its number; `None` for the last message.
    fn number(&self) -> Option<u64>;

    /// The same with another number.
    fn renumbered(self, number: u64) -> Self;
}

impl Numbered for u64 {
    fn new(number: u64) -> Self {
        number
    }

    fn last() -> Self {
        LAST
    }

    fn number(&self) -> Option<u64> {
        (*self != LAST).then_some(*self)
    }

    fn renumbered(self, number: u64) -> Self {
        number
    }
}

/// A message of a type of its own.
pub(super) enum Load {
    /// A number, and padding that makes the message large.
    Number([u64; 4]),
    /// The last one.
    End,
}

const _: () = assert!(size_of::<Load>() == 40);

impl Numbered for Load {
    fn new(number: u64) -> Self {
        Self::Number([number, 1, 2, 3])
    }

    fn last() -> Self {
        Self::End
    }

    fn number(&self) -> Option<u64> {
        match *self {
            Self::Number([number, ..]) => Some(number),
            Self::End => None,
        }
    }

    fn renumbered(self, number: u64) -> Self {
        match self {
            Self::Number([_, a, b, c]) => Self::Number([number, a, b, c]),
            Self::End => Self::new(number),
        }
    }
}

const CHILDREN: u64 = 10;

pub(super) fn tree(tokio: &Tokio, levels: u32) -> Timed {
    let gate = tokio.gate;
    gate.time(1, || {
        let _inside = tokio.runtime.enter();
        let (up, mut sums) = unbounded_channel();
        node(levels, 0, up);
        tokio.runtime.spawn(async move {
            gate.hit_with(sums.recv().await.expect("a sum"));
        });
        Ok(())
    })
}

/// Spawns a task with levels of others below it, or a leaf.
fn node(levels: u32, number: u64, up: UnboundedSender<u64>) {
    tokio::spawn(async move {
        let sum = if levels == 0 {
            number
        } else {
            let (from, mut sums) = unbounded_channel();
            for child in 0..CHILDREN {
                node(levels - 1, number * CHILDREN + child, from.clone());
            }
            let mut sum = 0;
            for _ in 0..CHILDREN {
                sum += sums.recv().await.expect("a number");
            }
            sum
        };
        up.send(sum).expect("the parent is there");
    });
}

pub(super) fn pairs<M: Numbered>(tokio: &Tokio, pairs: u64, round_trips: u64) -> Timed {
    let gate = tokio.gate;
    let pair = |_| {
        let (to_white, white) = unbounded_channel();
        let (to_black, black) = unbounded_channel();
        tokio.runtime.spawn(half::<M>(white, to_black, gate));
        tokio.runtime.spawn(half(black, to_white.clone(), gate));
        to_white
    };
    let all: Vec<_> = (0..pairs).map(pair).collect();
    gate.time(2 * pairs, || {
        // The first message, and the last, which is a zero, are half a round trip each.
        all.iter()
            .try_for_each(|white| white.send(M::new(2 * round_trips)).map_err(failed))
    })
}

async fn half<M: Numbered>(
    mut balls: UnboundedReceiver<M>,
    partner: UnboundedSender<M>,
    gate: &'static Gate,
) {
    loop {
        let ball = balls.recv().await.expect("a ball");
        let left = ball.number().expect("none is the last");
        if left > 0 {
            let ball = ball.renumbered(left - 1);
            partner.send(ball).expect("the partner is there");
        }
        // A half sees `1`, the other `0`.
        if left <= 1 {
            return gate.hit();
        }
    }
}

pub(super) fn ring<M: Numbered>(tokio: &Tokio, members: u64, tokens: u64, hops: u64) -> Timed {
    let gate = tokio.gate;
    let channels = (0..members).map(|_| unbounded_channel());
    let (senders, receivers): (Vec<_>, Vec<_>) = channels.unzip();
    for (tokens, next) in receivers.into_iter().zip(senders.iter().cycle().skip(1)) {
        tokio.runtime.spawn(member::<M>(tokens, next.clone(), gate));
    }
    let apart = (senders.len() / usize::try_from(tokens).map_err(failed)?).max(1);
    let starts = || senders.iter().step_by(apart);
    let time = gate.time(starts().count() as u64, || {
        starts().try_for_each(|member| member.send(M::new(hops)).map_err(failed))
    })?;
    gate.time(members, || {
        senders
            .iter()
            .try_for_each(|member| member.send(M::last()).map_err(failed))
    })?;
    Ok(time)
}

/// Sends tokens on, with a hop less to go.
async fn member<M: Numbered>(
    mut tokens: UnboundedReceiver<M>,
    next: UnboundedSender<M>,
    gate: &'static Gate,
) {
    loop {
        let token = tokens.recv().await.expect("a token");
        match token.number() {
            Some(0) => gate.hit(),
            Some(left) => {
                let token = token.renumbered(left - 1);
                next.send(token).expect("the next one is there");
            }
            None => return gate.hit(),
        }
    }
}

/// How many messages a consumer takes at a time, as many as a step of Ganger sees.
const BATCH: usize = 256;

pub(super) fn fan_in<M: Numbered>(tokio: &Tokio, producers: u64, messages: u64) -> Timed {
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

pub(super) fn fan_out<M: Numbered>(tokio: &Tokio, receivers: u64, messages: u64) -> Timed {
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
