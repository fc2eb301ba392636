//! A waiter for one event, or for the first of several.
//!
//! **Problem.** A task, a thread or a yield waits in several queues at a time. The owner of only a
//! single queue may claim the waiter. The waiter may give up at the same moment.
//!
//! **Rejected.** A mark in each queue: two owners, each with its own lock, would both claim it. A
//! single lock for all queues: unrelated queues would wait for each other.
//!
//! **Protocol of the claimer**, the owner of a queue:
//! 1. [`claim`](Waiter::claim), under the lock of its queue: a CAS. Under the same lock the
//!    claimer leaves the item of the claim, if any.
//! 2. [`wake`](Waiter::wake), without the lock: the wake-up is foreign code.
//!
//! **Protocol of the waiter**
//! 1. Enter the queues.
//! 2. [`poll`](Waiter::poll): leave the waker, then read the word again.
//! 3. To give up: [`leave`](Waiter::leave) says whether a claimer came first. If so, hand the
//!    claim on to another waiter. In both cases take the entries out of all queues.
//!
//! **Why no wake-up is lost.** The waker is behind a lock. If `wake` takes the lock first, the
//! claim came before, so the second read in step 2 sees the claim. Otherwise `wake` finds the
//! waker.

use crate::block;
use ganger_sync::atomic::{AtomicU32, Ordering};
use ganger_sync::sync::{Mutex, lock};
use std::fmt;
use std::mem;
use std::task::{Poll, Waker};
use std::time::Duration;

/// Any claimer may claim the waiter.
const WAITING: u32 = 0;
/// The waiter has given up.
const GONE: u32 = 1;
/// The waiter is claimed as case `word - CLAIMED`.
const CLAIMED: u32 = 2;

/// A waiter in one queue or in several. Its owner and the queues share it.
///
/// | word | written by | `claim` | `leave` |
/// |---|---|---|---|
/// | `WAITING` | its owner | yes, once | `InTime` |
/// | `GONE` | its owner | no | `InTime` |
/// | `CLAIMED + case` | a claimer | no | `Claimed(case)` |
pub struct Waiter {
    word: AtomicU32,
    how: Mutex<How>,
}

/// How `wake` reaches the owner of the waiter.
#[derive(Default)]
enum How {
    /// The owner polls, or calls `claimed`.
    #[default]
    Unset,
    Wake(Waker),
    Call(Box<dyn FnOnce(u32) + Send>),
}

/// Whether a waiter was claimed before it gave up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a waiter that was claimed hands on what it was claimed for"]
pub enum Left {
    /// The waiter was not claimed, and will not be.
    InTime,
    /// The waiter was claimed, as this case.
    Claimed(u32),
}

impl Default for Waiter {
    fn default() -> Self {
        Self::new()
    }
}

impl Waiter {
    /// Creates a waiter in no queue.
    #[must_use]
    pub fn new() -> Self {
        Self {
            word: AtomicU32::new(WAITING),
            how: Mutex::new(How::Unset),
        }
    }

    /// Creates a waiter that no claimer claims. For an entry in a queue, kept by its owner for
    /// later.
    #[must_use]
    pub fn gone() -> Self {
        Self {
            word: AtomicU32::new(GONE),
            how: Mutex::new(How::Unset),
        }
    }

    /// Claims the waiter as `case`, if the waiter still waits. For the claimer. One CAS.
    ///
    /// After `true`, the caller owes [`wake`](Self::wake).
    ///
    /// # Panics
    /// If `case` is more than `u32::MAX - 2`.
    #[must_use = "only a waiter that was claimed is woken"]
    pub fn claim(&self, case: u32) -> bool {
        let Some(claimed) = case.checked_add(CLAIMED) else {
            panic!("a wait has at most 2^32 - 2 cases");
        };
        // Ordering: Release pairs with the Acquire in `claimed` and `leave`: the waiter sees the
        // claimer's writes before the claim. A failure reads nothing.
        self.word
            .compare_exchange(WAITING, claimed, Ordering::Release, Ordering::Relaxed)
            .is_ok()
    }

    /// Wakes the waiter, or makes its call, once. For the claimer. Must be called without a lock:
    /// foreign code runs.
    pub fn wake(&self) {
        let how = mem::take(&mut *lock(&self.how));
        match how {
            How::Unset => {}
            How::Wake(waker) => waker.wake(),
            How::Call(call) => {
                if let Some(case) = self.claimed() {
                    call(case);
                }
            }
        }
    }

    /// Returns the case as which the waiter was claimed, if any.
    #[must_use]
    pub fn claimed(&self) -> Option<u32> {
        // Ordering: Acquire pairs with the Release in `claim`.
        self.word.load(Ordering::Acquire).checked_sub(CLAIMED)
    }

    /// Returns the claimed case, or leaves `waker` for the claimer. For the owner, as a task.
    pub fn poll(&self, waker: &Waker) -> Poll<u32> {
        if let Some(case) = self.claimed() {
            return Poll::Ready(case);
        }
        let is_set = match &*lock(&self.how) {
            How::Wake(its) => its.will_wake(waker),
            _ => false,
        };
        if !is_set {
            self.set(How::Wake(waker.clone()));
        }
        self.claimed().map_or(Poll::Pending, Poll::Ready)
    }

    /// Blocks until the waiter is claimed, and returns the case. For the owner, as a thread.
    /// Returns `None` after `timeout`; the waiter then still waits.
    ///
    /// Must not be called from a step outside of `Context::blocking`: the step's worker would
    /// block.
    #[must_use]
    pub fn block(&self, timeout: Option<Duration>) -> Option<u32> {
        block::until_ready(timeout, |waker| self.poll(waker))
    }

    /// Has `call` made once with the claimed case, by the claimer's thread or by this thread. For
    /// the owner. The call is dropped with the waiter, or by [`forget`](Self::forget).
    pub fn call_when_claimed(&self, call: impl FnOnce(u32) + Send + 'static) {
        self.set(How::Call(Box::new(call)));
        if self.claimed().is_some() {
            self.wake();
        }
    }

    /// Gives up; no claimer claims the waiter from now on. For the owner. May be called under the
    /// lock of a queue: the waker or call stays until [`forget`](Self::forget), or until the waiter
    /// is dropped.
    pub fn leave(&self) -> Left {
        // Ordering: Acquire pairs with the Release in `claim`. Nothing is published.
        let word = self.word.swap(GONE, Ordering::Acquire);
        match word.checked_sub(CLAIMED) {
            None => Left::InTime,
            Some(case) => Left::Claimed(case),
        }
    }

    /// Drops the waker or call. For the owner. Must be called without a lock: the drop is foreign
    /// code.
    pub fn forget(&self) {
        self.set(How::Unset);
    }

    /// Makes the waiter wait again. For the owner, after a claim. The waiter must be in no queue.
    pub fn reset(&self) {
        // Ordering: Relaxed, because a claimer finds the waiter in a queue entered later, under the
        // queue's lock.
        self.word.store(WAITING, Ordering::Relaxed);
    }

    /// Drops the old waker or call without the lock: the drop is foreign code.
    fn set(&self, how: How) {
        let old = mem::replace(&mut *lock(&self.how), how);
        drop(old);
    }
}

impl fmt::Debug for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Ordering: Relaxed, because the word is only shown.
        let word = self.word.load(Ordering::Relaxed);
        match word.checked_sub(CLAIMED) {
            Some(case) => f.debug_tuple("Claimed").field(&case).finish(),
            None => f.write_str(if word == GONE { "Gone" } else { "Waiting" }),
        }
    }
}
