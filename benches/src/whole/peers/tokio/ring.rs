//! Tokens that go round a ring.

use super::Tokio;
use super::typed::Numbered;
use crate::whole::contestant::{Timed, failed};
use crate::whole::gate::Gate;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

pub(super) fn run<M: Numbered>(tokio: &Tokio, members: u64, tokens: u64, hops: u64) -> Timed {
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
