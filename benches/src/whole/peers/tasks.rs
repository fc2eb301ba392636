//! Ganger's tasks: processes that are async functions, in the workloads A1 to A11.

use crate::whole::acts::Turn;
use crate::whole::contestant::{Contestant, Crowd, Ring, Services, Throw, Timed, failed};
use crate::whole::gate::gate;
use crate::whole::job::Error;
use crate::whole::load::{Act, Wire};
use crate::whole::timed::{Due, churn_time};
use ganger_proc_api::{Reply, TypedCommand};
use ganger_sched::{Address, ProcessHandle, Scheduler};
use ganger_task::Cx;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

/// A scheduler, and a task as the server of commands.
pub(super) struct Tasks(Scheduler);

/// Answered with its own number.
struct Ask(u64);

impl TypedCommand for Ask {
    type Answer = u64;
}

impl Tasks {
    /// Creates a scheduler with this number of running workers. Its tasks hit the gate.
    pub(super) fn new(workers: usize) -> Result<Self, Error> {
        let scheduler = Scheduler::builder().workers(workers).build();
        let scheduler = scheduler.map_err(failed)?;
        let server = scheduler.spawn(async |cx: Cx<(u64, Reply<u64>)>| {
            while let Some((number, reply)) = cx.recv().await {
                reply.complete(number);
            }
            Ok(())
        });
        let server = server.map_err(failed)?.address().clone();
        let ask = move |Ask(number), reply| Ok(server.send((number, reply))?);
        scheduler.register_for(ask).map_err(failed)?;
        scheduler.start().map_err(failed)?;
        Ok(Self(scheduler))
    }
}

fn wake(waiter: &ProcessHandle<u64>) -> Result<(), Error> {
    waiter.send(0).map_err(failed)
}

impl Contestant for Tasks {
    type Ref<A: Act> = Address<A::Load>;

    fn start_each<A: Act>(
        &self,
        actors: u64,
        make: impl Fn(u64) -> A,
        mut started: impl FnMut(Address<A::Load>),
    ) -> Result<(), Error> {
        for number in 0..actors {
            let mut act = make(number);
            let task = self.0.spawn(async move |cx: Cx<A::Load>| {
                if act.started() {
                    return Ok(());
                }
                while !act.heard(cx.recv().await.ok_or("cancelled")?, drop) {}
                Ok(())
            });
            started(task.map_err(failed)?.address().clone());
        }
        Ok(())
    }

    fn ring<A: Act>(&self, members: u64, make: impl Fn() -> A) -> Ring<A> {
        let member = |_| {
            let mut act = make();
            let task = self.0.spawn(async move |cx: Cx<Wire<A::Load>>| {
                let Some(Wire::Next(next)) = cx.recv().await else {
                    return Err("it has no next one".into());
                };
                let pass = |load| {
                    let sent = next.send(Wire::Load(load));
                    assert!(sent.is_ok(), "the next one is there");
                };
                while let Some(Wire::Load(load)) = cx.recv().await {
                    if act.heard(load, pass) {
                        break;
                    }
                }
                Ok(())
            });
            Ok(task.map_err(failed)?.address().clone())
        };
        let ring: Vec<_> = (0..members).map(member).collect::<Result<_, Error>>()?;
        for (member, next) in ring.iter().zip(ring.iter().cycle().skip(1)) {
            member.send(Wire::Next(next.clone())).map_err(failed)?;
        }
        let throw = |to: Address<_>| -> Throw<A::Load> {
            Box::new(move |load| to.send(Wire::Load(load)).map_err(failed))
        };
        Ok(ring.into_iter().map(throw).collect())
    }

    fn send<A: Act>(to: &Address<A::Load>, load: A::Load) -> Result<(), Error> {
        to.send(load).map_err(failed)
    }

    fn start_turns<T: Turn>(&self, actors: u64, make: impl Fn() -> T) -> Result<(), Error> {
        (0..actors).try_for_each(|_| {
            let mut turns = make();
            let task = async move |cx: Cx| {
                while turns.turn() {
                    cx.yield_now().await;
                }
                Ok(())
            };
            self.0.spawn(task).map(drop).map_err(failed)
        })
    }

    /// Takes no address of a task, which would be counted.
    fn spawn(&self, processes: u64) -> Timed {
        let gate = gate();
        let hit = async move |_: Cx| {
            gate.hit();
            Ok(())
        };
        gate.time(processes, || {
            (0..processes).try_for_each(|_| self.0.spawn(hit).map(drop).map_err(failed))
        })
    }

    fn crowd(&self, processes: u64) -> Result<(Duration, Crowd), Error> {
        let gate = gate();
        let start = |_| {
            let waiter = async move |cx: Cx<u64>| {
                gate.hit();
                cx.recv().await.ok_or("cancelled")?;
                gate.hit();
                Ok(())
            };
            self.0.spawn(waiter).map_err(failed)
        };
        Crowd::start(processes, start, wake)
    }

    fn timer_churn(&self, rounds: u64, has_step: bool) -> Timed {
        let gate = gate();
        let task = async move |cx: Cx| {
            for number in 0..rounds {
                let mut sleep = pin!(cx.sleep(churn_time(number)));
                // The first poll begins it.
                let polled = poll_fn(|context| Poll::Ready(sleep.as_mut().poll(context))).await;
                assert!(polled.is_pending());
                if has_step {
                    cx.yield_now().await;
                }
            }
            gate.hit();
            Ok(())
        };
        gate.time(1, || self.0.spawn(task).map(drop).map_err(failed))
    }

    fn timed_crowd(&self, processes: u64, due: Due) -> Result<(Duration, Crowd), Error> {
        let gate = gate();
        let start = |number| {
            let due = due.at(number);
            let waiter = async move |cx: Cx<u64>| {
                gate.hit();
                let left = due.saturating_duration_since(Instant::now());
                if let Ok(message) = cx.timeout(left, cx.recv()).await {
                    message.ok_or("cancelled")?;
                }
                gate.hit();
                Ok(())
            };
            self.0.spawn(waiter).map_err(failed)
        };
        Crowd::start(processes, start, wake)
    }
}

impl Services for Tasks {
    fn command_asked(&self, commands: u64) -> Timed {
        let gate = gate();
        let task = async move |cx: Cx| {
            let mut sum = 0;
            for number in 1..=commands {
                sum += cx.command(Ask(number)).await?;
            }
            gate.hit_with(sum);
            Ok(())
        };
        gate.time(1, || self.0.spawn(task).map(drop).map_err(failed))
    }

    fn call(&self, calls: u64) -> Timed {
        let gate = gate();
        let server = self.0.spawn(async move |cx: Cx<(u64, Reply<u64>)>| {
            for _ in 0..calls {
                let (number, reply) = cx.recv().await.ok_or("cancelled")?;
                reply.complete(number);
            }
            gate.hit();
            Ok(())
        });
        let server = server.map_err(failed)?;
        let to = server.address().clone();
        let task = async move |cx: Cx| {
            let mut sum = 0;
            for number in 1..=calls {
                sum += cx.ask(to.call(move |reply| (number, reply))).await?;
            }
            gate.hit_with(sum);
            Ok(())
        };
        gate.time(2, || self.0.spawn(task).map(drop).map_err(failed))
    }
}
