//! Many senders to a single receiver, and a single sender to many.

use super::Ractor;
use crate::whole::contestant::Timed;
use crate::whole::gate::Gate;
use ::ractor::{Actor, ActorProcessingErr, ActorRef};

pub(super) fn run_in(ractor: &Ractor, producers: u64, messages: u64) -> Timed {
    let count = producers * messages;
    let consumer = ractor.spawn_one::<Consumer>((count, ractor.gate))?;
    ractor.gate.time(1, || {
        let args = |_| (messages, vec![consumer.clone()]);
        ractor.spawn_each::<Producer>(producers, args, drop)
    })
}

pub(super) fn run_out(ractor: &Ractor, receivers: u64, messages: u64) -> Timed {
    let to = ractor.spawn_all::<Consumer>(receivers, |_| (messages, ractor.gate))?;
    ractor.gate.time(receivers, || {
        ractor.spawn_one::<Producer>((messages, to)).map(drop)
    })
}

/// Takes `left` numbers, brings their sum to the gate, and ends.
#[derive(Default)]
pub(super) struct Consumer;

pub(super) struct State {
    left: u64,
    sum: u64,
    gate: &'static Gate,
}

impl Actor for Consumer {
    type Msg = u64;
    type State = State;
    type Arguments = (u64, &'static Gate);

    async fn pre_start(
        &self,
        _: ActorRef<u64>,
        (left, gate): Self::Arguments,
    ) -> Result<State, ActorProcessingErr> {
        let sum = 0;
        Ok(State { left, sum, gate })
    }

    async fn handle(
        &self,
        this: ActorRef<u64>,
        number: u64,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        state.sum += number;
        state.left -= 1;
        if state.left == 0 {
            state.gate.hit_with(state.sum);
            this.stop(None);
        }
        Ok(())
    }
}

/// Sends each of the numbers below a bound to all, without a pause, and ends.
#[derive(Default)]
struct Producer;

impl Actor for Producer {
    type Msg = ();
    type State = (u64, Vec<ActorRef<u64>>);
    type Arguments = (u64, Vec<ActorRef<u64>>);

    async fn pre_start(
        &self,
        _: ActorRef<()>,
        args: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(args)
    }

    async fn post_start(
        &self,
        this: ActorRef<()>,
        (messages, to): &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        for number in 0..*messages {
            for consumer in to.iter() {
                consumer.send_message(number)?;
            }
        }
        this.stop(None);
        Ok(())
    }
}
