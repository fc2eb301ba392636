//! Ganger: processes are state machines, which the workers of a scheduler step.
//!
//! An actor is a [`Host`].

mod ask;
mod services;
mod timers;

use crate::whole::acts::{Consumer, Node, Turn, Waiter};
use crate::whole::contestant::{Contestant, Crowd, Timed, failed};
use crate::whole::gate::gate;
use crate::whole::job::Error;
use crate::whole::load::{Act, Host, Mail};
use crate::whole::timed::{Due, Naps};
use ganger_proc_api::{
    Context, Event, Events, Message, Pid, Process, StepOutput, StepResult, process_fn,
};
use ganger_sched::{Address, ProcessHandle, Scheduler};
use std::thread;
use std::time::{Duration, Instant};

/// A scheduler with handlers for the commands, and the process that answers some of them.
pub(super) struct Ganger {
    scheduler: Scheduler,
    workers: usize,
}

impl Ganger {
    /// Creates a scheduler with this number of running workers.
    pub(super) fn new(workers: usize) -> Result<Self, Error> {
        let scheduler = Scheduler::builder().workers(workers).build();
        let scheduler = scheduler.map_err(failed)?;
        ask::register(&scheduler)?;
        scheduler.start().map_err(failed)?;
        Ok(Self { scheduler, workers })
    }

    fn submit(&self, process: impl Process) -> Result<ProcessHandle, Error> {
        self.scheduler.submit(process, "main", ()).map_err(failed)
    }

    /// Submits a process, and returns the time until it has hit the gate.
    fn time(&self, process: impl Process) -> Timed {
        gate().time(1, || self.submit(process).map(drop))
    }
}

fn wake(waiter: &ProcessHandle) -> Result<(), Error> {
    waiter.send(Message::new("end", 0)).map_err(failed)
}

/// A node of the tree.
struct Branch(Node<Pid>);

impl Process for Branch {
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        let send = |&parent: &Pid, number| {
            let sent = ctx.send(parent, "sum", number);
            sent.expect("the parent is there");
        };
        if self.0.levels == 0 {
            self.0.leaf(send);
            out.done(());
            return Ok(());
        }
        if events.is_empty() {
            for child in self.0.children(&ctx.pid()) {
                ctx.submit(Self(child), "main", ())?;
            }
        }
        for event in events {
            if let Event::Message(message) = event {
                let sum = message.payloads.first().and_then(|sum| sum.as_u64());
                if self.0.add(sum.expect("a number"), send) {
                    out.done(());
                }
            }
        }
        Ok(())
    }
}

impl Contestant for Ganger {
    type Ref<A: Act> = Address<<A::Load as Mail>::Wire>;

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

    fn link<A: Act>(from: &Self::Ref<A>, next: Self::Ref<A>) -> Result<(), Error> {
        from.send(<A::Load as Mail>::next(next)).map_err(failed)
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
        let root = Node::root(levels, gate());
        self.submit(Branch(root)).map(drop)
    }

    /// Takes no address of a process, which would be counted.
    fn spawn(&self, processes: u64) -> Timed {
        let gate = gate();
        let hit = process_fn(move |_, _, out| {
            gate.hit();
            out.done(());
            Ok(())
        });
        gate.time(processes, || {
            (0..processes).try_for_each(|_| self.submit(hit).map(drop))
        })
    }

    /// Pairs answer the PID of a message's sender.
    fn ping_pong_by_pid(&self, pairs: u64, round_trips: u64) -> Timed {
        let gate = gate();
        let half = || {
            process_fn(move |ctx, events, out| {
                for event in events {
                    let Event::Message(message) = event else {
                        continue;
                    };
                    let left = message.payloads.first().and_then(|left| left.as_u64());
                    let left = left.expect("a number");
                    if left > 0 {
                        ctx.send(message.source.expect("a sender"), "ball", left - 1)?;
                    }
                    if left <= 1 {
                        gate.hit();
                        out.done(());
                    }
                }
                Ok(())
            })
        };
        let pair = |_| Ok((self.submit(half())?, self.submit(half())?));
        let pairs: Vec<_> = (0..pairs).map(pair).collect::<Result<_, Error>>()?;
        gate.time(2 * pairs.len() as u64, || {
            for (white, black) in &pairs {
                let ball = Message::new("ball", 2 * round_trips).from_pid(black.pid());
                white.send(ball).map_err(failed)?;
            }
            Ok(())
        })
    }

    fn fan_in_all(&self, producers: u64, messages: u64) -> Timed {
        let consumer = |_| Consumer::<u64>::new(producers * messages, gate());
        let consumer = self.start_all(1, consumer)?.remove(0);
        gate().time(1, || {
            (0..producers).try_for_each(|_| {
                let consumer = consumer.clone();
                let producer = process_fn(move |_, _, out| {
                    consumer.send_all((0..messages).map(Mail::mail))?;
                    out.done(());
                    Ok(())
                });
                self.submit(producer).map(drop)
            })
        })
    }

    fn send_blocking(&self, threads: u64, messages: u64, limit: Option<usize>) -> Timed {
        let mut builder = Scheduler::builder().workers(self.workers);
        if let Some(limit) = limit {
            builder = builder.mailbox_limit(limit);
        }
        let scheduler = builder.build().map_err(failed)?;
        scheduler.start().map_err(failed)?;
        let consumer = Host::new(Consumer::<u64>::new(threads * messages, gate()));
        let consumer = Mail::start(&scheduler, consumer)?;
        thread::scope(|scope| {
            gate().time(1, || {
                for _ in 0..threads {
                    scope.spawn(|| {
                        for number in 0..messages {
                            let sent = consumer.send_blocking(number.mail());
                            sent.expect("the consumer is there");
                        }
                    });
                }
                Ok(())
            })
        })
    }

    fn crowd(&self, processes: u64) -> Result<(Duration, Crowd), Error> {
        let start = |_| self.submit(Host::new(Waiter(gate())));
        Crowd::start(processes, start, wake)
    }

    fn timer_churn(&self, rounds: u64, has_step: bool) -> Timed {
        timers::churn(self, rounds, has_step)
    }

    fn timed_crowd(&self, processes: u64, due: Due) -> Result<(Duration, Crowd), Error> {
        let (now, begin) = (Instant::now(), self.scheduler.timers().now());
        let start = |number| {
            let due = begin.after(due.at(number).saturating_duration_since(now));
            let gate = gate();
            self.submit(timers::Waiter { due, gate })
        };
        Crowd::start(processes, start, wake)
    }

    fn nap(&self, naps: &'static Naps, processes: u64) -> Result<(), Error> {
        let sleeper = |process| timers::sleeper(naps.of(process), gate());
        (0..processes).try_for_each(|process| self.submit(sleeper(process)).map(drop))
    }
}
