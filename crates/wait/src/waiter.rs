//! One that waits: for one thing, or for the first of several.
//!
//! **Problem.** A task, a thread or a yield waits in several queues at a time. One of their owners
//! is to choose it, and no other. The waiter may give up at the same moment.
//!
//! **Rejected.** A mark in each queue: two owners, each with its own lock, would choose it twice.
//! One lock for all queues: those that have nothing to do with each other would wait.
//!
//! **Protocol of the chooser**, the owner of a queue:
//! 1. [`choose`](Waiter::choose), under the lock of its queue: one CAS. What goes with the choice
//!    is left under the same lock.
//! 2. [`tell`](Waiter::tell), without the lock: the wake-up is foreign code.
//!
//! **Protocol of the waiter**
//! 1. It enters its queues.
//! 2. [`poll`](Waiter::poll): it leaves its waker, and then looks at the word again.
//! 3. When it gives up, [`leave`](Waiter::leave) says whether it was chosen before. Then it hands
//!    on what it was chosen for. It takes its entries out of all queues in both cases.
//!
//! **Why no wake-up is lost.** The waker is behind a lock. When `tell` comes to it first, the
//! choice was before that, so the look after step 2 sees the choice. Otherwise `tell` finds the
//! waker.

use crate::block;
use ganger_sync::atomic::{AtomicU32, Ordering};
use ganger_sync::sync::{Mutex, lock};
use std::fmt;
use std::mem;
use std::task::{Poll, Waker};
use std::time::Duration;

/// It waits: any chooser may choose it.
const WAITING: u32 = 0;
/// It has given up.
const GONE: u32 = 1;
/// It has been chosen as case `word - CHOSEN`.
const CHOSEN: u32 = 2;

/// One that waits, in one queue or in several. It is shared by its owner and the queues.
///
/// | word | written by | `choose` | `leave` |
/// |---|---|---|---|
/// | `WAITING` | its owner | yes, once | `InTime` |
/// | `GONE` | its owner | no | `InTime` |
/// | `CHOSEN + case` | a chooser | no | `Chosen(case)` |
pub struct Waiter {
    word: AtomicU32,
    how: Mutex<How>,
}

/// How the waiter is told that it has been chosen.
#[derive(Default)]
enum How {
    /// Its owner looks.
    #[default]
    Unset,
    Wake(Waker),
    Call(Box<dyn FnOnce(u32) + Send>),
}

/// Whether a waiter that gives up was chosen before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a waiter that was chosen hands on what it was chosen for"]
pub enum Left {
    /// It was not, and is not chosen from now on.
    InTime,
    /// It was, as this case.
    Chosen(u32),
}

impl Default for Waiter {
    fn default() -> Self {
        Self::new()
    }
}

impl Waiter {
    /// A waiter that is in no queue.
    #[must_use]
    pub fn new() -> Self {
        Self {
            word: AtomicU32::new(WAITING),
            how: Mutex::new(How::Unset),
        }
    }

    /// A waiter that waits no longer: no chooser chooses it. For a place in a queue that its owner
    /// keeps for later.
    #[must_use]
    pub fn gone() -> Self {
        Self {
            word: AtomicU32::new(GONE),
            how: Mutex::new(How::Unset),
        }
    }

    /// The chooser: chooses it as that case, if it still waits. One CAS.
    ///
    /// The caller then owes [`tell`](Self::tell).
    ///
    /// # Panics
    /// When `case` is more than `u32::MAX - 2`.
    #[must_use = "only a waiter that was chosen is told"]
    pub fn choose(&self, case: u32) -> bool {
        let Some(chosen) = case.checked_add(CHOSEN) else {
            panic!("a wait has at most 2^32 - 2 cases");
        };
        // Ordering: Release pairs with the Acquire in `chosen` and `leave`: the waiter sees what
        // was done before it was chosen. A failure reads nothing.
        self.word
            .compare_exchange(WAITING, chosen, Ordering::Release, Ordering::Relaxed)
            .is_ok()
    }

    /// The chooser: wakes the waiter, or makes its call, once. Foreign code runs: call it without
    /// a lock.
    pub fn tell(&self) {
        let how = mem::take(&mut *lock(&self.how));
        match how {
            How::Unset => {}
            How::Wake(waker) => waker.wake(),
            How::Call(call) => {
                if let Some(case) = self.chosen() {
                    call(case);
                }
            }
        }
    }

    /// The case that it was chosen as, if it was.
    #[must_use]
    pub fn chosen(&self) -> Option<u32> {
        // Ordering: Acquire pairs with the Release in `choose`.
        self.word.load(Ordering::Acquire).checked_sub(CHOSEN)
    }

    /// The owner, as a task: the case that it was chosen as, or `waker` is woken when it is.
    pub fn poll(&self, waker: &Waker) -> Poll<u32> {
        if let Some(case) = self.chosen() {
            return Poll::Ready(case);
        }
        let is_set = match &*lock(&self.how) {
            How::Wake(its) => its.will_wake(waker),
            _ => false,
        };
        if !is_set {
            self.set(How::Wake(waker.clone()));
        }
        self.chosen().map_or(Poll::Pending, Poll::Ready)
    }

    /// The owner, as a thread: blocks until it is chosen, and says as which case. `None` when that
    /// takes longer than `timeout`; the waiter still waits then.
    ///
    /// Must not be called from a step outside of `Context::blocking`: its worker would wait.
    #[must_use]
    pub fn block(&self, timeout: Option<Duration>) -> Option<u32> {
        block::until_ready(timeout, |waker| self.poll(waker))
    }

    /// The owner: `call` is made with the case, once, when it is chosen, by the chooser's thread or
    /// by this one. It is dropped with the waiter, or by
    /// [`forget`](Self::forget).
    pub fn call_when_chosen(&self, call: impl FnOnce(u32) + Send + 'static) {
        self.set(How::Call(Box::new(call)));
        if self.chosen().is_some() {
            self.tell();
        }
    }

    /// The owner gives up: no chooser chooses it from now on. May be called under the lock of a
    /// queue: its waker or call is dropped with the waiter, or by [`forget`](Self::forget).
    pub fn leave(&self) -> Left {
        // Ordering: Acquire pairs with the Release in `choose`. Nothing is published.
        let word = self.word.swap(GONE, Ordering::Acquire);
        match word.checked_sub(CHOSEN) {
            None => Left::InTime,
            Some(case) => Left::Chosen(case),
        }
    }

    /// The owner drops its waker or call, which is foreign code: call it without a lock.
    pub fn forget(&self) {
        self.set(How::Unset);
    }

    /// The owner, after it was chosen: it waits again. It is in no queue at that moment.
    pub fn reset(&self) {
        // Ordering: Relaxed, because a chooser finds the waiter in a queue that it enters later,
        // under that queue's lock.
        self.word.store(WAITING, Ordering::Relaxed);
    }

    /// The old one is dropped without the lock: it is foreign code.
    fn set(&self, how: How) {
        let old = mem::replace(&mut *lock(&self.how), how);
        drop(old);
    }
}

impl fmt::Debug for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Ordering: Relaxed, because it is only shown.
        let word = self.word.load(Ordering::Relaxed);
        match word.checked_sub(CHOSEN) {
            Some(case) => f.debug_tuple("Chosen").field(&case).finish(),
            None => f.write_str(if word == GONE { "Gone" } else { "Waiting" }),
        }
    }
}
