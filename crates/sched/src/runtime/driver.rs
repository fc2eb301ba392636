//! The place in which the scheduler's threads wait for the system: a poller, for example.
//!
//! `queues/waiter.rs` says which thread is there, and when.

use crate::base::contain::{contain, contain_and_report};
use crate::handlers::commands::CommandRegistry;
use crate::probe::Probe;
use crate::queues::idle::{Blocked, block_on};
use crate::queues::waiter::Waiter;
use crate::runtime::local::{self, LocalQueue};
use crate::runtime::shared::Shared;
use crate::runtime::token::Token;
use ganger_proc_api::Pid;
use ganger_sync::Parker;
use std::sync::Arc;
use std::time::Duration;

/// Where the threads of a scheduler wait for the system: a poller of sockets, for example. See
/// [`Builder::driver`](crate::Builder::driver).
///
/// A thread of the scheduler that has nothing to do waits there, one at a time. While all are busy
/// they look there now and then.
pub trait Driver: Send + Sync + 'static {
    /// The scheduler is built. Called once, before all else; the driver registers handlers of its
    /// commands here.
    fn attach(&self, commands: &CommandRegistry) {
        let _ = commands;
    }

    /// Waits until something is ready, and wakes the processes that it concerns: by wakers,
    /// completers or messages. Waits for that long at the most, where there is a limit, and may
    /// return early.
    ///
    /// One thread at a time calls it. As long as it lasts that thread is no worker, and what is
    /// woken on it begins afterwards: with the first of these, [`interrupt`](Self::interrupt) is
    /// called. So what it calls can't wait for a process, and is told so. A panic in it is
    /// contained.
    fn wait(&self, timeout: Option<Duration>);

    /// Ends the wait, or else the next one. Any thread calls it, also the one that waits.
    fn interrupt(&self);

    /// A thread is going to be a worker: calls `work` once, which returns when it is one no longer.
    fn with_worker(&self, work: &mut dyn FnMut()) {
        work();
    }

    /// Whether a process may wait for what becomes ready there. As long as one may, no report of a
    /// deadlock says that all processes are asleep.
    fn is_awaited(&self) -> bool {
        true
    }

    /// The scheduler has halted. Called by each worker that ends; the last of these calls comes
    /// when no worker waits any more.
    fn detach(&self) {}
}

/// The driver of a scheduler, and which thread is there.
pub(crate) struct Driven {
    driver: Arc<dyn Driver>,
    pub(crate) waiter: Waiter,
}

impl Driven {
    pub(crate) fn new(driver: Arc<dyn Driver>) -> Self {
        Self {
            driver,
            waiter: Waiter::default(),
        }
    }

    /// What ends a wait there.
    pub(crate) fn interrupter(&self) -> impl Fn() + Send + Sync + use<> {
        let driver = Arc::clone(&self.driver);
        move || interrupt(&*driver)
    }

    pub(crate) fn attach(&self, commands: &CommandRegistry) {
        self.driver.attach(commands);
    }

    fn interrupt(&self) {
        interrupt(&*self.driver);
    }

    pub(crate) fn is_awaited(&self) -> bool {
        contain(|| self.driver.is_awaited()).unwrap_or(true)
    }
}

fn interrupt(driver: &dyn Driver) {
    // A panic in it costs the thread that waits some time, and no other thread anything.
    let _ = contain(|| driver.interrupt());
}

impl Shared {
    /// Blocks the thread that has the parker: in the driver, if no other thread is there, and
    /// `may_wait` says that no token is on its way. Returns what has become ready, too.
    pub(crate) fn block(
        &self,
        parker: &Parker,
        time: Option<Duration>,
        may_wait: impl FnOnce() -> bool,
    ) -> (Blocked, Vec<Token>) {
        let (mut has_token, mut was_elsewhere) = (false, false);
        let ready = self.enter_driver(|wait| {
            was_elsewhere = may_wait();
            has_token = was_elsewhere && parker.wait_elsewhere(|| wait(time));
        });
        if !was_elsewhere {
            has_token = block_on(parker, time);
        }
        let blocked = Blocked {
            has_token,
            was_elsewhere,
        };
        (blocked, ready.unwrap_or_default())
    }

    /// Calls `enters` and looks in the driver, if no other thread is there. Returns what is ready.
    pub(crate) fn look_in_driver(&self, enters: impl FnOnce()) -> Vec<Token> {
        let ready = self.enter_driver(|wait| {
            enters();
            wait(Some(Duration::ZERO));
        });
        ready.unwrap_or_default()
    }

    /// Calls `visit` with what waits in the driver. Returns what has become ready; none where there
    /// is no driver, or another thread is there.
    fn enter_driver(&self, visit: impl FnOnce(&dyn Fn(Option<Duration>))) -> Option<Vec<Token>> {
        let driven = self.timing.driven.as_ref()?;
        let mut ready = None;
        driven.waiter.enter(|| {
            ready = Some(local::put_aside(self, || {
                visit(&|time| self.contain_driver(|| driven.driver.wait(time)));
            }));
            self.now()
        });
        ready
    }

    /// Takes a process that has become ready, if this thread is in the driver, and has the thread
    /// leave that. Gives it back otherwise.
    #[inline]
    pub(crate) fn put_aside(&self, token: Token) -> Option<Token> {
        let Some(driven) = &self.timing.driven else {
            return Some(token);
        };
        let is_first = match local::take_aside(self, token) {
            Ok(is_first) => is_first,
            Err(token) => return Some(token),
        };
        if is_first {
            driven.interrupt();
        }
        None
    }

    /// Queues what has become ready while this worker was in the driver, the first one on top.
    pub(crate) fn schedule_ready(&self, queue: &LocalQueue, ready: Vec<Token>) {
        for token in ready.into_iter().rev() {
            let _waking = self.probe.waking(|| Some(queue.index));
            queue.begin_woken(queue.deque.len());
            queue.push(token);
        }
    }

    /// Whether there is a driver with no thread in it. A caller for which it counts is behind a
    /// fence.
    pub(crate) fn is_driver_left(&self) -> bool {
        (self.timing.driven.as_ref()).is_some_and(|driven| driven.waiter.is_free())
    }

    /// This thread is a worker as long as `work` lasts.
    pub(crate) fn with_worker(&self, work: &mut dyn FnMut()) {
        match &self.timing.driven {
            Some(driven) => driven.driver.with_worker(work),
            None => work(),
        }
    }

    /// Tells the driver that this scheduler has halted.
    pub(crate) fn detach_driver(&self) {
        if let Some(driven) = &self.timing.driven {
            self.contain_driver(|| driven.driver.detach());
        }
    }

    fn contain_driver(&self, f: impl FnOnce()) {
        let pid = Pid::new(self.host, 0);
        contain_and_report("a driver", pid, self.own_counters(), f);
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use crate::Scheduler;
    use crate::noop_process::NoopProcess;
    use crate::queues::idle::Snapshot;
    use std::sync::Mutex;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread;

    /// Waits for a signal. Notes its waits.
    #[derive(Clone)]
    struct Signals {
        send: Sender<()>,
        receive: Arc<Mutex<Receiver<()>>>,
        waits: Arc<Mutex<Waits>>,
    }

    #[derive(Debug, Default, Clone, PartialEq)]
    struct Waits {
        /// The limit of the one that lasts.
        inside: Option<Option<Duration>>,
        count: usize,
    }

    impl Driver for Signals {
        fn wait(&self, timeout: Option<Duration>) {
            let mut waits = self.waits.lock().unwrap();
            waits.inside = Some(timeout);
            waits.count += 1;
            drop(waits);
            let receive = self.receive.lock().unwrap();
            let _over = match timeout {
                None => receive.recv().is_ok(),
                Some(timeout) => receive.recv_timeout(timeout).is_ok(),
            };
            self.waits.lock().unwrap().inside = None;
        }

        fn interrupt(&self) {
            self.send.send(()).unwrap();
        }
    }

    /// Not by a clock: each of its threads waits without a limit.
    // pins: I3, G7
    #[test]
    fn an_idle_scheduler_stays_in_the_driver() {
        let (send, receive) = channel();
        let driver = Signals {
            send,
            receive: Arc::new(Mutex::new(receive)),
            waits: Arc::default(),
        };
        let builder = Scheduler::builder().workers(2);
        let scheduler = builder.driver(driver.clone()).build().unwrap();
        scheduler.start().unwrap();
        let shared = &scheduler.shared;
        let all_sleep = Snapshot {
            searching: 0,
            sleeping: 2,
            unwatched: true,
        };
        let still = || {
            let waits = driver.waits.lock().unwrap().clone();
            let is_still = shared.queues.idle.snapshot() == all_sleep && waits.inside == Some(None);
            is_still.then_some(waits)
        };
        // An interrupt that comes late ends one more wait.
        let until_still = || {
            let (mut before, mut looks) = (None, 0);
            while looks < 1000 {
                let now = still();
                looks = if now.is_some() && now == before {
                    looks + 1
                } else {
                    0
                };
                before = now;
                thread::yield_now();
            }
        };
        for _ in 0..10 {
            until_still();
            assert!(!shared.timing.timer_waiter.is_used());
            let handle = scheduler.submit(NoopProcess, "main", ()).unwrap();
            assert!(handle.wait().is_done());
        }
    }
}
