//! A tree of actors: leaves send their number up, parents the sum.

use crate::whole::gate::Gate;
use ::ractor::{Actor, ActorProcessingErr, ActorRef};

const CHILDREN: u64 = 10;

/// An actor with levels of others below it, or a leaf.
#[derive(Default)]
pub(super) struct Node;

pub(super) struct State {
    levels: u32,
    number: u64,
    up: Up,
    left: u64,
    sum: u64,
}

/// Where a sum goes.
enum Up {
    Parent(ActorRef<u64>),
    Gate(&'static Gate),
}

impl State {
    /// Creates the actor above all others.
    pub(super) fn root(levels: u32, gate: &'static Gate) -> Self {
        Self::new(levels, 0, Up::Gate(gate))
    }

    fn new(levels: u32, number: u64, up: Up) -> Self {
        Self {
            levels,
            number,
            up,
            left: CHILDREN,
            sum: 0,
        }
    }

    fn send_up(&self, number: u64) -> Result<(), ActorProcessingErr> {
        match &self.up {
            Up::Parent(parent) => parent.send_message(number)?,
            Up::Gate(gate) => gate.hit_with(number),
        }
        Ok(())
    }
}

impl Actor for Node {
    type Msg = u64;
    type State = State;
    type Arguments = State;

    async fn pre_start(&self, _: ActorRef<u64>, state: State) -> Result<State, ActorProcessingErr> {
        Ok(state)
    }

    async fn post_start(
        &self,
        this: ActorRef<u64>,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        if state.levels == 0 {
            state.send_up(state.number)?;
            this.stop(None);
            return Ok(());
        }
        for child in 0..CHILDREN {
            let number = state.number * CHILDREN + child;
            let child = State::new(state.levels - 1, number, Up::Parent(this.clone()));
            Actor::spawn(None, Self, child).await?;
        }
        Ok(())
    }

    async fn handle(
        &self,
        this: ActorRef<u64>,
        sum: u64,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        state.sum += sum;
        state.left -= 1;
        if state.left == 0 {
            state.send_up(state.sum)?;
            this.stop(None);
        }
        Ok(())
    }
}
