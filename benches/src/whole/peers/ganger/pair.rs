//! Pairs that count a number down in turns.

use super::Ganger;
use crate::whole::contestant::{Timed, failed};
use crate::whole::gate::Gate;
use ganger_proc_api::{Context, Event, Events, Message, Payload, Process, StepOutput, StepResult};
use ganger_sched::Address;

/// Times pairs that have each other's address.
pub(super) fn by_handle(ganger: &Ganger, pairs: u64, round_trips: u64) -> Timed {
    let gate = ganger.gate;
    let half = |_| Half {
        partner: None,
        gate,
    };
    let (white, black) = (
        ganger.submit_all(pairs, half)?,
        ganger.submit_all(pairs, half)?,
    );
    for (white, black) in white.iter().zip(&black) {
        for (to, partner) in [(white, black), (black, white)] {
            let partner = Payload::any(partner.clone());
            to.send(Message::new("partner", partner)).map_err(failed)?;
        }
    }
    gate.time(2 * pairs, || {
        for white in &white {
            // The first message, and the last, which is a zero, are half a round trip each.
            let ball = Message::new("ball", 2 * round_trips);
            white.send(ball).map_err(failed)?;
        }
        Ok(())
    })
}

/// Times pairs that answer the PID of a message's sender.
pub(super) fn by_pid(ganger: &Ganger, pairs: u64, round_trips: u64) -> Timed {
    let gate = ganger.gate;
    let half = |_| Answerer { gate };
    let (white, black) = (
        ganger.submit_all(pairs, half)?,
        ganger.submit_all(pairs, half)?,
    );
    gate.time(2 * pairs, || {
        for (white, black) in white.iter().zip(&black) {
            let ball = Message::new("ball", 2 * round_trips).from_pid(black.pid());
            white.send(ball).map_err(failed)?;
        }
        Ok(())
    })
}

/// Sends to its partner, whose address it is sent first.
struct Half {
    partner: Option<Address>,
    gate: &'static Gate,
}

impl Process for Half {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for event in events {
            let Event::Message(message) = event else {
                continue;
            };
            let payload = message.payloads.into_first();
            let Some(left) = payload.as_u64() else {
                self.partner = payload.downcast().ok();
                continue;
            };
            if left > 0 {
                let partner = self.partner.as_ref().expect("a partner");
                partner.send(Message::new("ball", left - 1))?;
            }
            // A half sees `1`, the other `0`.
            if left <= 1 {
                self.gate.hit();
                out.done(());
            }
        }
        Ok(())
    }
}

/// Sends each answer to the sender of the message.
struct Answerer {
    gate: &'static Gate,
}

impl Process for Answerer {
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for event in events {
            let Event::Message(message) = event else {
                continue;
            };
            let left = message.payloads.first().and_then(|left| left.as_u64());
            let left = left.expect("a number");
            if left > 0 {
                ctx.send(message.source.expect("a sender"), "ball", left - 1)?;
            }
            if left <= 1 {
                self.gate.hit();
                out.done(());
            }
        }
        Ok(())
    }
}
