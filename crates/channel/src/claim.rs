//! The one word that says which case of a select has been chosen.
//!
//! **Problem.** A select waits at several channels. Threads at two of them may want to serve it at
//! the same moment, and one of them must find that it is too late.
//!
//! **Rejected.** A select that is only woken, and tries its cases again: a receiver without a
//! buffer has to take the value from a sender that is known to have been chosen.
//!
//! **Protocol.** A thread that serves a waiting select has the lock of the channel, and exchanges
//! `WAITING` for the number of the case. The select itself exchanges `WAITING` for `BUSY` before it
//! polls other futures, for one of them may end the wait. It is `BUSY` as well while it takes its
//! places. A thread that finds it `BUSY` leaves it in its place and goes on as if it were not
//! there: the select looks at all channels once more, under all their locks, before it is `WAITING`
//! again.
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

/// What a thread owes that has tried to choose a case.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chosen {
    /// It serves the case, and wakes the select.
    Yes,
    /// The select is about to look itself, and keeps its place.
    Busy,
    /// Another case has been chosen: the place is of no use any longer.
    TooLate,
}

#[derive(Debug)]
pub(crate) struct Claim {
    word: AtomicUsize,
    waker: Mutex<Option<Waker>>,
}

impl Claim {
    /// The claim of a select that takes its places.
    pub(crate) fn new(waker: Waker) -> Self {
        Self {
            word: AtomicUsize::new(BUSY),
            waker: Mutex::new(Some(waker)),
        }
    }

    /// A thread at the channel of that case wants to serve it.
    pub(crate) fn choose(&self, case: usize) -> Chosen {
        match self.change(WAITING, case) {
            Ok(()) => Chosen::Yes,
            Err(BUSY) => Chosen::Busy,
            Err(_) => Chosen::TooLate,
        }
    }

    /// The select is about to look at its cases itself. Otherwise the case that has been chosen.
    pub(crate) fn begin(&self) -> Result<(), usize> {
        self.change(WAITING, BUSY)
    }

    /// The select, which was busy, waits.
    pub(crate) fn wait(&self) {
        // Ordering: Release pairs with the Acquire in `change` of the thread that chooses a case.
        self.word.store(WAITING, Ordering::Release);
    }

    /// The select, which was busy, has an outcome.
    pub(crate) fn end(&self) {
        // Ordering: Relaxed: other threads act on `WAITING` alone.
        self.word.store(OVER, Ordering::Relaxed);
    }

    /// The select waits no longer. Otherwise the case that has been chosen.
    pub(crate) fn give_up(&self) -> Result<(), usize> {
        self.change(WAITING, OVER)
    }

    /// The case that has been chosen.
    pub(crate) fn chosen(&self) -> Option<usize> {
        // Ordering: Acquire pairs with the Release in `change` of the thread that chose the case.
        let word = self.word.load(Ordering::Acquire);
        (word < OVER).then_some(word)
    }

    /// What is to be woken by the thread that chooses a case.
    pub(crate) fn set_waker(&self, waker: &Waker) {
        let is_set = |place: &Option<Waker>| place.as_ref().is_some_and(|it| it.will_wake(waker));
        if is_set(&lock(&self.waker)) {
            return;
        }
        // A waker is users' code, also where it is cloned or dropped.
        let new = waker.clone();
        let old = lock(&self.waker).replace(new);
        drop(old);
    }

    pub(crate) fn take_waker(&self) -> Option<Waker> {
        lock(&self.waker).take()
    }

    fn change(&self, from: usize, to: usize) -> Result<(), usize> {
        // Ordering: AcqRel: the thread that chooses a case and the select see what the other did
        // before. Acquire pairs with the Release of the thread that has chosen a case.
        self.word
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
            .map(drop)
    }
}
