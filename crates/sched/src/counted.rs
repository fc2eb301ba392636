//! Threads that count as a scheduler's: a `stop` waits for them, but not for the one that it is called on.

use crate::local;
use crate::shared::Shared;
use std::cell::Cell;
use std::fmt;
use std::io;
use std::ptr;
use std::sync::Arc;
use std::thread;

thread_local! {
    /// Whose this thread is, or null. Without a destructor, so that looking works in those of other thread-locals.
    static OWNER: Cell<*const Shared> = const { Cell::new(ptr::null()) };
}

/// Whether this thread is one of that scheduler's.
pub(crate) fn is_own(shared: &Shared) -> bool {
    ptr::eq(OWNER.get(), shared) || local::with(shared, |_| ()).is_some()
}

/// A thread that runs what is a user's, with that part of the scheduler's work in its name.
pub(crate) fn builder(shared: &Shared, part: impl fmt::Display) -> thread::Builder {
    let config = &shared.config;
    let builder = thread::Builder::new().name(format!("{}-{part}", config.thread_name));
    match config.stack_size {
        Some(bytes) => builder.stack_size(bytes),
        None => builder,
    }
}

/// Starts a thread that counts, from now until it ends.
///
/// # Errors
/// When the system refuses one.
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

/// As [`spawn`], and has the thread call what `f` returns when it does not count any more.
///
/// # Errors
/// When the system refuses one.
pub(crate) fn spawn_and_then<A: FnOnce(&Shared)>(
    builder: thread::Builder,
    shared: &Arc<Shared>,
    f: impl FnOnce(&Arc<Shared>) -> A + Send + 'static,
) -> io::Result<()> {
    let counted = Counted::new(shared);
    spawn_beside(builder, shared, move || {
        let counted = counted;
        let owned = Owned::new(&counted.0);
        let then = f(&counted.0);
        drop(owned);
        let shared = Arc::clone(&counted.0);
        drop(counted);
        then(&shared);
    })
}

/// Starts a thread that is nobody's, and that nobody waits for.
///
/// # Errors
/// When the system refuses one.
pub(crate) fn spawn_beside(
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

/// One thread more, until it is dropped.
struct Counted(Arc<Shared>);

impl Counted {
    fn new(shared: &Arc<Shared>) -> Self {
        shared.threads.enter();
        Self(Arc::clone(shared))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.threads.leave();
    }
}

/// This thread is that scheduler's, until it is dropped: what comes after that is not counted.
struct Owned;

impl Owned {
    fn new(shared: &Arc<Shared>) -> Self {
        OWNER.set(Arc::as_ptr(shared));
        Self
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        OWNER.set(ptr::null());
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::Scheduler;
    use std::sync::mpsc;
    use std::time::Duration;

    // pins: D3
    #[test]
    fn a_stop_does_not_wait_for_the_thread_that_it_is_called_on() {
        let scheduler = Scheduler::builder().workers(1).build().unwrap();
        scheduler.start().unwrap();
        let shared = &scheduler.shared;
        let (tell, told) = mpsc::channel();
        let stop = move |shared: &Arc<Shared>| {
            assert!(is_own(shared));
            // It would wait for an hour.
            tell.send(shared.stop(Duration::from_secs(3_600))).unwrap();
        };
        spawn(thread::Builder::new(), shared, stop).unwrap();
        let report = told.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(report.stuck.is_empty());
        assert!(!is_own(shared));
    }
}
