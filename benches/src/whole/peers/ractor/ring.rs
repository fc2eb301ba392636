//! Tokens that go round a ring.

use super::Ractor;
use crate::whole::contestant::{Timed, failed};
use crate::whole::gate::Gate;
use ::ractor::{Actor, ActorProcessingErr, ActorRef};

pub(super) fn run(ractor: &Ractor, members: u64, tokens: u64, hops: u64) -> Timed {
    let gate = ractor.gate;
    let ring = ractor.spawn_all::<Member>(members, |_| gate)?;
    for (member, next) in ring.iter().zip(ring.iter().cycle().skip(1)) {
        let next = Message::Next(next.clone());
        member.send_message(next).map_err(failed)?;
    }
    let apart = (ring.len() / usize::try_from(tokens).map_err(failed)?).max(1);
    let starts = || ring.iter().step_by(apart);
    let time = gate.time(starts().count() as u64, || {
        starts().try_for_each(|member| member.send_message(Message::Token(hops)).map_err(failed))
    })?;
    gate.time(members, || {
        ring.iter()
            .try_for_each(|member| member.send_message(Message::End).map_err(failed))
    })?;
    Ok(time)
}

/// Sends tokens on, with a hop less to go, to the actor that its first message names.
#[derive(Default)]
struct Member;

enum Message {
    Next(ActorRef<Self>),
    Token(u64),
    End,
}

struct State {
    next: Option<ActorRef<Message>>,
    gate: &'static Gate,
}

impl Actor for Member {
    type Msg = Message;
    type State = State;
    type Arguments = &'static Gate;

    async fn pre_start(
        &self,
        _: ActorRef<Message>,
        gate: &'static Gate,
    ) -> Result<State, ActorProcessingErr> {
        let next = None;
        Ok(State { next, gate })
    }

    async fn handle(
        &self,
        this: ActorRef<Message>,
        message: Message,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Token(0) => state.gate.hit(),
            Message::Token(left) => {
                let next = state.next.as_ref().expect("a next one");
                next.send_message(Message::Token(left - 1))?;
            }
            Message::Next(next) => state.next = Some(next),
            Message::End => {
                state.gate.hit();
                this.stop(None);
            }
        }
        Ok(())
    }
}
