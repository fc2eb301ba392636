//! Pairs that count a number down in turns.

use super::{Actix, Number};
use crate::whole::contestant::Timed;
use crate::whole::gate::Gate;
use ::actix::{Actor, ActorContext, Addr, Context, Handler, Message};

pub(super) fn run(actix: &Actix, pairs: u64, round_trips: u64) -> Timed {
    let gate = actix.gate;
    let half = |_| Half {
        partner: None,
        gate,
    };
    let (white, black) = (actix.start_all(pairs, half), actix.start_all(pairs, half));
    for (white, black) in white.iter().zip(&black) {
        white.do_send(Partner(black.clone()));
        black.do_send(Partner(white.clone()));
    }
    gate.time(2 * pairs, || {
        for white in &white {
            // The first message, and the last, which is a zero, are half a round trip each.
            white.do_send(Number(2 * round_trips));
        }
        Ok(())
    })
}

/// Sends to its partner, whose address it is sent first.
struct Half {
    partner: Option<Addr<Self>>,
    gate: &'static Gate,
}

impl Actor for Half {
    type Context = Context<Self>;
}

struct Partner(Addr<Half>);

impl Message for Partner {
    type Result = ();
}

impl Handler<Partner> for Half {
    type Result = ();

    fn handle(&mut self, Partner(partner): Partner, _: &mut Context<Self>) {
        self.partner = Some(partner);
    }
}

impl Handler<Number> for Half {
    type Result = ();

    fn handle(&mut self, Number(left): Number, ctx: &mut Context<Self>) {
        if left > 0 {
            let partner = self.partner.as_ref().expect("a partner");
            partner.do_send(Number(left - 1));
        }
        // A half sees `1`, the other `0`.
        if left <= 1 {
            self.gate.hit();
            ctx.stop();
        }
    }
}
