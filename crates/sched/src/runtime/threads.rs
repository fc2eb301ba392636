//! The threads of a scheduler: a `stop` waits for the counted ones.

use crate::runtime::frames::{self, Frame};
use crate::runtime::shared::Shared;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread;

/// Makes a builder for a thread with users' code, with `part` in its name.
pub(crate) fn builder(shared: &Shared, part: impl fmt::Display) -> thread::Builder {
    let config = &shared.config;
    let builder = thread::Builder::new().name(format!("{}-{part}", config.thread_name));
    match config.stack_size {
        Some(bytes) => builder.stack_size(bytes),
        None => builder,
    }
}

/// Starts a thread that counts from this call until it ends.
///
/// # Errors
/// When the system refuses the thread.
pub(crate) fn spawn(
    builder: thread::Builder,
    shared: &Arc<Shared>,
    f: impl FnOnce(&Arc<Shared>) + Send + 'static,
) -> io::Result<()> {
    spawn_and_then(builder, shared, move |shared| {
        f(shared);
        |_: &Shared| ()
    })
}

/// Starts a thread as [`spawn`] does. When the thread ceases to count, it calls the function
/// returned by `f`.
///
/// # Errors
/// When the system refuses the thread.
pub(crate) fn spawn_and_then<A: FnOnce(&Shared)>(
    builder: thread::Builder,
    shared: &Arc<Shared>,
    f: impl FnOnce(&Arc<Shared>) -> A + Send + 'static,
) -> io::Result<()> {
    let guard = ThreadGuard::new(shared);
    spawn_detached(builder, shared, move || {
        let guard = guard;
        let then = frames::within(&*guard.0, Frame::Thread, || f(&guard.0));
        let shared = Arc::clone(&guard.0);
        drop(guard);
        then(&shared);
    })
}

/// Starts a thread that does not count: no `stop` waits for it.
///
/// # Errors
/// When the system refuses the thread.
pub(crate) fn spawn_detached(
    builder: thread::Builder,
    shared: &Shared,
    f: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    #[cfg(test)]
    if shared.worker_slots.refuses_threads() {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    #[cfg(not(test))]
    let _ = shared;
    builder.spawn(f).map(drop)
}

/// A counted thread, until the guard is dropped.
struct ThreadGuard(Arc<Shared>);

impl ThreadGuard {
    fn new(shared: &Arc<Shared>) -> Self {
        shared.census.threads.enter();
        Self(Arc::clone(shared))
    }
}

impl Drop for ThreadGuard {
    fn drop(&mut self) {
        self.0.census.threads.leave();
    }
}
