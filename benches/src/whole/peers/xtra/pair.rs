//! Pairs that count a number down in turns.

use super::{Xtra, send};
use crate::whole::contestant::{Timed, failed};
use crate::whole::gate::Gate;
use ::xtra::{Actor, Address, Context, Handler, Mailbox, spawn_tokio};

pub(super) fn run(xtra: &Xtra, pairs: u64, round_trips: u64) -> Timed {
    let _inside = xtra.enter();
    let gate = xtra.gate;
    let pair = |_| {
        let half = |partner: &Address<Half>| {
            let partner = partner.clone();
            Half { partner, gate }
        };
        let (white, black) = (Mailbox::unbounded(), Mailbox::unbounded());
        let (first, second) = (half(&black.0), half(&white.0));
        drop(spawn_tokio(second, black));
        spawn_tokio(first, white)
    };
    let all: Vec<_> = (0..pairs).map(pair).collect();
    gate.time(2 * pairs, || {
        // The first message, and the last, which is a zero, are half a round trip each.
        all.iter()
            .try_for_each(|white| send(white, 2 * round_trips).map_err(failed))
    })
}

/// Sends to its partner.
#[derive(Actor)]
struct Half {
    partner: Address<Self>,
    gate: &'static Gate,
}

impl Handler<u64> for Half {
    type Return = ();

    async fn handle(&mut self, left: u64, ctx: &mut Context<Self>) {
        if left > 0 {
            send(&self.partner, left - 1).expect("the partner is there");
        }
        // A half sees `1`, the other `0`.
        if left <= 1 {
            self.gate.hit();
            ctx.stop_self();
        }
    }
}
