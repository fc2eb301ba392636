//! kameo: processes are actors with unbounded mailboxes, on a tokio runtime with many threads.

mod alone;
mod ask;
mod crowd;
mod depend;
mod fan;
mod pair;
mod ring;
mod tree;

use crate::whole::bell::Bell;
use crate::whole::board::Board;
use crate::whole::contestant::{Contestant, Deliver, Timed};
use crate::whole::gate::Gate;
use crate::whole::job::Error;
use crate::whole::turns::{Race, Stuck};
use ::kameo::Actor;
use ::kameo::actor::{ActorRef, Spawn};
use ::kameo::mailbox;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{EnterGuard, Runtime};

/// A runtime.
#[derive(Debug)]
pub(super) struct Kameo {
    runtime: Runtime,
    workers: usize,
    gate: &'static Gate,
}

impl Kameo {
    /// Creates a runtime with this number of threads. Its actors hit the gate.
    pub(super) fn new(workers: usize, gate: &'static Gate) -> Result<Self, Error> {
        Ok(Self {
            runtime: super::tokio::runtime(workers)?,
            workers,
            gate,
        })
    }

    /// The calling thread may start actors while this is alive.
    fn enter(&self) -> EnterGuard<'_> {
        self.runtime.enter()
    }
}

/// Starts an actor, on the runtime that the thread has entered.
fn start<A: Actor>(args: A::Args) -> ActorRef<A> {
    A::spawn_with_mailbox(args, mailbox::unbounded())
}

impl Contestant for Kameo {
    type Crowd = Vec<ActorRef<crowd::Waiter>>;

    fn spawn(&self, processes: u64) -> Timed {
        let _inside = self.enter();
        self.gate.time(processes, || {
            for _ in 0..processes {
                drop(start::<alone::Hit>(self.gate));
            }
            Ok(())
        })
    }

    fn skynet(&self, levels: u32) -> Timed {
        let _inside = self.enter();
        self.gate.time(1, || {
            drop(start::<tree::Node>(tree::Node::root(levels, self.gate)));
            Ok(())
        })
    }

    fn yields(&self, processes: u64, each: u64) -> Timed {
        let _inside = self.enter();
        let gate = self.gate;
        gate.time(processes, || {
            for _ in 0..processes {
                drop(start::<alone::Stepper>((each, gate)));
            }
            Ok(())
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

    fn restart(&self, restarts: u64) -> Timed {
        depend::restart(self, restarts)
    }

    fn restart_in_place(&self, restarts: u64) -> Timed {
        depend::restart(self, restarts)
    }

    fn sleeper(&self, bell: &'static Bell) -> Result<Deliver, Error> {
        Ok(crowd::sleeper(self, bell))
    }

    fn due(&self, board: &Arc<Board>) -> Result<Deliver, Error> {
        Ok(crowd::due(self, board))
    }

    fn workers(&self) -> usize {
        self.workers
    }

    fn block(&self, stuck: &'static Stuck, processes: u64) -> Result<(), Error> {
        let _inside = self.enter();
        for _ in 0..processes {
            drop(start::<alone::Blocker>((stuck, self.gate)));
        }
        Ok(())
    }

    fn race(&self, race: &'static Race, processes: u64) -> Result<(), Error> {
        let _inside = self.enter();
        for _ in 0..processes {
            drop(start::<alone::Racer>((race, self.gate)));
        }
        Ok(())
    }
}
