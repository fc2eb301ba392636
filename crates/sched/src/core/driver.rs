//! The place in which the scheduler's threads wait for the system: a poller, for example.
//!
//! `queues/waiter.rs` says which thread is there, and when.

use crate::base::contain::{contain, contain_and_report};
use crate::core::local::{self, LocalQueue};
use crate::core::shared::Shared;
use crate::core::token::Token;
use crate::probe::Probe;
use crate::queues::idle::block_on;
use crate::queues::waiter::Waiter;
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
    /// Waits until something is ready, and wakes the processes that it concerns: by wakers,
    /// completers or messages. Waits for that long at the most, where there is a limit, and may
    /// return early.
    ///
    /// One thread at a time calls it. As long as it lasts that thread is no worker, and what is
    /// woken on it begins afterwards: with the first of these, [`interrupt`](Self::interrupt) is
    /// called. A panic in it is contained.
    fn wait(&self, timeout: Option<Duration>);

    /// Ends the wait, or else the next one. Any thread calls it, also the one that waits.
    fn interrupt(&self);

    /// A thread is going to be a worker: calls `work` once, which returns when it is one no longer.
    fn with_worker(&self, work: &mut dyn FnMut()) {
        work();
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

    fn interrupt(&self) {
        interrupt(&*self.driver);
    }
}

fn interrupt(driver: &dyn Driver) {
    // A panic in it costs the thread that waits some time, and no other thread anything.
    let _ = contain(|| driver.interrupt());
}

impl Shared {
    /// Blocks the thread that has the parker: in the driver, if no other thread is there, and calls
    /// `waits` before. Returns whether it has taken a token, and what has become ready.
    pub(crate) fn block(
        &self,
        parker: &Parker,
        time: Option<Duration>,
        waits: impl FnOnce(),
    ) -> (bool, Vec<Token>) {
        let mut woken = false;
        let ready = self.enter_driver(|wait| {
            waits();
            woken = parker.wait_elsewhere(|| wait(time));
        });
        match ready {
            Some(ready) => (woken, ready),
            None => (block_on(parker, time), Vec::new()),
        }
    }

    /// Looks in the driver, if no other thread is there. Returns what is ready.
    pub(crate) fn look_in_driver(&self) -> Vec<Token> {
        let ready = self.enter_driver(|wait| wait(Some(Duration::ZERO)));
        ready.unwrap_or_default()
    }

    /// Calls `visit` with what waits in the driver. Returns what has become ready; none where there
    /// is no driver, or another thread is there.
    fn enter_driver(&self, visit: impl FnOnce(&dyn Fn(Option<Duration>))) -> Option<Vec<Token>> {
        let driven = self.driven.as_ref()?;
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
        let Some(driven) = &self.driven else {
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
        (self.driven.as_ref()).is_some_and(|driven| driven.waiter.is_free())
    }

    /// This thread is a worker as long as `work` lasts.
    pub(crate) fn with_worker(&self, work: &mut dyn FnMut()) {
        match &self.driven {
            Some(driven) => driven.driver.with_worker(work),
            None => work(),
        }
    }

    /// Tells the driver that this scheduler has halted.
    pub(crate) fn detach_driver(&self) {
        if let Some(driven) = &self.driven {
            self.contain_driver(|| driven.driver.detach());
        }
    }

    fn contain_driver(&self, f: impl FnOnce()) {
        let pid = Pid::new(self.host, 0);
        contain_and_report("a driver", pid, self.own_counters(), f);
    }
}
