//! tokio: processes are tasks of a runtime with many threads, mailboxes are unbounded channels.

mod depend;

use crate::whole::acts::{CHILDREN, Turn};
use crate::whole::contestant::{Contestant, Crowd, Ring, Timed, failed, throws};
use crate::whole::gate::{Gate, gate};
use crate::whole::job::Error;
use crate::whole::load::Act;
use crate::whole::timed::{Due, Naps, churn_time};
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::yield_now;
use tokio::time::{sleep, timeout_at};

/// How many messages a consumer takes at a time, as many as a step of Ganger sees.
const BATCH: usize = 256;

/// Runs the tasks.
#[derive(Debug)]
pub(super) struct Tokio(pub(super) Runtime);

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

/// Starts a task, and returns the time until it has hit the gate.
pub(super) fn time(runtime: &Runtime, task: impl Future<Output = ()> + Send + 'static) -> Timed {
    gate().time(1, || {
        drop(runtime.spawn(task));
        Ok(())
    })
}

impl Tokio {
    /// Starts tasks.
    fn spawn_each<F: Future<Output = ()> + Send + 'static>(
        &self,
        tasks: u64,
        make: impl Fn(u64) -> F,
    ) -> Result<(), Error> {
        (0..tasks).for_each(|number| drop(self.0.spawn(make(number))));
        Ok(())
    }

    /// Starts a task for each number from 0 up, made by `wait`.
    fn waiters<F: Future<Output = ()> + Send + 'static>(
        &self,
        processes: u64,
        wait: impl Fn(u64, UnboundedReceiver<u64>) -> F,
    ) -> Result<(Duration, Crowd), Error> {
        let start = |number| {
            let (sender, messages) = unbounded_channel();
            self.0.spawn(wait(number, messages));
            Ok(sender)
        };
        Crowd::start(processes, start, |waiter| waiter.send(0).map_err(failed))
    }
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

    fn start_each<A: Act>(
        &self,
        actors: u64,
        make: impl Fn(u64) -> A,
        mut started: impl FnMut(Self::Ref<A>),
    ) -> Result<(), Error> {
        for number in 0..actors {
            let (to, loads) = unbounded_channel();
            self.0.spawn(host(make(number), loads, None));
            started(to);
        }
        Ok(())
    }

    fn ring<A: Act>(&self, members: u64, make: impl Fn() -> A) -> Ring<A> {
        let channels = (0..members).map(|_| unbounded_channel());
        let (senders, receivers): (Vec<_>, Vec<_>) = channels.unzip();
        for (loads, next) in receivers.into_iter().zip(senders.iter().cycle().skip(1)) {
            let next = Some(next.clone());
            self.0.spawn(host(make(), loads, next));
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
        let gate = gate();
        let _inside = self.0.enter();
        let (up, mut sums) = unbounded_channel();
        node(levels, 0, up);
        self.0.spawn(async move {
            gate.hit_with(sums.recv().await.expect("a sum"));
        });
        Ok(())
    }

    /// Opens no channels.
    fn spawn(&self, processes: u64) -> Timed {
        let gate = gate();
        gate.time(processes, || {
            self.spawn_each(processes, |_| async { gate.hit() })
        })
    }

    fn crowd(&self, processes: u64) -> Result<(Duration, Crowd), Error> {
        let gate = gate();
        self.waiters(processes, |_, messages| wait(messages, gate))
    }

    fn timer_churn(&self, rounds: u64, has_step: bool) -> Timed {
        let gate = gate();
        time(&self.0, async move {
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
        let gate = gate();
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
        let gate = gate();
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
