//! A tree of actors: leaves send their number up, parents the sum.

use super::start;
use crate::whole::gate::Gate;
use ::kameo::Actor;
use ::kameo::actor::ActorRef;
use ::kameo::error::Infallible;
use ::kameo::message::{Context, Message};

const CHILDREN: u64 = 10;

/// An actor with levels of others below it, or a leaf. A leaf ends because no reference to it is
/// left.
pub(super) struct Node {
    levels: u32,
    number: u64,
    up: Up,
    left: u64,
    sum: u64,
}

/// Where a sum goes.
enum Up {
    Parent(ActorRef<Node>),
    Gate(&'static Gate),
}

impl Node {
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

    fn send_up(&self, number: u64) {
        match &self.up {
            Up::Parent(parent) => parent.tell(number).try_send().expect("the parent is there"),
            Up::Gate(gate) => gate.hit_with(number),
        }
    }
}

impl Actor for Node {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(node: Self, this: ActorRef<Self>) -> Result<Self, Infallible> {
        if node.levels == 0 {
            node.send_up(node.number);
            return Ok(node);
        }
        for child in 0..CHILDREN {
            let number = node.number * CHILDREN + child;
            let parent = Up::Parent(this.clone());
            drop(start::<Self>(Self::new(node.levels - 1, number, parent)));
        }
        Ok(node)
    }
}

impl Message<u64> for Node {
    type Reply = ();

    async fn handle(&mut self, sum: u64, ctx: &mut Context<Self, ()>) {
        self.sum += sum;
        self.left -= 1;
        if self.left == 0 {
            self.send_up(self.sum);
            ctx.stop();
        }
    }
}
