//! Tokens that go round a ring.

use super::{Kameo, start};
use crate::whole::bell::LAST;
use crate::whole::contestant::{Timed, failed};
use crate::whole::gate::Gate;
use ::kameo::Actor;
use ::kameo::actor::ActorRef;
use ::kameo::message::{Context, Message};

pub(super) fn run(kameo: &Kameo, members: u64, tokens: u64, hops: u64) -> Timed {
    let _inside = kameo.enter();
    let gate = kameo.gate;
    let member = |_| start::<Member>(Member { next: None, gate });
    let ring: Vec<_> = (0..members).map(member).collect();
    for (member, next) in ring.iter().zip(ring.iter().cycle().skip(1)) {
        let next = Next(next.clone());
        member.tell(next).try_send().map_err(failed)?;
    }
    let apart = (ring.len() / usize::try_from(tokens).map_err(failed)?).max(1);
    let starts = || ring.iter().step_by(apart);
    let time = gate.time(starts().count() as u64, || {
        starts().try_for_each(|member| member.tell(hops).try_send().map_err(failed))
    })?;
    gate.time(members, || {
        ring.iter()
            .try_for_each(|member| member.tell(LAST).try_send().map_err(failed))
    })?;
    Ok(time)
}

/// Sends tokens on, with a hop less to go, to the actor that its first message names.
#[derive(Actor)]
struct Member {
    next: Option<ActorRef<Self>>,
    gate: &'static Gate,
}

struct Next(ActorRef<Member>);

impl Message<Next> for Member {
    type Reply = ();

    async fn handle(&mut self, Next(next): Next, _: &mut Context<Self, ()>) {
        self.next = Some(next);
    }
}

impl Message<u64> for Member {
    type Reply = ();

    async fn handle(&mut self, left: u64, ctx: &mut Context<Self, ()>) {
        match left {
            0 => self.gate.hit(),
            LAST => {
                self.gate.hit();
                ctx.stop();
            }
            left => {
                let next = self.next.as_ref().expect("a next one");
                let sent = next.tell(left - 1).try_send();
                sent.expect("the next one is there");
            }
        }
    }
}
