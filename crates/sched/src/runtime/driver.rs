//! The place in which the scheduler's threads wait for the system: a poller, for example.
//!
//! `queues/waiter.rs` decides which thread waits there, and when.

use crate::base::contain::contain;
use crate::handlers::commands::CommandRegistry;
use crate::queues::waiter::Waiter;
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

/// Where the threads of a scheduler wait for the system: a poller of sockets, for example. See
/// [`Builder::driver`](crate::Builder::driver).
///
/// An idle thread of the scheduler waits in the driver, one thread at a time. While all threads are
/// busy they poll the driver now and then.
pub trait Driver: Any + Send + Sync {
    /// Attaches the driver to the scheduler just built. Called once, before all else; the driver
    /// registers handlers of its commands here.
    fn attach(&self, commands: &CommandRegistry) {
        let _ = commands;
    }

    /// Waits until something is ready, and wakes the processes concerned: by wakers, completers or
    /// messages. Waits for at most `timeout`, if there is a timeout, and may return early.
    ///
    /// The calls come from a single thread at a time. The thread is no worker until the call
    /// returns, and processes woken meanwhile begin afterwards: the first of them leads to a call
    /// of [`interrupt`](Self::interrupt). So code called from here can't wait for a process, and is
    /// told so. A panic in it is contained.
    fn wait(&self, timeout: Option<Duration>);

    /// Ends the wait, or else the next one. Any thread calls it, the waiting thread included.
    fn interrupt(&self);

    /// Surrounds the work of a thread that becomes a worker. Calls `work` once, which returns when
    /// the thread ceases to be a worker.
    fn with_worker(&self, work: &mut dyn FnMut()) {
        work();
    }

    /// Returns whether a process may wait for an event of the driver. While this holds, no report
    /// of a deadlock claims all processes to be asleep.
    fn is_awaited(&self) -> bool {
        true
    }

    /// Notes the halt of the scheduler. Each worker that ends calls it; the last call comes when no
    /// worker waits any more.
    fn detach(&self) {}
}

/// The driver of a scheduler, and the thread waiting in it.
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

    /// Returns a function that ends a wait in the driver.
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
    // A panic here costs the waiting thread some time, and no other thread anything.
    let _ = contain(|| driver.interrupt());
}
