//! tokio: processes are tasks of a runtime with many threads, mailboxes are unbounded channels.

mod ask;
mod crowd;
mod depend;
mod timers;
mod traffic;

use crate::whole::bell::Bell;
use crate::whole::board::Board;
use crate::whole::contestant::{Contestant, Deliver, Heard, Timed, failed};
use crate::whole::gate::Gate;
use crate::whole::job::Error;
use crate::whole::timed::{Due, Naps};
use crate::whole::turns::{Race, Stuck};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::yield_now;

/// A runtime.
#[derive(Debug)]
pub(super) struct Tokio {
    runtime: Runtime,
    workers: usize,
    gate: &'static Gate,
}

impl Tokio {
    /// Creates a runtime with this number of threads. Its tasks hit the gate.
    pub(super) fn new(workers: usize, gate: &'static Gate) -> Result<Self, Error> {
        Ok(Self {
            runtime: runtime(workers)?,
            workers,
            gate,
        })
    }

    /// The same with timers.
    pub(super) fn with_timers(workers: usize, gate: &'static Gate) -> Result<Self, Error> {
        Ok(Self {
            runtime: runtime_with_timers(workers)?,
            workers,
            gate,
        })
    }
}

/// Creates a runtime with this number of threads, without timers and sockets. Few workloads need
/// these, and idle threads would poll them.
pub(super) fn runtime(workers: usize) -> Result<Runtime, Error> {
    builder(workers).build().map_err(failed)
}

/// As [`runtime`], with timers.
pub(super) fn runtime_with_timers(workers: usize) -> Result<Runtime, Error> {
    builder(workers).enable_time().build().map_err(failed)
}

fn builder(workers: usize) -> Builder {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(workers);
    builder
}

impl Contestant for Tokio {
    type Crowd = Vec<UnboundedSender<u64>>;

    fn spawn(&self, processes: u64) -> Timed {
        let gate = self.gate;
        gate.time(processes, || {
            for _ in 0..processes {
                drop(self.runtime.spawn(hit(gate)));
            }
            Ok(())
        })
    }

    fn skynet(&self, levels: u32) -> Timed {
        traffic::tree(self, levels)
    }

    fn yields(&self, processes: u64, each: u64) -> Timed {
        let gate = self.gate;
        gate.time(processes, || {
            for _ in 0..processes {
                drop(self.runtime.spawn(step(each, gate)));
            }
            Ok(())
        })
    }

    fn ping_pong(&self, pairs: u64, round_trips: u64) -> Timed {
        traffic::pairs::<u64>(self, pairs, round_trips)
    }

    fn ring(&self, members: u64, tokens: u64, hops: u64) -> Timed {
        traffic::ring::<u64>(self, members, tokens, hops)
    }

    fn fan_in(&self, producers: u64, messages: u64) -> Timed {
        traffic::fan_in::<u64>(self, producers, messages)
    }

    fn fan_out(&self, receivers: u64, messages: u64) -> Timed {
        traffic::fan_out::<u64>(self, receivers, messages)
    }

    fn typed_ping_pong(&self, pairs: u64, round_trips: u64) -> Timed {
        traffic::pairs::<traffic::Load>(self, pairs, round_trips)
    }

    fn typed_ring(&self, members: u64, tokens: u64, hops: u64) -> Timed {
        traffic::ring::<traffic::Load>(self, members, tokens, hops)
    }

    fn typed_fan_in(&self, producers: u64, messages: u64) -> Timed {
        traffic::fan_in::<traffic::Load>(self, producers, messages)
    }

    fn typed_fan_out(&self, receivers: u64, messages: u64) -> Timed {
        traffic::fan_out::<traffic::Load>(self, receivers, messages)
    }

    fn crowd(&self, processes: u64) -> Result<(Duration, Self::Crowd), Error> {
        crowd::start(self, processes, |_, messages, gate| {
            crowd::wait(messages, gate)
        })
    }

    fn wake(&self, crowd: Self::Crowd) -> Timed {
        crowd::wake(self, crowd)
    }

    fn command_inline(&self, commands: u64) -> Timed {
        ask::inline(self, commands)
    }

    fn command_asked(&self, commands: u64) -> Timed {
        ask::asked(self, commands)
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
        depend::pool(self, callers, jobs, length)
    }

    fn broadcast(&self, members: u64, messages: u64) -> Timed {
        depend::broadcast(self, members, messages)
    }

    fn broadcast_each(&self, members: u64, messages: u64) -> Timed {
        traffic::fan_out::<u64>(self, members, messages)
    }

    fn sleeper(&self, bell: &'static Bell) -> Result<Deliver, Error> {
        Ok(crowd::sleeper(self, bell))
    }

    fn due(&self, board: &Arc<Board>) -> Result<Deliver, Error> {
        Ok(crowd::due(self, board))
    }

    fn herald(&self, heard: Heard) -> Result<Deliver, Error> {
        Ok(crowd::herald(self, heard))
    }

    fn workers(&self) -> usize {
        self.workers
    }

    fn block(&self, stuck: &'static Stuck, processes: u64) -> Result<(), Error> {
        for _ in 0..processes {
            drop(self.runtime.spawn(turns(stuck, self.gate)));
        }
        Ok(())
    }

    fn race(&self, race: &'static Race, processes: u64) -> Result<(), Error> {
        for _ in 0..processes {
            drop(self.runtime.spawn(laps(race, self.gate)));
        }
        Ok(())
    }

    fn timer_churn(&self, rounds: u64, has_step: bool) -> Timed {
        self.gate.time(1, || {
            drop(
                self.runtime
                    .spawn(timers::churn(rounds, has_step, self.gate)),
            );
            Ok(())
        })
    }

    fn timed_crowd(&self, processes: u64, due: Due) -> Result<(Duration, Self::Crowd), Error> {
        crowd::start(self, processes, |number, messages, gate| {
            timers::wait(due.at(number).into(), messages, gate)
        })
    }

    fn nap(&self, naps: &'static Naps, processes: u64) -> Result<(), Error> {
        for process in 0..processes {
            drop(self.runtime.spawn(timers::nap(naps.of(process), self.gate)));
        }
        Ok(())
    }
}

/// Runs once.
async fn hit(gate: &'static Gate) {
    gate.hit();
}

/// Continues this many times.
async fn step(each: u64, gate: &'static Gate) {
    for _ in 0..each {
        yield_now().await;
    }
    gate.hit();
}

/// Blocks its thread in each turn.
async fn turns(stuck: &'static Stuck, gate: &'static Gate) {
    while stuck.turn() {
        yield_now().await;
    }
    gate.hit();
}

/// Runs a lap a turn.
async fn laps(race: &'static Race, gate: &'static Gate) {
    let mut laps = 0;
    while race.lap() {
        laps += 1;
        yield_now().await;
    }
    race.finish(laps);
    gate.hit();
}
