//! A tree of actors: leaves send their number up, parents the sum.

use super::{send, start_with_address};
use crate::whole::gate::Gate;
use ::xtra::{Actor, Address, Context, Handler, Mailbox};

const CHILDREN: u64 = 10;

/// An actor with levels of others below it, or a leaf, which ends without a look at its mailbox.
pub(super) struct Node {
    this: Address<Self>,
    levels: u32,
    number: u64,
    up: Up,
    left: u64,
    sum: u64,
}

/// Where a sum goes.
enum Up {
    Parent(Address<Node>),
    Gate(&'static Gate),
}

impl Node {
    /// Starts the actor above all others.
    pub(super) fn start_root(levels: u32, gate: &'static Gate) {
        Self::start(levels, 0, Up::Gate(gate));
    }

    fn start(levels: u32, number: u64, up: Up) {
        start_with_address(|this| Self {
            this,
            levels,
            number,
            up,
            left: CHILDREN,
            sum: 0,
        });
    }

    fn send_up(&self, number: u64) {
        match &self.up {
            Up::Parent(parent) => send(parent, number).expect("the parent is there"),
            Up::Gate(gate) => gate.hit_with(number),
        }
    }
}

impl Actor for Node {
    type Stop = ();

    async fn started(&mut self, _: &Mailbox<Self>) -> Result<(), ()> {
        if self.levels == 0 {
            self.send_up(self.number);
            return Err(());
        }
        for child in 0..CHILDREN {
            let number = self.number * CHILDREN + child;
            let parent = Up::Parent(self.this.clone());
            Self::start(self.levels - 1, number, parent);
        }
        Ok(())
    }

    async fn stopped(self) {}
}

impl Handler<u64> for Node {
    type Return = ();

    async fn handle(&mut self, sum: u64, ctx: &mut Context<Self>) {
        self.sum += sum;
        self.left -= 1;
        if self.left == 0 {
            self.send_up(self.sum);
            ctx.stop_self();
        }
    }
}
