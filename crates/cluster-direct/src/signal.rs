//! A flag that processes and threads wait for.

use ganger_sync::sync::{Mutex, lock};
use ganger_sync::wake_all;
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// Set by any thread, and taken by a waiter. Several sets before a take are a single set.
#[derive(Debug, Default)]
pub(crate) struct Signal(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    is_set: bool,
    waiters: Vec<Waker>,
}

impl Signal {
    /// Sets the flag, and wakes all waiters.
    pub(crate) fn set(&self) {
        let mut state = lock(&self.0);
        state.is_set = true;
        let waiters = std::mem::take(&mut state.waiters);
        drop(state);
        wake_all(waiters);
    }

    /// Waits until the flag is set, and clears it.
    pub(crate) async fn take(&self) {
        self.wait_and(|is_set| *is_set = false).await;
    }

    /// Waits until the flag is set, and leaves it.
    pub(crate) async fn wait(&self) {
        self.wait_and(|_| ()).await;
    }

    async fn wait_and(&self, then: impl Fn(&mut bool)) {
        poll_fn(|context| {
            let mut state = lock(&self.0);
            if state.is_set {
                then(&mut state.is_set);
                return Poll::Ready(());
            }
            let waker = context.waker();
            if !state.waiters.iter().any(|it| it.will_wake(waker)) {
                state.waiters.push(waker.clone());
            }
            Poll::Pending
        })
        .await;
    }
}
