//! Pairs that count a number down in turns.

use super::Tokio;
use super::typed::Numbered;
use crate::whole::contestant::{Timed, failed};
use crate::whole::gate::Gate;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

pub(super) fn run<M: Numbered>(tokio: &Tokio, pairs: u64, round_trips: u64) -> Timed {
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
