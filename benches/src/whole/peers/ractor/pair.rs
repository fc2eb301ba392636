//! Pairs that count a number down in turns.

use super::Ractor;
use crate::whole::contestant::{Timed, failed};
use crate::whole::gate::Gate;
use ::ractor::{Actor, ActorProcessingErr, ActorRef};

pub(super) fn run(ractor: &Ractor, pairs: u64, round_trips: u64) -> Timed {
    let gate = ractor.gate;
    let white = ractor.spawn_all::<Half>(pairs, |_| gate)?;
    let black = ractor.spawn_all::<Half>(pairs, |_| gate)?;
    for (white, black) in white.iter().zip(&black) {
        for (to, partner) in [(white, black), (black, white)] {
            let partner = Message::Partner(partner.clone());
            to.send_message(partner).map_err(failed)?;
        }
    }
    gate.time(2 * pairs, || {
        for white in &white {
            // The first message, and the last, which is a zero, are half a round trip each.
            let ball = Message::Ball(2 * round_trips);
            white.send_message(ball).map_err(failed)?;
        }
        Ok(())
    })
}

/// Sends to its partner, which its first message names.
#[derive(Default)]
struct Half;

enum Message {
    Partner(ActorRef<Self>),
    Ball(u64),
}

struct State {
    partner: Option<ActorRef<Message>>,
    gate: &'static Gate,
}

impl Actor for Half {
    type Msg = Message;
    type State = State;
    type Arguments = &'static Gate;

    async fn pre_start(
        &self,
        _: ActorRef<Message>,
        gate: &'static Gate,
    ) -> Result<State, ActorProcessingErr> {
        let partner = None;
        Ok(State { partner, gate })
    }

    async fn handle(
        &self,
        this: ActorRef<Message>,
        message: Message,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let left = match message {
            Message::Partner(partner) => {
                state.partner = Some(partner);
                return Ok(());
            }
            Message::Ball(left) => left,
        };
        if left > 0 {
            let partner = state.partner.as_ref().expect("a partner");
            partner.send_message(Message::Ball(left - 1))?;
        }
        // A half sees `1`, the other `0`.
        if left <= 1 {
            state.gate.hit();
            this.stop(None);
        }
        Ok(())
    }
}
