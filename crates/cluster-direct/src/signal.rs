//! A flag that processes and threads wait for.

use ganger_sync::sync::{Mutex, lock};
use ganger_sync::wake_all;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// Set by any thread, and taken by a waiter. Several sets before a take are a single set.
#[derive(Debug, Default)]
pub(crate) struct Signal(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    is_set: bool,
    waits: u64,
    /// By the numbers of their waits.
    waiters: BTreeMap<u64, Waker>,
}

/// The place of a wait, which the wait leaves at its end.
struct Wait<'a> {
    signal: &'a Signal,
    number: u64,
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let waker = lock(&self.signal.0).waiters.remove(&self.number);
        // Without the lock.
        drop(waker);
    }
}

impl Signal {
    /// Sets the flag, and wakes all waiters.
    pub(crate) fn set(&self) {
        let mut state = lock(&self.0);
        state.is_set = true;
        let waiters = std::mem::take(&mut state.waiters);
        drop(state);
        wake_all(waiters.into_values().collect());
    }

    /// Waits until the flag is set, and clears it.
    pub(crate) async fn take(&self) {
        self.wait_and(|is_set| *is_set = false).await;
    }

    /// Waits until the flag is set, and leaves it.
    pub(crate) async fn wait(&self) {
        self.wait_and(|_| ()).await;
    }

    fn place(&self) -> Wait<'_> {
        let mut state = lock(&self.0);
        state.waits += 1;
        Wait {
            signal: self,
            number: state.waits,
        }
    }

    async fn wait_and(&self, then: impl Fn(&mut bool)) {
        let place = self.place();
        poll_fn(|context| {
            let mut state = lock(&self.0);
            if state.is_set {
                then(&mut state.is_set);
                return Poll::Ready(());
            }
            let before = state.waiters.insert(place.number, context.waker().clone());
            drop(state);
            // Without the lock.
            drop(before);
            Poll::Pending
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::Context;

    /// Drops waits again and again, as dials do while the signal of the stop is never set.
    #[test]
    fn a_wait_that_is_dropped_leaves_nothing() {
        let signal = Signal::default();
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..10 {
            let wait = pin!(signal.wait());
            assert!(wait.poll(&mut context).is_pending());
        }
        let mut last = Box::pin(signal.wait());
        assert!(last.as_mut().poll(&mut context).is_pending());
        assert_eq!(lock(&signal.0).waiters.len(), 1);
        signal.set();
        assert!(last.as_mut().poll(&mut context).is_ready());
        assert!(lock(&signal.0).waiters.is_empty());
    }
}
