//! Ganger: processes are state machines, which the workers of a scheduler step.
//!
//! An actor is a [`Host`].

mod ask;
mod depend;
mod supervised;
mod timers;
mod traffic;

use crate::whole::acts::{Node, Turn, Waiter};
use crate::whole::contestant::{Contestant, Crowd, Throw, Timed, failed, throws};
use crate::whole::gate::Gate;
use crate::whole::job::Error;
use crate::whole::load::{Act, Host, Mail};
use crate::whole::timed::{Due, Naps};
use ganger_proc_api::{Message, Process, process_fn};
use ganger_sched::{Address, ProcessHandle, Scheduler};
use ganger_supervise::ChildSpec;
use std::time::{Duration, Instant};
use traffic::Branch;

/// A scheduler with handlers for the commands, and the process that answers some of them.
pub(super) struct Ganger {
    scheduler: Scheduler,
    workers: usize,
    gate: &'static Gate,
}

impl Ganger {
    /// Creates a scheduler with this number of running workers. Its processes hit the gate.
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

    fn submit(&self, process: impl Process) -> Result<ProcessHandle, Error> {
        self.scheduler.submit(process, "main", ()).map_err(failed)
    }

    /// Submits a process, and returns the time until it has hit the gate.
    fn time(&self, process: impl Process) -> Timed {
        self.gate.time(1, || self.submit(process).map(drop))
    }

    /// Starts a process for each number from 0 up, made by `waiter`.
    fn waiters<P: Process>(
        &self,
        processes: u64,
        waiter: impl Fn(u64) -> P,
    ) -> Result<(Duration, Crowd), Error> {
        let mut crowd = Vec::with_capacity(usize::try_from(processes).map_err(failed)?);
        let time = self.gate.time(processes, || {
            for number in 0..processes {
                crowd.push(self.submit(waiter(number))?);
            }
            Ok(())
        })?;
        let wake = |waiter: &ProcessHandle| waiter.send(Message::new("end", 0)).map_err(failed);
        Ok((time, Crowd::new(crowd, wake)))
    }
}

impl Contestant for Ganger {
    type Ref<A: Act> = Address<<A::Load as Mail>::Wire>;

    fn gate(&self) -> &'static Gate {
        self.gate
    }

    fn workers(&self) -> usize {
        self.workers
    }

    fn start_each<A: Act>(
        &self,
        actors: u64,
        make: impl Fn(u64) -> A,
        mut started: impl FnMut(Self::Ref<A>),
    ) -> Result<(), Error> {
        for number in 0..actors {
            started(Mail::start(&self.scheduler, Host::new(make(number)))?);
        }
        Ok(())
    }

    fn ring<A: Act>(
        &self,
        members: u64,
        make: impl Fn() -> A,
    ) -> Result<Vec<Throw<A::Load>>, Error> {
        let ring = self.start_all(members, |_| make())?;
        for (member, next) in ring.iter().zip(ring.iter().cycle().skip(1)) {
            let next = <A::Load as Mail>::next(next.clone());
            member.send(next).map_err(failed)?;
        }
        Ok(throws::<Self, A>(ring))
    }

    #[inline]
    fn send<A: Act>(to: &Self::Ref<A>, load: A::Load) -> Result<(), Error> {
        to.send(load.mail()).map_err(failed)
    }

    fn start_turns<T: Turn>(&self, actors: u64, make: impl Fn() -> T) -> Result<(), Error> {
        (0..actors).try_for_each(|_| {
            let mut turns = make();
            let process = process_fn(move |_, _, out| {
                match turns.turn() {
                    true => out.step_again(),
                    false => out.done(()),
                }
                Ok(())
            });
            self.submit(process).map(drop)
        })
    }

    fn start_tree(&self, levels: u32) -> Result<(), Error> {
        let root = Node::root(levels, self.gate);
        self.submit(Branch(root)).map(drop)
    }

    /// Takes no address of a process, which would be counted.
    fn spawn(&self, processes: u64) -> Timed {
        let gate = self.gate;
        let hit = process_fn(move |_, _, out| {
            gate.hit();
            out.done(());
            Ok(())
        });
        gate.time(processes, || {
            (0..processes).try_for_each(|_| self.submit(hit).map(drop))
        })
    }

    fn ping_pong_by_pid(&self, pairs: u64, round_trips: u64) -> Timed {
        traffic::ping_pong_by_pid(self, pairs, round_trips)
    }

    fn fan_in_all(&self, producers: u64, messages: u64) -> Timed {
        traffic::fan_in_all(self, producers, messages)
    }

    fn send_blocking(&self, threads: u64, messages: u64, limit: Option<usize>) -> Timed {
        let mut builder = Scheduler::builder().workers(self.workers);
        if let Some(limit) = limit {
            builder = builder.mailbox_limit(limit);
        }
        let scheduler = builder.build().map_err(failed)?;
        scheduler.start().map_err(failed)?;
        traffic::fan_in_of_threads(&scheduler, self.gate, threads, messages)
    }

    fn crowd(&self, processes: u64) -> Result<(Duration, Crowd), Error> {
        self.waiters(processes, |_| Host::new(Waiter(self.gate)))
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

    fn timer_churn(&self, rounds: u64, has_step: bool) -> Timed {
        timers::churn(self, rounds, has_step)
    }

    fn timed_crowd(&self, processes: u64, due: Due) -> Result<(Duration, Crowd), Error> {
        let (now, begin) = (Instant::now(), self.scheduler.timers().now());
        self.waiters(processes, |number| timers::Waiter {
            due: begin.after(due.at(number).saturating_duration_since(now)),
            gate: self.gate,
        })
    }

    fn nap(&self, naps: &'static Naps, processes: u64) -> Result<(), Error> {
        let sleeper = |process| timers::sleeper(naps.of(process), self.gate);
        (0..processes).try_for_each(|process| self.submit(sleeper(process)).map(drop))
    }
}
