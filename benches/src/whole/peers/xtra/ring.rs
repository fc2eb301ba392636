//! Tokens that go round a ring.

use super::{Xtra, send};
use crate::whole::bell::LAST;
use crate::whole::contestant::{Timed, failed};
use crate::whole::gate::Gate;
use ::xtra::{Actor, Address, Context, Handler, Mailbox, spawn_tokio};

pub(super) fn run(xtra: &Xtra, members: u64, tokens: u64, hops: u64) -> Timed {
    let _inside = xtra.enter();
    let gate = xtra.gate;
    let places: Vec<(Address<Member>, _)> = (0..members).map(|_| Mailbox::unbounded()).collect();
    let addresses = places.iter().map(|(address, _)| address.clone());
    let nexts: Vec<_> = addresses.cycle().skip(1).take(places.len()).collect();
    let member = |(place, next)| spawn_tokio(Member { next, gate }, place);
    let ring: Vec<_> = places.into_iter().zip(nexts).map(member).collect();
    let apart = (ring.len() / usize::try_from(tokens).map_err(failed)?).max(1);
    let starts = || ring.iter().step_by(apart);
    let time = gate.time(starts().count() as u64, || {
        starts().try_for_each(|member| send(member, hops).map_err(failed))
    })?;
    gate.time(members, || {
        ring.iter()
            .try_for_each(|member| send(member, LAST).map_err(failed))
    })?;
    Ok(time)
}

/// Sends tokens on to the next actor, with a hop less to go.
#[derive(Actor)]
struct Member {
    next: Address<Self>,
    gate: &'static Gate,
}

impl Handler<u64> for Member {
    type Return = ();

    async fn handle(&mut self, left: u64, ctx: &mut Context<Self>) {
        match left {
            0 => self.gate.hit(),
            LAST => {
                self.gate.hit();
                ctx.stop_self();
            }
            left => send(&self.next, left - 1).expect("the next one is there"),
        }
    }
}
