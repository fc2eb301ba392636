//! Actors that send only to themselves: a message to itself lets an actor continue.

use crate::whole::gate::Gate;
use crate::whole::turns::{Race, Stuck};
use ::ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::task::yield_now;

type Done = Result<(), ActorProcessingErr>;

/// Runs once.
#[derive(Default)]
pub(super) struct Hit;

impl Actor for Hit {
    type Msg = ();
    type State = &'static Gate;
    type Arguments = &'static Gate;

    async fn pre_start(
        &self,
        _: ActorRef<()>,
        gate: &'static Gate,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(gate)
    }

    async fn post_start(&self, this: ActorRef<()>, gate: &mut &'static Gate) -> Done {
        gate.hit();
        this.stop(None);
        Ok(())
    }
}

/// Continues this many times.
#[derive(Default)]
pub(super) struct Stepper;

impl Actor for Stepper {
    type Msg = ();
    type State = (u64, &'static Gate);
    type Arguments = (u64, &'static Gate);

    async fn pre_start(
        &self,
        this: ActorRef<()>,
        args: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        this.send_message(())?;
        Ok(args)
    }

    async fn handle(&self, this: ActorRef<()>, (): (), (left, gate): &mut Self::State) -> Done {
        *left -= 1;
        if *left == 0 {
            gate.hit();
            this.stop(None);
        } else {
            this.send_message(())?;
        }
        Ok(())
    }
}

/// Blocks its thread in each turn.
#[derive(Default)]
pub(super) struct Blocker;

impl Actor for Blocker {
    type Msg = ();
    type State = (&'static Stuck, &'static Gate);
    type Arguments = (&'static Stuck, &'static Gate);

    async fn pre_start(
        &self,
        this: ActorRef<()>,
        args: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        this.send_message(())?;
        Ok(args)
    }

    async fn handle(&self, this: ActorRef<()>, (): (), (stuck, gate): &mut Self::State) -> Done {
        if stuck.turn() {
            // A mailbox lets others run after 128 messages only.
            yield_now().await;
            this.send_message(())?;
        } else {
            gate.hit();
            this.stop(None);
        }
        Ok(())
    }
}

/// Runs a lap a turn.
#[derive(Default)]
pub(super) struct Racer;

pub(super) struct Laps {
    count: u64,
    race: &'static Race,
    gate: &'static Gate,
}

impl Actor for Racer {
    type Msg = ();
    type State = Laps;
    type Arguments = (&'static Race, &'static Gate);

    async fn pre_start(
        &self,
        this: ActorRef<()>,
        (race, gate): Self::Arguments,
    ) -> Result<Laps, ActorProcessingErr> {
        this.send_message(())?;
        let count = 0;
        Ok(Laps { count, race, gate })
    }

    async fn handle(&self, this: ActorRef<()>, (): (), laps: &mut Laps) -> Done {
        if laps.race.lap() {
            laps.count += 1;
            this.send_message(())?;
        } else {
            laps.race.finish(laps.count);
            laps.gate.hit();
            this.stop(None);
        }
        Ok(())
    }
}
