//! Tokens that go round a ring.

use super::Tokio;
use crate::whole::contestant::{LAST, Timed, failed};
use crate::whole::gate::Gate;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

pub(super) fn run(tokio: &Tokio, members: u64, tokens: u64, hops: u64) -> Timed {
    let gate = tokio.gate;
    let channels = (0..members).map(|_| unbounded_channel());
    let (senders, receivers): (Vec<_>, Vec<_>) = channels.unzip();
    for (tokens, next) in receivers.into_iter().zip(senders.iter().cycle().skip(1)) {
        tokio.runtime.spawn(member(tokens, next.clone(), gate));
    }
    let apart = (senders.len() / usize::try_from(tokens).map_err(failed)?).max(1);
    let starts = || senders.iter().step_by(apart);
    let time = gate.time(starts().count() as u64, || {
        starts().try_for_each(|member| member.send(hops).map_err(failed))
    })?;
    gate.time(members, || {
        senders
            .iter()
            .try_for_each(|member| member.send(LAST).map_err(failed))
    })?;
    Ok(time)
}

/// Sends tokens on, with one hop less to go.
async fn member(
    mut tokens: UnboundedReceiver<u64>,
    next: UnboundedSender<u64>,
    gate: &'static Gate,
) {
    loop {
        match tokens.recv().await.expect("a token") {
            0 => gate.hit(),
            LAST => return gate.hit(),
            left => next.send(left - 1).expect("the next one is there"),
        }
    }
}
