//! The steps that wait for room in any mailbox: a canceller or terminator of their process ends the
//! wait.
//!
//! **Problem.** Processes whose steps wait for room in each other's mailboxes wait for ever. The
//! end of a process waits for the end of its step, and so never comes.
//!
//! **Protocol.** A scheduler has a table for its processes, whatever their targets.
//! 1. *Step*, before it waits: it puts its waker into the table, counts it, makes a full fence, and
//!    looks at the marks of its process ([`enter`](WaitingSteps::enter)). Without marks it waits.
//! 2. *Canceller or terminator*: it marks the process, makes a full fence, and looks at the count.
//!    If the count is not 0, it wakes the step of its process, if the table has it
//!    ([`wake`](WaitingSteps::wake)).
//! 3. *Woken step*: it takes its message back, and its waker out of the table.
//!
//! **Proof sketch.** One of the two fences comes first. If it is the step's, the other thread sees
//! the count, and finds the waker under the lock. If not, the step sees the mark.

use ganger_sync::atomic::{AtomicUsize, Ordering, fence};
use ganger_sync::sync::{Mutex, lock};
use std::collections::BTreeMap;
use std::task::Waker;

/// See the head of this file.
#[derive(Default)]
pub(crate) struct WaitingSteps {
    /// How many steps wait. Written under the lock, read by cancellers and terminators.
    count: AtomicUsize,
    /// By the id of their process.
    wakers: Mutex<BTreeMap<u64, Waker>>,
}

/// A waiting step, until this is dropped.
pub(crate) struct WaitingStep<'a> {
    steps: &'a WaitingSteps,
    id: u64,
}

impl WaitingSteps {
    /// Enters the step of the process with this id, which is about to wait. The caller looks at the
    /// marks of the process next. Calls no user code but the waker's destructor, at the end.
    pub(crate) fn enter(&self, id: u64, waker: Waker) -> WaitingStep<'_> {
        let mut wakers = lock(&self.wakers);
        wakers.insert(id, waker);
        // Ordering: Relaxed: the fence below orders it.
        self.count.store(wakers.len(), Ordering::Relaxed);
        drop(wakers);
        // Ordering: SeqCst pairs with the fence in `wake`: the step counts, and then looks at the
        // marks; the process is marked, and then the count is looked at.
        fence(Ordering::SeqCst);
        WaitingStep { steps: self, id }
    }

    /// Wakes the step of the process with this id, which the caller has marked, if it waits.
    pub(crate) fn wake(&self, id: u64) {
        // Ordering: SeqCst pairs with the fence in `enter`.
        fence(Ordering::SeqCst);
        // Ordering: Relaxed: the fence orders it.
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let waker = lock(&self.wakers).get(&id).cloned();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Drop for WaitingStep<'_> {
    fn drop(&mut self) {
        let mut wakers = lock(&self.steps.wakers);
        let _waker = wakers.remove(&self.id);
        // Ordering: Relaxed: a look for a step whose wait is over does no harm.
        self.steps.count.store(wakers.len(), Ordering::Relaxed);
    }
}
