//! Ganger's tasks: processes that are async functions, in the workloads A1 to A11.
//!
//! ```text
//! mod       the scheduler, with its workers; spawn, yield, wait
//! traffic   pairs, rings and fans
//! ask       commands, questions
//! timers    timers
//! ```

mod ask;
mod timers;
mod traffic;

use crate::whole::contestant::{Contestant, Timed, failed};
use crate::whole::gate::Gate;
use crate::whole::job::Error;
use crate::whole::timed::Due;
use ganger_proc_api::BoxError;
use ganger_sched::{ProcessHandle, Scheduler};
use ganger_task::Cx;
use std::fmt;
use std::time::Duration;

/// A scheduler with a task that answers commands.
pub(super) struct Tasks {
    scheduler: Scheduler,
    workers: usize,
    gate: &'static Gate,
}

impl Tasks {
    /// Creates a scheduler with this number of running workers. Its tasks hit the gate.
    pub(super) fn new(workers: usize, gate: &'static Gate) -> Result<Self, Error> {
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

    fn start<M, R, F, Fut>(&self, body: F) -> Result<ProcessHandle<M>, Error>
    where
        M: Send + 'static,
        R: Send + 'static,
        F: FnOnce(Cx<M>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<R, BoxError>> + Send + 'static,
    {
        self.scheduler.spawn(body).map_err(failed)
    }
}

impl Contestant for Tasks {
    type Crowd = Vec<ProcessHandle<u64>>;

    fn spawn(&self, processes: u64) -> Timed {
        let gate = self.gate;
        let hit = async move |_: Cx| {
            gate.hit();
            Ok(())
        };
        gate.time(processes, || {
            (0..processes).try_for_each(|_| self.start(hit).map(drop))
        })
    }

    fn yields(&self, processes: u64, each: u64) -> Timed {
        let gate = self.gate;
        let step = async move |cx: Cx| {
            for _ in 0..each {
                cx.yield_now().await;
            }
            gate.hit();
            Ok(())
        };
        gate.time(processes, || {
            (0..processes).try_for_each(|_| self.start(step).map(drop))
        })
    }

    fn ping_pong(&self, pairs: u64, round_trips: u64) -> Timed {
        traffic::ping_pong(self, pairs, round_trips)
    }

    fn ring(&self, members: u64, tokens: u64, hops: u64) -> Timed {
        traffic::ring(self, members, tokens, hops)
    }

    fn fan_in(&self, producers: u64, messages: u64) -> Timed {
        traffic::fan_in(self, producers, messages)
    }

    fn crowd(&self, processes: u64) -> Result<(Duration, Self::Crowd), Error> {
        let gate = self.gate;
        let wait = async move |cx: Cx<u64>| {
            gate.hit();
            cx.recv().await.ok_or("cancelled")?;
            gate.hit();
            Ok(())
        };
        let mut crowd = Vec::with_capacity(usize::try_from(processes).map_err(failed)?);
        let time = gate.time(processes, || {
            for _ in 0..processes {
                crowd.push(self.start(wait)?);
            }
            Ok(())
        })?;
        Ok((time, crowd))
    }

    fn wake(&self, crowd: Self::Crowd) -> Timed {
        self.gate.time(crowd.len() as u64, || {
            let mut crowd = crowd.iter();
            crowd.try_for_each(|waiter| waiter.send(0).map_err(failed))
        })
    }

    fn command_asked(&self, commands: u64) -> Timed {
        ask::run(self, commands)
    }

    fn call(&self, calls: u64) -> Timed {
        ask::call(self, calls)
    }

    fn timer_churn(&self, rounds: u64, has_step: bool) -> Timed {
        timers::churn(self, rounds, has_step)
    }

    fn timed_crowd(&self, processes: u64, due: Due) -> Result<(Duration, Self::Crowd), Error> {
        timers::crowd(self, processes, due)
    }

    fn workers(&self) -> usize {
        self.workers
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks")
            .field("scheduler", &self.scheduler)
            .finish_non_exhaustive()
    }
}
