//! Ganger: processes are state machines, which the workers of a scheduler step.

mod alone;
mod ask;
mod crowd;
mod depend;
mod fan;
mod pair;
mod ring;
mod supervised;
mod timers;
mod tree;
mod typed;

use crate::whole::bell::Bell;
use crate::whole::board::Board;
use crate::whole::contestant::{Contestant, Deliver, Heard, Timed, failed};
use crate::whole::gate::Gate;
use crate::whole::job::Error;
use crate::whole::timed::{Due, Naps};
use crate::whole::turns::{Race, Stuck};
use ganger_proc_api::Process;
use ganger_sched::{Address, ProcessHandle, Scheduler};
use ganger_supervise::ChildSpec;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A scheduler with handlers for the commands, and the process that answers some of them.
pub struct Ganger {
    scheduler: Scheduler,
    workers: usize,
    gate: &'static Gate,
}

impl Ganger {
    /// Creates a scheduler with this number of running workers. Its processes hit the gate.
    ///
    /// # Errors
    /// When the scheduler can't be started.
    pub fn new(workers: usize, gate: &'static Gate) -> Result<Self, Error> {
        let scheduler = Scheduler::builder().workers(workers).build();
        let scheduler = scheduler.map_err(failed)?;
        ask::register(&scheduler)?;
        scheduler.start().map_err(failed)?;
        Ok(Self {
            scheduler,
            workers,
            gate,
        })
    }

    fn submit(&self, process: impl Process) -> Result<ProcessHandle, Error> {
        self.scheduler.submit(process, "main", ()).map_err(failed)
    }

    /// Submits processes that `make` makes of their numbers.
    fn submit_all<P: Process>(
        &self,
        processes: u64,
        make: impl Fn(u64) -> P,
    ) -> Result<Vec<Address>, Error> {
        let submit = |number| Ok(self.submit(make(number))?.address().clone());
        (0..processes).map(submit).collect()
    }
}

impl Contestant for Ganger {
    type Crowd = Vec<ProcessHandle>;

    fn spawn(&self, processes: u64) -> Timed {
        self.gate.time(processes, || {
            (0..processes).try_for_each(|_| self.submit(alone::Hit(self.gate)).map(drop))
        })
    }

    fn skynet(&self, levels: u32) -> Timed {
        self.gate.time(1, || {
            let root = tree::Node::root(levels, self.gate);
            self.submit(root).map(drop)
        })
    }

    fn yields(&self, processes: u64, each: u64) -> Timed {
        let gate = self.gate;
        self.gate.time(processes, || {
            (0..processes)
                .try_for_each(|_| self.submit(alone::Stepper { left: each, gate }).map(drop))
        })
    }

    fn ping_pong(&self, pairs: u64, round_trips: u64) -> Timed {
        pair::by_handle(self, pairs, round_trips)
    }

    fn ping_pong_by_pid(&self, pairs: u64, round_trips: u64) -> Timed {
        pair::by_pid(self, pairs, round_trips)
    }

    fn ring(&self, members: u64, tokens: u64, hops: u64) -> Timed {
        ring::run(self, members, tokens, hops)
    }

    fn fan_in(&self, producers: u64, messages: u64) -> Timed {
        fan::run_in(self, producers, messages, |to| fan::Producer {
            messages,
            to,
        })
    }

    fn fan_in_all(&self, producers: u64, messages: u64) -> Timed {
        fan::run_in(self, producers, messages, |to| fan::AtOnce { messages, to })
    }

    fn send_blocking(&self, threads: u64, messages: u64, limit: Option<usize>) -> Timed {
        let mut builder = Scheduler::builder().workers(self.workers);
        if let Some(limit) = limit {
            builder = builder.mailbox_limit(limit);
        }
        let scheduler = builder.build().map_err(failed)?;
        scheduler.start().map_err(failed)?;
        fan::run_from_threads(&scheduler, self.gate, threads, messages)
    }

    fn fan_out(&self, receivers: u64, messages: u64) -> Timed {
        fan::run_out(self, receivers, messages)
    }

    fn typed_ping_pong(&self, pairs: u64, round_trips: u64) -> Timed {
        typed::ping_pong(self, pairs, round_trips)
    }

    fn typed_ring(&self, members: u64, tokens: u64, hops: u64) -> Timed {
        typed::ring(self, members, tokens, hops)
    }

    fn typed_fan_in(&self, producers: u64, messages: u64) -> Timed {
        typed::fan_in(self, producers, messages)
    }

    fn typed_fan_out(&self, receivers: u64, messages: u64) -> Timed {
        typed::fan_out(self, receivers, messages)
    }

    fn crowd(&self, processes: u64) -> Result<(Duration, Self::Crowd), Error> {
        crowd::start(self, processes, |_, gate| crowd::Waiter(gate))
    }

    fn wake(&self, crowd: Self::Crowd) -> Timed {
        crowd::wake(self, crowd)
    }

    fn command_inline(&self, commands: u64) -> Timed {
        ask::run(self, ask::ECHO, commands)
    }

    fn command_asked(&self, commands: u64) -> Timed {
        ask::run(self, ask::ASK, commands)
    }

    fn call(&self, calls: u64) -> Timed {
        depend::call(self, calls)
    }

    fn call_from_outside(&self, calls: u64) -> Timed {
        depend::call_from_outside(self, calls)
    }

    fn spawn_monitored(&self, processes: u64) -> Timed {
        depend::spawn_monitored(self, processes)
    }

    fn restart(&self, restarts: u64) -> Timed {
        supervised::restart(self, restarts, |child| child)
    }

    fn restart_in_place(&self, restarts: u64) -> Timed {
        supervised::restart(self, restarts, ChildSpec::in_place)
    }

    fn pool(&self, callers: u64, jobs: u64, length: Duration) -> Timed {
        supervised::pool(self, callers, jobs, length)
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

    fn herald(&self, heard: Heard) -> Result<Deliver, Error> {
        crowd::herald(self, heard)
    }

    fn workers(&self) -> usize {
        self.workers
    }

    fn block(&self, stuck: &'static Stuck, processes: u64) -> Result<(), Error> {
        let gate = self.gate;
        (0..processes).try_for_each(|_| self.submit(alone::Blocker { stuck, gate }).map(drop))
    }

    fn race(&self, race: &'static Race, processes: u64) -> Result<(), Error> {
        let racer = |_| self.submit(alone::Racer::new(race, self.gate)).map(drop);
        (0..processes).try_for_each(racer)
    }

    fn timer_churn(&self, rounds: u64, has_step: bool) -> Timed {
        let gate = self.gate;
        gate.time(1, || match has_step {
            true => self.submit(timers::Stepping::new(rounds, gate)).map(drop),
            false => self.submit(timers::Churn::new(rounds, gate)).map(drop),
        })
    }

    fn timed_crowd(&self, processes: u64, due: Due) -> Result<(Duration, Self::Crowd), Error> {
        let timers = self.scheduler.timers();
        let (now, begin) = (Instant::now(), timers.now());
        crowd::start(self, processes, |number, gate| timers::Waiter {
            due: begin.after(due.at(number).saturating_duration_since(now)),
            gate,
        })
    }

    fn nap(&self, naps: &'static Naps, processes: u64) -> Result<(), Error> {
        let gate = self.gate;
        (0..processes).try_for_each(|process| {
            let nap = naps.of(process);
            self.submit(timers::Sleeper { nap, gate }).map(drop)
        })
    }
}

impl fmt::Debug for Ganger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ganger")
            .field("scheduler", &self.scheduler)
            .finish_non_exhaustive()
    }
}
