//! Actors that send to no other process.
//!
//! A message to itself does not let others run: an actor handles its whole mailbox before the
//! arbiter looks at another. So these actors have a future that asks to be polled again.

use crate::whole::gate::Gate;
use crate::whole::turns::{Race, Stuck};
use ::actix::{
    Actor, ActorContext, ActorFuture, ActorFutureExt, AsyncContext, Context, WrapFuture,
};
use std::pin::Pin;
use std::task::{self, Poll};
use tokio::task::yield_now;

/// Runs once.
pub(super) struct Hit(pub(super) &'static Gate);

impl Actor for Hit {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.0.hit();
        ctx.stop();
    }
}

/// Takes turns until the last.
pub(super) struct Looper<T>(T);

/// Takes a turn; returns whether another follows.
pub(super) trait Turn: Unpin + 'static {
    fn turn(&mut self) -> bool;
}

impl<T: Turn> Actor for Looper<T> {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.spawn(Turns);
    }
}

struct Turns;

impl<T: Turn> ActorFuture<Looper<T>> for Turns {
    type Output = ();

    fn poll(
        self: Pin<&mut Self>,
        actor: &mut Looper<T>,
        ctx: &mut Context<Looper<T>>,
        task: &mut task::Context<'_>,
    ) -> Poll<()> {
        if actor.0.turn() {
            task.waker().wake_by_ref();
            Poll::Pending
        } else {
            ctx.stop();
            Poll::Ready(())
        }
    }
}

/// Continues this many times.
pub(super) struct Stepper {
    left: u64,
    gate: &'static Gate,
}

pub(super) fn stepper(left: u64, gate: &'static Gate) -> Looper<Stepper> {
    Looper(Stepper { left, gate })
}

impl Turn for Stepper {
    fn turn(&mut self) -> bool {
        if self.left == 0 {
            self.gate.hit();
            return false;
        }
        self.left -= 1;
        true
    }
}

/// Blocks the arbiter in each turn, and lets it look for messages from other threads in between: an
/// actor that wakes itself would be polled again before that.
pub(super) struct Blocker {
    stuck: &'static Stuck,
    gate: &'static Gate,
}

impl Blocker {
    pub(super) fn new(stuck: &'static Stuck, gate: &'static Gate) -> Self {
        Self { stuck, gate }
    }
}

impl Actor for Blocker {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        let (stuck, gate) = (self.stuck, self.gate);
        let turns = async move {
            while stuck.turn() {
                yield_now().await;
            }
            gate.hit();
        };
        let ends = turns.into_actor(self).map(|(), _, ctx| ctx.stop());
        ctx.spawn(ends);
    }
}

/// Runs a lap a turn.
pub(super) struct Racer {
    laps: u64,
    race: &'static Race,
    gate: &'static Gate,
}

pub(super) fn racer(race: &'static Race, gate: &'static Gate) -> Looper<Racer> {
    let laps = 0;
    Looper(Racer { laps, race, gate })
}

impl Turn for Racer {
    fn turn(&mut self) -> bool {
        let goes_on = self.race.lap();
        if goes_on {
            self.laps += 1;
        } else {
            self.race.finish(self.laps);
            self.gate.hit();
        }
        goes_on
    }
}
