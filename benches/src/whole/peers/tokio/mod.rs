//! tokio: processes are tasks of a runtime with many threads, mailboxes are unbounded channels.

mod depend;

use crate::whole::acts::{CHILDREN, Turn};
use crate::whole::contestant::{Contestant, Crowd, Throw, Timed, asker, failed, throws};
use crate::whole::gate::Gate;
use crate::whole::job::Error;
use crate::whole::load::Act;
use crate::whole::timed::{Due, Naps, churn_time};
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout_at};

/// How many messages a consumer takes at a time, as many as a step of Ganger sees.
const BATCH: usize = 256;

/// A runtime.
#[derive(Debug)]
pub(super) struct Tokio {
    runtime: Runtime,
    workers: usize,
    gate: &'static Gate,
}

/// Creates a runtime with this number of threads, without sockets. Few workloads need timers, and
/// idle threads would poll them.
pub(super) fn runtime(workers: usize, has_timers: bool) -> Result<Runtime, Error> {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(workers);
    if has_timers {
        builder.enable_time();
    }
    builder.build().map_err(failed)
}

impl Tokio {
    /// Creates a runtime with this number of threads. Its tasks hit the gate.
    pub(super) fn new(
        workers: usize,
        has_timers: bool,
        gate: &'static Gate,
    ) -> Result<Self, Error> {
        Ok(Self {
            runtime: runtime(workers, has_timers)?,
            workers,
            gate,
        })
    }

    /// Starts a task, and returns the time until it has hit the gate.
    fn time(&self, task: impl Future<Output = ()> + Send + 'static) -> Timed {
        self.gate.time(1, || {
            drop(self.runtime.spawn(task));
            Ok(())
        })
    }

    /// Starts tasks.
    fn spawn_each<F: Future<Output = ()> + Send + 'static>(
        &self,
        tasks: u64,
        make: impl Fn(u64) -> F,
    ) -> Result<(), Error> {
        (0..tasks).for_each(|number| drop(self.runtime.spawn(make(number))));
        Ok(())
    }

    /// Starts a task for each number from 0 up, made by `wait`.
    fn waiters<F: Future<Output = ()> + Send + 'static>(
        &self,
        processes: u64,
        wait: impl Fn(u64, UnboundedReceiver<u64>) -> F,
    ) -> Result<(Duration, Crowd), Error> {
        let mut crowd = Vec::with_capacity(usize::try_from(processes).map_err(failed)?);
        let time = self.gate.time(processes, || {
            for number in 0..processes {
                let (sender, messages) = unbounded_channel();
                self.runtime.spawn(wait(number, messages));
                crowd.push(sender);
            }
            Ok(())
        })?;
        let wake = |waiter: &UnboundedSender<u64>| waiter.send(0).map_err(failed);
        Ok((time, Crowd::new(crowd, wake)))
    }

    /// Starts a task that answers with numbers.
    fn server(&self) -> UnboundedSender<(u64, oneshot::Sender<u64>)> {
        let (server, mut requests) = unbounded_channel();
        self.runtime.spawn(async move {
            while let Some((number, completer)) = requests.recv().await {
                echo(number, completer);
            }
        });
        server
    }
}

/// Answers with its number.
fn echo(number: u64, completer: oneshot::Sender<u64>) {
    completer.send(number).expect("the asker waits");
}

/// Does what an actor does; `next` is the next actor of its ring.
async fn host<A: Act>(
    mut act: A,
    mut loads: UnboundedReceiver<A::Load>,
    next: Option<UnboundedSender<A::Load>>,
) {
    let pass = |load| {
        let sent = next.as_ref().expect("a next one").send(load);
        sent.expect("the next one is there");
    };
    if act.started() {
        return;
    }
    if A::BATCHES {
        let mut batch = Vec::with_capacity(BATCH);
        while loads.recv_many(&mut batch, BATCH).await > 0 {
            for load in batch.drain(..) {
                if act.heard(load, pass) {
                    return;
                }
            }
        }
    }
    while let Some(load) = loads.recv().await {
        if act.heard(load, pass) {
            return;
        }
    }
}

/// Spawns a task with levels of others below it, or a leaf.
fn node(levels: u32, number: u64, up: UnboundedSender<u64>) {
    tokio::spawn(async move {
        let sum = if levels == 0 {
            number
        } else {
            let (from, mut sums) = unbounded_channel();
            for child in 0..CHILDREN {
                node(levels - 1, number * CHILDREN + child, from.clone());
            }
            let mut sum = 0;
            for _ in 0..CHILDREN {
                sum += sums.recv().await.expect("a number");
            }
            sum
        };
        up.send(sum).expect("the parent is there");
    });
}

impl Contestant for Tokio {
    type Ref<A: Act> = UnboundedSender<A::Load>;

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
            let (to, loads) = unbounded_channel();
            self.runtime.spawn(host(make(number), loads, None));
            started(to);
        }
        Ok(())
    }

    fn ring<A: Act>(
        &self,
        members: u64,
        make: impl Fn() -> A,
    ) -> Result<Vec<Throw<A::Load>>, Error> {
        let channels = (0..members).map(|_| unbounded_channel());
        let (senders, receivers): (Vec<_>, Vec<_>) = channels.unzip();
        for (loads, next) in receivers.into_iter().zip(senders.iter().cycle().skip(1)) {
            let next = Some(next.clone());
            self.runtime.spawn(host(make(), loads, next));
        }
        Ok(throws::<Self, A>(senders))
    }

    fn send<A: Act>(to: &Self::Ref<A>, load: A::Load) -> Result<(), Error> {
        to.send(load).map_err(failed)
    }

    fn start_turns<T: Turn>(&self, actors: u64, make: impl Fn() -> T) -> Result<(), Error> {
        self.spawn_each(actors, |_| {
            let mut turns = make();
            async move {
                while turns.turn() {
                    yield_now().await;
                }
            }
        })
    }

    fn start_tree(&self, levels: u32) -> Result<(), Error> {
        let gate = self.gate;
        let _inside = self.runtime.enter();
        let (up, mut sums) = unbounded_channel();
        node(levels, 0, up);
        self.runtime.spawn(async move {
            gate.hit_with(sums.recv().await.expect("a sum"));
        });
        Ok(())
    }

    /// Opens no channels.
    fn spawn(&self, processes: u64) -> Timed {
        let gate = self.gate;
        gate.time(processes, || {
            self.spawn_each(processes, |_| async { gate.hit() })
        })
    }

    fn crowd(&self, processes: u64) -> Result<(Duration, Crowd), Error> {
        let gate = self.gate;
        self.waiters(processes, |_, messages| wait(messages, gate))
    }

    fn command_inline(&self, commands: u64) -> Timed {
        self.time(asker!(self.gate, 1..=commands, |number| {
            let (completer, answer) = oneshot::channel();
            echo(number, completer);
            answer.await.expect("an answer")
        }))
    }

    fn command_asked(&self, commands: u64) -> Timed {
        let server = self.server();
        self.time(asker!(self.gate, 1..=commands, |number| {
            let (completer, answer) = oneshot::channel();
            let sent = server.send((number, completer));
            sent.expect("the server is there");
            answer.await.expect("an answer")
        }))
    }

    fn call_from_outside(&self, calls: u64) -> Timed {
        let server = self.server();
        self.gate.time(1, || {
            let mut sum = 0;
            for number in 1..=calls {
                let (completer, answer) = oneshot::channel();
                let sent = server.send((number, completer));
                sent.expect("the server is there");
                sum += answer.blocking_recv().expect("an answer");
            }
            self.gate.hit_with(sum);
            Ok(())
        })
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
        self.fan_out::<u64>(members, messages)
    }

    fn timer_churn(&self, rounds: u64, has_step: bool) -> Timed {
        let gate = self.gate;
        self.time(async move {
            for number in 0..rounds {
                let mut sleep = pin!(sleep(churn_time(number)));
                // The first poll sets it.
                let polled = poll_fn(|context| Poll::Ready(sleep.as_mut().poll(context))).await;
                assert!(polled.is_pending());
                if has_step {
                    yield_now().await;
                    assert!(!sleep.is_elapsed());
                }
            }
            gate.hit();
        })
    }

    fn timed_crowd(&self, processes: u64, due: Due) -> Result<(Duration, Crowd), Error> {
        let gate = self.gate;
        self.waiters(processes, |number, mut messages| {
            let due = due.at(number).into();
            async move {
                gate.hit();
                if let Ok(message) = timeout_at(due, messages.recv()).await {
                    message.expect("a message");
                }
                gate.hit();
            }
        })
    }

    fn nap(&self, naps: &'static Naps, processes: u64) -> Result<(), Error> {
        let gate = self.gate;
        self.spawn_each(processes, |process| {
            let mut nap = naps.of(process);
            async move {
                while let Some(time) = nap.next() {
                    sleep(time).await;
                }
                gate.hit();
            }
        })
    }
}

/// Hits the gate when it starts, and when a message ends it.
async fn wait(mut messages: UnboundedReceiver<u64>, gate: &'static Gate) {
    gate.hit();
    messages.recv().await.expect("a message");
    gate.hit();
}
