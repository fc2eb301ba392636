//! The word of a select: which case has been chosen.
//!
//! **Problem.** A select waits at several channels. Threads at two of them may want to serve it at
//! the same moment, and one of them must find itself too late.
//!
//! **Rejected.** A select that is only woken, and tries its cases again: a receiver without a
//! buffer must take the value from a sender that is known to be chosen.
//!
//! **Protocol.** A thread that serves a waiting select has the lock of the channel, and exchanges
//! `WAITING` for the number of the case. The select itself exchanges `WAITING` for `BUSY` before it
//! polls other futures, for one of them may end the wait. The select is `BUSY` as well while it
//! takes its entries. A thread that finds the select `BUSY` leaves its entry and skips it: the
//! select checks all channels once more, under all their locks, before it is `WAITING` again.
//!
//! | word | its next value | by |
//! |---|---|---|
//! | `BUSY` | `WAITING`, `OVER` | the select |
//! | `WAITING` | `BUSY`, `OVER` | the select |
//! | `WAITING` | case n | a thread at the channel of case n |
//! | `OVER`, case n | none | final |

use ganger_sync::atomic::{AtomicUsize, Ordering};
use ganger_sync::sync::{Mutex, lock};
use std::task::Waker;

const BUSY: usize = usize::MAX;
const WAITING: usize = usize::MAX - 1;
const OVER: usize = usize::MAX - 2;

/// The result of an attempt to claim a select as a case, with the thread's obligation.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claimed {
    /// The thread serves the case, and wakes the select.
    Yes,
    /// The select is about to check by itself, and keeps its entry.
    Busy,
    /// Another case has been chosen: the entry is useless now.
    TooLate,
}

#[derive(Debug)]
pub(crate) struct Claim {
    word: AtomicUsize,
    waker: Mutex<Option<Waker>>,
}

impl Claim {
    /// Creates the claim of a select that is adding its entries.
    pub(crate) fn new(waker: Waker) -> Self {
        Self {
            word: AtomicUsize::new(BUSY),
            waker: Mutex::new(Some(waker)),
        }
    }

    /// Claims the select as `case`, for a thread at its channel.
    pub(crate) fn try_claim(&self, case: usize) -> Claimed {
        match self.change(WAITING, case) {
            Ok(()) => Claimed::Yes,
            Err(BUSY) => Claimed::Busy,
            Err(_) => Claimed::TooLate,
        }
    }

    /// Begins a check by the select itself, or goes on with one whose futures have panicked. Fails
    /// with the chosen case, if any.
    pub(crate) fn begin(&self) -> Result<(), usize> {
        match self.change(WAITING, BUSY) {
            Err(BUSY) => Ok(()),
            begun => begun,
        }
    }

    /// Makes the select, which was busy, wait.
    pub(crate) fn wait(&self) {
        // Ordering: Release pairs with the Acquire in `change` of the thread that chooses a case.
        self.word.store(WAITING, Ordering::Release);
    }

    /// Ends the select, which was busy and has an outcome.
    pub(crate) fn end(&self) {
        // Ordering: Relaxed: other threads act only on `WAITING`.
        self.word.store(OVER, Ordering::Relaxed);
    }

    /// Gives up the wait. Fails with the chosen case, if any.
    pub(crate) fn give_up(&self) -> Result<(), usize> {
        self.change(WAITING, OVER)
    }

    /// Returns the chosen case.
    pub(crate) fn chosen(&self) -> Option<usize> {
        // Ordering: Acquire pairs with the Release in `change` of the thread that chose the case.
        let word = self.word.load(Ordering::Acquire);
        (word < OVER).then_some(word)
    }

    /// Sets the waker for the thread that chooses a case.
    pub(crate) fn set_waker(&self, waker: &Waker) {
        let is_set = |place: &Option<Waker>| place.as_ref().is_some_and(|it| it.will_wake(waker));
        if is_set(&lock(&self.waker)) {
            return;
        }
        // A waker is users' code, also in its clone and drop.
        let new = waker.clone();
        let old = lock(&self.waker).replace(new);
        drop(old);
    }

    pub(crate) fn take_waker(&self) -> Option<Waker> {
        lock(&self.waker).take()
    }

    fn change(&self, from: usize, to: usize) -> Result<(), usize> {
        // Ordering: AcqRel: the choosing thread and the select see each other's earlier actions.
        // Acquire pairs with the Release of the thread that has chosen a case.
        self.word
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
            .map(drop)
    }
}
