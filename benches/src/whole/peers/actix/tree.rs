//! A tree of actors: leaves send their number up, parents the sum.

use super::Number;
use crate::whole::gate::Gate;
use ::actix::{Actor, ActorContext, Addr, AsyncContext, Context, Handler};

const CHILDREN: u64 = 10;

/// An actor with levels of others below it, or a leaf.
pub(super) struct Node {
    levels: u32,
    number: u64,
    up: Up,
    left: u64,
    sum: u64,
}

/// Where a sum goes.
enum Up {
    Parent(Addr<Node>),
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
            Up::Parent(parent) => parent.do_send(Number(number)),
            Up::Gate(gate) => gate.hit_with(number),
        }
    }
}

impl Actor for Node {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        if self.levels == 0 {
            self.send_up(self.number);
            ctx.stop();
            return;
        }
        let parent = ctx.address();
        for child in 0..CHILDREN {
            let number = self.number * CHILDREN + child;
            drop(Self::new(self.levels - 1, number, Up::Parent(parent.clone())).start());
        }
    }
}

impl Handler<Number> for Node {
    type Result = ();

    fn handle(&mut self, Number(sum): Number, ctx: &mut Context<Self>) {
        self.sum += sum;
        self.left -= 1;
        if self.left == 0 {
            self.send_up(self.sum);
            ctx.stop();
        }
    }
}
