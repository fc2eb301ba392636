//! Actors that send only to themselves: a message to itself lets an actor continue.
//!
//! The message alone does not let others run: an actor handles its whole mailbox before its task
//! yields. So each message is taken off the budget that tokio gives a task, as tokio's own channels
//! do. Other actors run after 128 messages.

use super::{send, start_with_address};
use crate::whole::gate::Gate;
use crate::whole::turns::{Race, Stuck};
use ::xtra::{Actor, Address, Context, Handler, Mailbox};
use tokio::task::coop::consume_budget;
use tokio::task::yield_now;

/// The message that continues.
struct Again;

fn again<A: Handler<Again>>(actor: &Address<A>) {
    send(actor, Again).expect("an actor that runs has a mailbox");
}

/// Starts an actor that is made with its own address, with its first message in its mailbox.
fn start<A: Actor<Stop = ()> + Handler<Again>>(actor: impl FnOnce(Address<A>) -> A) {
    start_with_address(|this| {
        again(&this);
        actor(this)
    });
}

/// Runs once, and ends without a look at its mailbox.
pub(super) struct Hit(pub(super) &'static Gate);

impl Actor for Hit {
    type Stop = ();

    async fn started(&mut self, _: &Mailbox<Self>) -> Result<(), ()> {
        self.0.hit();
        Err(())
    }

    async fn stopped(self) {}
}

/// Continues this many times.
#[derive(Actor)]
struct Stepper {
    this: Address<Self>,
    left: u64,
    gate: &'static Gate,
}

pub(super) fn step(left: u64, gate: &'static Gate) {
    start(|this| Stepper { this, left, gate });
}

impl Handler<Again> for Stepper {
    type Return = ();

    async fn handle(&mut self, _: Again, ctx: &mut Context<Self>) {
        self.left -= 1;
        if self.left == 0 {
            self.gate.hit();
            ctx.stop_self();
        } else {
            again(&self.this);
            consume_budget().await;
        }
    }
}

/// Blocks its thread in each turn.
#[derive(Actor)]
struct Blocker {
    this: Address<Self>,
    stuck: &'static Stuck,
    gate: &'static Gate,
}

pub(super) fn block(stuck: &'static Stuck, gate: &'static Gate) {
    start(|this| Blocker { this, stuck, gate });
}

impl Handler<Again> for Blocker {
    type Return = ();

    async fn handle(&mut self, _: Again, ctx: &mut Context<Self>) {
        if self.stuck.turn() {
            again(&self.this);
            // The budget would let others run after 128 turns only.
            yield_now().await;
        } else {
            self.gate.hit();
            ctx.stop_self();
        }
    }
}

/// Runs a lap a turn.
#[derive(Actor)]
struct Racer {
    this: Address<Self>,
    laps: u64,
    race: &'static Race,
    gate: &'static Gate,
}

pub(super) fn race(race: &'static Race, gate: &'static Gate) {
    start(|this| Racer {
        this,
        laps: 0,
        race,
        gate,
    });
}

impl Handler<Again> for Racer {
    type Return = ();

    async fn handle(&mut self, _: Again, ctx: &mut Context<Self>) {
        if self.race.lap() {
            self.laps += 1;
            again(&self.this);
            consume_budget().await;
        } else {
            self.race.finish(self.laps);
            self.gate.hit();
            ctx.stop_self();
        }
    }
}
