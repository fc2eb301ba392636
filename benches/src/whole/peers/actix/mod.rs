//! actix: processes are actors on an arbiter, a single thread, whatever the number of workers
//! elsewhere. An actor stays on the arbiter that it was started on.

mod alone;
mod ask;
mod crowd;
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
use ::actix::{Actor, Addr, Arbiter, Context, Message, System, SystemRunner};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// An arbiter.
pub(super) struct Actix {
    arbiter: Arbiter,
    gate: &'static Gate,
    /// The owner of the arbiter, which need not run itself.
    _system: SystemRunner,
}

/// The message of nearly all workloads.
struct Number(u64);

impl Message for Number {
    type Result = ();
}

impl Actix {
    /// An arbiter, whose actors hit the gate.
    pub(super) fn new(gate: &'static Gate) -> Self {
        let system = System::new();
        Self {
            arbiter: Arbiter::new(),
            gate,
            _system: system,
        }
    }

    fn start<A: Actor<Context = Context<A>> + Send>(&self, actor: A) -> Addr<A> {
        A::start_in_arbiter(&self.arbiter.handle(), |_| actor)
    }

    fn start_all<A: Actor<Context = Context<A>> + Send>(
        &self,
        actors: u64,
        make: impl Fn(u64) -> A,
    ) -> Vec<Addr<A>> {
        (0..actors).map(|number| self.start(make(number))).collect()
    }
}

impl Contestant for Actix {
    type Crowd = Vec<Addr<crowd::Waiter>>;

    fn spawn(&self, processes: u64) -> Timed {
        let gate = self.gate;
        gate.time(processes, || {
            for _ in 0..processes {
                drop(self.start(alone::Hit(gate)));
            }
            Ok(())
        })
    }

    fn skynet(&self, levels: u32) -> Timed {
        self.gate.time(1, || {
            drop(self.start(tree::Node::root(levels, self.gate)));
            Ok(())
        })
    }

    fn yields(&self, processes: u64, each: u64) -> Timed {
        let gate = self.gate;
        gate.time(processes, || {
            for _ in 0..processes {
                drop(self.start(alone::stepper(each, gate)));
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

    fn sleeper(&self, bell: &'static Bell) -> Result<Deliver, Error> {
        Ok(crowd::sleeper(self, bell))
    }

    fn due(&self, board: &Arc<Board>) -> Result<Deliver, Error> {
        Ok(crowd::due(self, board))
    }

    fn workers(&self) -> usize {
        1
    }

    fn block(&self, stuck: &'static Stuck, processes: u64) -> Result<(), Error> {
        for _ in 0..processes {
            drop(self.start(alone::Blocker::new(stuck, self.gate)));
        }
        Ok(())
    }

    fn race(&self, race: &'static Race, processes: u64) -> Result<(), Error> {
        for _ in 0..processes {
            drop(self.start(alone::racer(race, self.gate)));
        }
        Ok(())
    }
}

impl fmt::Debug for Actix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Actix").finish_non_exhaustive()
    }
}
