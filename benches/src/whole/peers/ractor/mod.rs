//! ractor: processes are actors on a tokio runtime with many threads.
//!
//! An actor has a type, which handles messages, and a state, given at its start here.

mod alone;
mod ask;
mod crowd;
mod depend;
mod fan;
mod pair;
mod pool;
mod ring;
mod tree;

use crate::whole::bell::Bell;
use crate::whole::board::Board;
use crate::whole::contestant::{Contestant, Deliver, Timed, failed};
use crate::whole::gate::Gate;
use crate::whole::job::Error;
use crate::whole::turns::{Race, Stuck};
use ::ractor::{Actor, ActorRef};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// A runtime.
#[derive(Debug)]
pub(super) struct Ractor {
    runtime: Runtime,
    workers: usize,
    gate: &'static Gate,
}

impl Ractor {
    /// Creates a runtime with this number of threads. Its actors hit the gate.
    pub(super) fn new(workers: usize, gate: &'static Gate) -> Result<Self, Error> {
        Ok(Self {
            runtime: super::tokio::runtime(workers)?,
            workers,
            gate,
        })
    }

    /// As [`new`](Self::new), with timers, which a factory needs.
    pub(super) fn with_timers(workers: usize, gate: &'static Gate) -> Result<Self, Error> {
        Ok(Self {
            runtime: super::tokio::runtime_with_timers(workers)?,
            workers,
            gate,
        })
    }

    /// Starts `actors` actors from this thread, each with the arguments that `args` makes of its
    /// number.
    ///
    /// `spawn` runs the actor's `pre_start` here and spawns a single task; `spawn_instant`, which
    /// needs no future, spawns two.
    fn spawn_each<A: Actor + Default>(
        &self,
        actors: u64,
        args: impl Fn(u64) -> A::Arguments,
        mut started: impl FnMut(ActorRef<A::Msg>),
    ) -> Result<(), Error> {
        self.runtime.block_on(async {
            for number in 0..actors {
                let actor = Actor::spawn(None, A::default(), args(number)).await;
                started(actor.map_err(failed)?.0);
            }
            Ok(())
        })
    }

    fn spawn_all<A: Actor + Default>(
        &self,
        actors: u64,
        args: impl Fn(u64) -> A::Arguments,
    ) -> Result<Vec<ActorRef<A::Msg>>, Error> {
        let mut all = Vec::with_capacity(usize::try_from(actors).map_err(failed)?);
        self.spawn_each::<A>(actors, args, |actor| all.push(actor))?;
        Ok(all)
    }

    fn spawn_one<A: Actor + Default>(&self, args: A::Arguments) -> Result<ActorRef<A::Msg>, Error> {
        let actor = Actor::spawn(None, A::default(), args);
        Ok(self.runtime.block_on(actor).map_err(failed)?.0)
    }
}

impl Contestant for Ractor {
    type Crowd = Vec<ActorRef<u64>>;

    fn spawn(&self, processes: u64) -> Timed {
        let gate = self.gate;
        gate.time(processes, || {
            self.spawn_each::<alone::Hit>(processes, |_| gate, drop)
        })
    }

    fn skynet(&self, levels: u32) -> Timed {
        self.gate.time(1, || {
            let root = tree::State::root(levels, self.gate);
            self.spawn_one::<tree::Node>(root).map(drop)
        })
    }

    fn yields(&self, processes: u64, each: u64) -> Timed {
        let gate = self.gate;
        gate.time(processes, || {
            self.spawn_each::<alone::Stepper>(processes, |_| (each, gate), drop)
        })
    }

    fn ping_pong(&self, pairs: u64, round_trips: u64) -> Timed {
        pair::run(self, pairs, round_trips)
    }

    fn ring(&self, members: u64, tokens: u64, hops: u64) -> Timed {
        ring::run(self, members, tokens, hops)
    }

    fn fan_in(&self, producers: u64, messages: u64) -> Timed {
        fan::run_in(self, producers, messages)
    }

    fn fan_out(&self, receivers: u64, messages: u64) -> Timed {
        fan::run_out(self, receivers, messages)
    }

    fn crowd(&self, processes: u64) -> Result<(Duration, Self::Crowd), Error> {
        crowd::start(self, processes)
    }

    fn wake(&self, crowd: Self::Crowd) -> Timed {
        crowd::wake(self, crowd)
    }

    fn command_asked(&self, commands: u64) -> Timed {
        ask::run(self, commands)
    }

    fn call_from_outside(&self, calls: u64) -> Timed {
        ask::call_from_outside(self, calls)
    }

    fn spawn_monitored(&self, processes: u64) -> Timed {
        depend::spawn_monitored(self, processes)
    }

    fn restart(&self, restarts: u64) -> Timed {
        depend::restart(self, restarts)
    }

    fn pool(&self, callers: u64, jobs: u64, length: Duration) -> Timed {
        pool::run(self, callers, jobs, length)
    }

    fn broadcast(&self, members: u64, messages: u64) -> Timed {
        depend::broadcast(self, members, messages)
    }

    fn sleeper(&self, bell: &'static Bell) -> Result<Deliver, Error> {
        crowd::sleeper(self, bell)
    }

    fn due(&self, board: &Arc<Board>) -> Result<Deliver, Error> {
        crowd::due(self, board)
    }

    fn workers(&self) -> usize {
        self.workers
    }

    fn block(&self, stuck: &'static Stuck, processes: u64) -> Result<(), Error> {
        let gate = self.gate;
        self.spawn_each::<alone::Blocker>(processes, |_| (stuck, gate), drop)
    }

    fn race(&self, race: &'static Race, processes: u64) -> Result<(), Error> {
        let gate = self.gate;
        self.spawn_each::<alone::Racer>(processes, |_| (race, gate), drop)
    }
}
