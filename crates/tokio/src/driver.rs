//! A runtime of tokio whose driver the scheduler's threads turn.
//!
//! **Problem.** The driver of a tokio runtime makes tokio's sockets and timers ready, and a thread
//! has to turn it. A thread of its own costs a hop between threads for each event.
//!
//! **Protocol.** A thread of the scheduler that visits the driver calls [`Runtime::block_on`] of
//! the `current_thread` runtime: the call turns the driver, and runs the runtime's spawned futures.
//! 1. To look, the thread blocks on a future that yields once: tokio then looks in the driver, and
//!    does not wait.
//! 2. To wait, the thread blocks on the next interrupt; a [`Notify`] keeps one until then.
//!    A process woken by tokio interrupts as well, so that the thread comes back with it.
//! 3. An interrupt that comes during a visit ends with the visit.
//!
//! **Why no interrupt is lost by 3.** One thread at a time visits. An interrupt is for a thread
//! that has announced its wait, inside its visit, and has been given a token before.

use ganger_sched::Driver;
use std::io;
use std::panic::catch_unwind;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::task::{Context, Waker};
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};
use tokio::sync::Notify;

/// A runtime of tokio on the threads of a scheduler: for
/// [`Builder::driver`](ganger_sched::Builder::driver).
///
/// Each process of the scheduler is inside of the runtime. A process without tokio pays nothing.
///
/// ```
/// use ganger_sched::Scheduler;
/// use ganger_tokio::Tokio;
///
/// let scheduler = Scheduler::builder().driver(Tokio::new()?).start()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Tokio {
    /// The lock is held during a visit. None when the scheduler has halted.
    runtime: Mutex<Option<Runtime>>,
    handle: Handle,
    interrupt: Notify,
    /// The scheduler has halted.
    is_over: AtomicBool,
}

/// Why a runtime can't be a scheduler's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeRefused {
    /// The runtime is not of the kind `current_thread`: threads of its own turn its driver.
    #[error(
        "expected a current-thread runtime; build it with tokio's `Builder::new_current_thread`"
    )]
    HasThreads,
    /// The runtime has no timers, which a thread needs to wait there for a while.
    #[error("expected a runtime with timers; build it with `enable_time` or `enable_all`")]
    NoTime,
}

impl Tokio {
    /// Creates a runtime with the defaults: sockets, timers, signals, child processes, and up to
    /// 512 threads for files, names of hosts and `spawn_blocking`.
    ///
    /// # Errors
    /// When the system refuses a poller.
    pub fn new() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self::of(runtime))
    }

    /// Takes this runtime, of the kind `current_thread` and with timers. No other thread may have
    /// it in `block_on`.
    ///
    /// ```
    /// use ganger_tokio::Tokio;
    ///
    /// let mut runtime = tokio::runtime::Builder::new_current_thread();
    /// let runtime = runtime.enable_all().max_blocking_threads(16).build()?;
    /// let tokio = Tokio::with_runtime(runtime)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`RuntimeRefused`] when it is of another kind, or has no timers.
    pub fn with_runtime(runtime: Runtime) -> Result<Self, RuntimeRefused> {
        if runtime.handle().runtime_flavor() != RuntimeFlavor::CurrentThread {
            return Err(RuntimeRefused::HasThreads);
        }
        if !has_time(&runtime) {
            return Err(RuntimeRefused::NoTime);
        }
        Ok(Self::of(runtime))
    }

    fn of(runtime: Runtime) -> Self {
        Self {
            handle: runtime.handle().clone(),
            runtime: Mutex::new(Some(runtime)),
            interrupt: Notify::new(),
            is_over: AtomicBool::new(false),
        }
    }

    /// Returns the runtime's handle, for threads outside of the scheduler.
    ///
    /// A future spawned by the handle is no process: it runs on a waiting thread of the scheduler.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Waits for the next interrupt, at most for `timeout`.
    async fn interrupted(&self, timeout: Option<Duration>) {
        let interrupted = self.interrupt.notified();
        match timeout {
            None => interrupted.await,
            Some(timeout) => {
                // Either end of the wait will do.
                let _ = tokio::time::timeout(timeout, interrupted).await;
            }
        }
    }

    /// Ends the runtime, if the scheduler has halted and no thread is inside.
    fn end_if_over(&self) {
        // Ordering: SeqCst, pairs with itself: either the thread that leaves the runtime sees
        // `is_over`, or the thread that has set `is_over` finds the lock free.
        fence(Ordering::SeqCst);
        // Ordering: Relaxed, because the fence orders it.
        if self.is_over.load(Ordering::Relaxed) {
            match self.runtime.try_lock() {
                Ok(mut runtime) => shut_down(runtime.take()),
                // A thread has panicked in it, and has left it.
                Err(TryLockError::Poisoned(lock)) => shut_down(lock.into_inner().take()),
                Err(TryLockError::WouldBlock) => {}
            }
        }
    }

    /// Lets the driver look once, and runs the ready futures.
    async fn look(&self) {
        tokio::task::yield_now().await;
        let mut interrupted = pin!(self.interrupt.notified());
        let _over = interrupted
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
    }
}

impl Driver for Tokio {
    fn wait(&self, timeout: Option<Duration>) {
        let runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        match runtime.as_ref() {
            Some(runtime) if timeout == Some(Duration::ZERO) => runtime.block_on(self.look()),
            Some(runtime) => runtime.block_on(self.interrupted(timeout)),
            None => {}
        }
        drop(runtime);
        self.end_if_over();
    }

    fn interrupt(&self) {
        self.interrupt.notify_one();
    }

    fn with_worker(&self, work: &mut dyn FnMut()) {
        let _inside = self.handle.enter();
        work();
    }

    fn detach(&self) {
        // Ordering: Relaxed: the fence in `end_if_over` orders it.
        self.is_over.store(true, Ordering::Relaxed);
        self.end_if_over();
    }
}

impl Drop for Tokio {
    fn drop(&mut self) {
        let runtime = self.runtime.get_mut();
        shut_down(runtime.unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// Returns whether the runtime has timers. tokio says it by a panic alone.
fn has_time(runtime: &Runtime) -> bool {
    let _inside = runtime.enter();
    catch_unwind(|| drop(tokio::time::sleep(Duration::ZERO))).is_ok()
}

/// Drops the spawned futures, and waits for no thread.
fn shut_down(runtime: Option<Runtime>) {
    if let Some(runtime) = runtime {
        runtime.shutdown_background();
    }
}
