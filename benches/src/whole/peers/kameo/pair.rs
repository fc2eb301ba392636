//! Pairs that count a number down in turns.

use super::{Kameo, start};
use crate::whole::contestant::{Timed, failed};
use crate::whole::gate::Gate;
use ::kameo::Actor;
use ::kameo::actor::ActorRef;
use ::kameo::message::{Context, Message};

pub(super) fn run(kameo: &Kameo, pairs: u64, round_trips: u64) -> Timed {
    let _inside = kameo.enter();
    let gate = kameo.gate;
    let pair = |_| {
        let half = || Half {
            partner: None,
            gate,
        };
        let (white, black) = (start::<Half>(half()), start::<Half>(half()));
        for (to, partner) in [(&white, &black), (&black, &white)] {
            let partner = Partner(partner.clone());
            to.tell(partner).try_send().map_err(failed)?;
        }
        Ok(white)
    };
    let all: Vec<_> = (0..pairs).map(pair).collect::<Result<_, _>>()?;
    gate.time(2 * pairs, || {
        for white in &all {
            // The first message, and the last, which is a zero, are half a round trip each.
            white.tell(2 * round_trips).try_send().map_err(failed)?;
        }
        Ok(())
    })
}

/// Sends to its partner, which its first message names.
#[derive(Actor)]
struct Half {
    partner: Option<ActorRef<Self>>,
    gate: &'static Gate,
}

struct Partner(ActorRef<Half>);

impl Message<Partner> for Half {
    type Reply = ();

    async fn handle(&mut self, Partner(partner): Partner, _: &mut Context<Self, ()>) {
        self.partner = Some(partner);
    }
}

impl Message<u64> for Half {
    type Reply = ();

    async fn handle(&mut self, left: u64, ctx: &mut Context<Self, ()>) {
        if left > 0 {
            let partner = self.partner.as_ref().expect("a partner");
            let sent = partner.tell(left - 1).try_send();
            sent.expect("the partner is there");
        }
        // A half sees `1`, the other `0`.
        if left <= 1 {
            self.gate.hit();
            ctx.stop();
        }
    }
}
