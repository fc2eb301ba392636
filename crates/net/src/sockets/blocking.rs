//! Blocking calls for waiting processes.
//!
//! A new process makes the call, and a spare replaces its worker: `Builder::max_spares` bounds
//! these threads, as for `Context::blocking`. The caller waits for a socket that becomes ready when
//! the call returns, so the wait has a deadline, and ends with the halt. A wait dropped before the
//! call has begun revokes the call.

use super::socket::{IoSource, Socket};
use crate::error;
use crate::look::{About, SocketKind};
use crate::poller::{Direction, Interest, Lent};
use ganger_proc_api::process_fn;
use ganger_sched::internal::here;
use ganger_sync::sync::lock;
use std::io;
use std::sync::{Mutex, Weak};
use std::time::Duration;

/// The result of the call, until the wait takes it.
struct Outcome<T>(Mutex<Option<io::Result<T>>>);

impl<T: Send + 'static> IoSource for Outcome<T> {
    fn lent(&self) -> Option<Lent<'_>> {
        None
    }

    fn about(&self) -> About {
        About::of(SocketKind::Call)
    }
}

impl<T> Outcome<T> {
    fn take(&self) -> io::Result<io::Result<T>> {
        lock(&self.0)
            .take()
            .ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }
}

/// The duty to leave a result.
struct Promise<T: Send + 'static>(Weak<Socket<Outcome<T>>>);

impl<T: Send + 'static> Promise<T> {
    fn is_wanted(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// Leaves a result, unless there was an earlier result.
    fn keep(&self, result: io::Result<T>) {
        let Some(outcome) = self.0.upgrade() else {
            return;
        };
        let kept = outcome.with(|it| {
            lock(&it.0).get_or_insert(result);
            Ok(())
        });
        if kept.is_ok() {
            outcome.wake(Interest::READ);
        }
    }
}

/// Leaves an error if the call has panicked, or its process has ended before.
impl<T: Send + 'static> Drop for Promise<T> {
    fn drop(&mut self) {
        self.keep(Err(error::no_result()));
    }
}

/// Makes a call on another thread, and waits for its result within a time.
pub(crate) async fn blocking<T: Send + 'static>(
    within: Option<Duration>,
    call: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let outcome = Socket::new(Outcome(Mutex::new(None)))?;
    if within.is_some() {
        outcome.set_deadline(Direction::Read, within);
    }
    let promise = Promise(std::sync::Arc::downgrade(&outcome));
    begin(promise, call)?;
    outcome.wait(Direction::Read, Outcome::take).await?
}

fn begin<T: Send + 'static>(
    promise: Promise<T>,
    call: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<()> {
    let scheduler = here::scheduler().ok_or_else(error::no_process)?;
    let mut both = Some((promise, call));
    let caller = process_fn(move |ctx, _, out| {
        if let Some((promise, call)) = both.take()
            && promise.is_wanted()
        {
            promise.keep(ctx.blocking(call));
        }
        out.done(());
        Ok(())
    });
    let spawned = scheduler.spawn(caller);
    spawned.map_err(|error| io::Error::other(error.to_string()))?;
    Ok(())
}
