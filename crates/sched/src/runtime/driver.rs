//! The place in which the scheduler's threads wait for the system: a poller, for example.
//!
//! `queues/waiter.rs` says which thread is there, and when.

use crate::base::contain::contain;
use crate::handlers::commands::CommandRegistry;
use crate::queues::waiter::Waiter;
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
    pub(crate) driver: Arc<dyn Driver>,
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

    pub(crate) fn interrupt(&self) {
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
