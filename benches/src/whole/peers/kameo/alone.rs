//! Actors that send only to themselves: a message to itself lets an actor continue.

use crate::whole::gate::Gate;
use crate::whole::turns::{Race, Stuck};
use ::kameo::Actor;
use ::kameo::actor::ActorRef;
use ::kameo::error::Infallible;
use ::kameo::message::{Context, Message};
use tokio::task::yield_now;

/// The message that continues.
struct Again;

fn again<A: Actor + Message<Again>>(actor: &ActorRef<A>) {
    let sent = actor.tell(Again).try_send();
    assert!(sent.is_ok(), "an actor that runs has a mailbox");
}

/// Runs once, and ends because no reference to it is left.
pub(super) struct Hit;

impl Actor for Hit {
    type Args = &'static Gate;
    type Error = Infallible;

    async fn on_start(gate: &'static Gate, _: ActorRef<Self>) -> Result<Self, Infallible> {
        gate.hit();
        Ok(Self)
    }
}

/// Continues this many times.
pub(super) struct Stepper {
    left: u64,
    gate: &'static Gate,
}

impl Actor for Stepper {
    type Args = (u64, &'static Gate);
    type Error = Infallible;

    async fn on_start((left, gate): Self::Args, this: ActorRef<Self>) -> Result<Self, Infallible> {
        again(&this);
        Ok(Self { left, gate })
    }
}

impl Message<Again> for Stepper {
    type Reply = ();

    async fn handle(&mut self, _: Again, ctx: &mut Context<Self, ()>) {
        self.left -= 1;
        if self.left == 0 {
            self.gate.hit();
            ctx.stop();
        } else {
            again(ctx.actor_ref());
        }
    }
}

/// Blocks its thread in each turn.
pub(super) struct Blocker {
    stuck: &'static Stuck,
    gate: &'static Gate,
}

impl Actor for Blocker {
    type Args = (&'static Stuck, &'static Gate);
    type Error = Infallible;

    async fn on_start((stuck, gate): Self::Args, this: ActorRef<Self>) -> Result<Self, Infallible> {
        again(&this);
        Ok(Self { stuck, gate })
    }
}

impl Message<Again> for Blocker {
    type Reply = ();

    async fn handle(&mut self, _: Again, ctx: &mut Context<Self, ()>) {
        if self.stuck.turn() {
            // A mailbox lets others run after 128 messages only.
            yield_now().await;
            again(ctx.actor_ref());
        } else {
            self.gate.hit();
            ctx.stop();
        }
    }
}

/// Runs a lap a turn.
pub(super) struct Racer {
    laps: u64,
    race: &'static Race,
    gate: &'static Gate,
}

impl Actor for Racer {
    type Args = (&'static Race, &'static Gate);
    type Error = Infallible;

    async fn on_start((race, gate): Self::Args, this: ActorRef<Self>) -> Result<Self, Infallible> {
        again(&this);
        let laps = 0;
        Ok(Self { laps, race, gate })
    }
}

impl Message<Again> for Racer {
    type Reply = ();

    async fn handle(&mut self, _: Again, ctx: &mut Context<Self, ()>) {
        if self.race.lap() {
            self.laps += 1;
            again(ctx.actor_ref());
        } else {
            self.race.finish(self.laps);
            self.gate.hit();
            ctx.stop();
        }
    }
}
