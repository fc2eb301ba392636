//! The waiters at each end of a channel, first come first served.
//!
//! **Problem.** A wait that takes the channel's lock at its begin and at its end costs two turns of
//! the lock, each of which may wait for another worker. A select leaves from the middle of a line.
//!
//! **Rejected.** Entries in a table of the channel: a waiter reads its outcome under the lock, as
//! the table may move. Two locks fewer for each wait save a seventh of a value's time. Entries
//! inside of the futures: these would have to be pinned. Entries from the nodes' caches: no faster,
//! and a burst of waits leaves memory.
//!
//! **Protocol.** Each wait has an entry on the heap, which the waiter owns by its [`Seat`]. A line
//! links the entries.
//! 1. While the stage is `WAITING`, the entry is linked, and belongs to the thread with the
//!    channel's lock. The waiter alone frees it, after it has unlinked it under the lock.
//! 2. A server, with the lock, unlinks the entry, takes the waker and the value or leaves its own,
//!    and then stores the final stage. The server does not touch the entry from then on, and wakes
//!    the waiter without the lock.
//! 3. A waiter that sees a final stage owns the entry, takes its contents, and frees it. The waiter
//!    needs no lock.
//!
//! **Why no thread touches freed memory.** Only the waiter frees an entry: under the lock, where no
//! server is, or after the server's last access.

use crate::claim::{Claim, Claimed};
use ganger_sync::atomic::{AtomicU8, Ordering};
use ganger_sync::cell::UnsafeCell;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::task::{RawWakerVTable, Waker};

/// The state of a wait.
///
/// | stage | written by | the entry is | and has |
/// |---|---|---|---|
/// | `WAITING` | the waiter | linked | the value of a sender |
/// | `MET` | a server | the waiter's | the value for a receiver |
/// | `CLOSED` | a server | the waiter's | the value of a sender |
/// | `TOO_LATE` for its select | a server | the waiter's | the value of a sender |
pub(crate) mod stage {
    pub(crate) const WAITING: u8 = 0;
    pub(crate) const MET: u8 = 1;
    pub(crate) const CLOSED: u8 = 2;
    pub(crate) const TOO_LATE: u8 = 3;
}
use stage::{MET, TOO_LATE, WAITING};

/// The entry of a wait.
struct Entry<T> {
    stage: AtomicU8,
    /// Of the thread with the lock, while the stage is `WAITING`; then of the waiter.
    contents: UnsafeCell<Contents<T>>,
}

/// The contents of an entry.
pub(crate) struct Contents<T> {
    before: Link<T>,
    after: Link<T>,
    /// The waker, unless a select waits.
    waker: Option<Waker>,
    /// The select that waits, with the number of its case.
    select: Option<Arc<Claim>>,
    case: usize,
    /// The value of a waiting sender; of a served receiver, the received value, with its number.
    pub(crate) value: Option<T>,
    pub(crate) number: usize,
}

type Link<T> = Option<NonNull<Entry<T>>>;

/// The contents of an entry that are dropped without the lock.
#[must_use = "it is dropped without the lock"]
pub(crate) struct Remains {
    _waker: Option<Waker>,
    _select: Option<Arc<Claim>>,
}

/// The outcome of a wait: the value in its entry, and the value's number.
pub(crate) type Outcome<T> = (Option<T>, usize);

/// The entry of a wait, for its waiter. Ends by [`try_take`](Self::try_take) or [`Line::leave`].
#[must_use = "an entry stays in its line until it is taken out"]
#[derive(Debug)]
pub(crate) struct Seat<T> {
    entry: NonNull<Entry<T>>,
    /// The parts of the waker in the entry, for comparisons; null for a select.
    waker: Parts,
    owned: PhantomData<Box<Entry<T>>>,
}

// SAFETY: the entry goes with its seat, and a value of it from thread to thread.
unsafe impl<T: Send> Send for Seat<T> {}
// SAFETY: a shared seat gives no access to the entry but to its stage, which is atomic.
unsafe impl<T: Send> Sync for Seat<T> {}

impl<T> Seat<T> {
    /// Returns whether the wait is over.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        // SAFETY: the seat owns the entry, which lives until the seat ends.
        let entry = unsafe { self.entry.as_ref() };
        // Ordering: Acquire pairs with the Release of the server's last access to the entry.
        entry.stage.load(Ordering::Acquire) != WAITING
    }

    /// Returns whether the entry, if its wait goes on, wakes the same task as `waker`. A linked
    /// entry keeps its waker alive, so that equal parts belong to the same waker.
    #[inline]
    pub(crate) fn will_wake(&self, waker: &Waker) -> bool {
        self.waker.1.is_null() || self.waker == parts(waker)
    }

    /// Returns the outcome, if the wait is over.
    #[inline(always)]
    pub(crate) fn try_take(self) -> Result<Outcome<T>, Self> {
        if self.is_over() {
            // SAFETY: the server has done its last access.
            let (remains, outcome) = unsafe { self.free() };
            drop(remains);
            return Ok(outcome);
        }
        Err(self)
    }

    /// Frees the entry, whose contents it returns.
    ///
    /// # Safety
    /// The entry is not linked, and no server touches it any more.
    #[inline(always)]
    unsafe fn free(self) -> (Remains, Outcome<T>) {
        // SAFETY: the seat owns the entry, and is its only user, as the caller says.
        let contents = unsafe { &(*self.entry.as_ptr()).contents };
        let contents = contents.with_mut(|contents| {
            // SAFETY: the seat is the entry's only user, as the caller says. Each field is moved
            // out once: a move of the whole stalls.
            unsafe {
                let remains = Remains {
                    _waker: (&raw mut (*contents).waker).read(),
                    _select: (&raw mut (*contents).select).read(),
                };
                let value = (&raw mut (*contents).value).read();
                (remains, (value, (*contents).number))
            }
        });
        let memory = self.entry.as_ptr().cast::<MaybeUninit<Entry<T>>>();
        // SAFETY: the memory came from a box, and has no contents any more.
        drop(unsafe { Box::from_raw(memory) });
        contents
    }
}

/// The parts of a waker.
type Parts = (*const (), *const RawWakerVTable);

#[inline]
fn parts(waker: &Waker) -> Parts {
    (waker.data(), ptr::from_ref(waker.vtable()))
}

/// The entries of the waiters at one end, under the channel's lock.
pub(crate) struct Line<T> {
    first: Link<T>,
    last: Link<T>,
}

// SAFETY: the lock guards the values and wakers of a line.
unsafe impl<T: Send> Send for Line<T> {}

impl<T> Line<T> {
    pub(crate) const fn new() -> Self {
        Self {
            first: None,
            last: None,
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Adds an entry at the end of the line, whose waiter has a waker. O(1); allocates.
    #[inline(always)]
    pub(crate) fn push_waker(&mut self, waker: Waker, value: Option<T>) -> Seat<T> {
        let parts = parts(&waker);
        self.push(parts, Some(waker), None, 0, value)
    }

    /// Pushes an entry as [`push_waker`](Self::push_waker) does, for a select that waits by this
    /// case.
    pub(crate) fn push_select(
        &mut self,
        (select, case): (Arc<Claim>, usize),
        value: Option<T>,
    ) -> Seat<T> {
        self.push((ptr::null(), ptr::null()), None, Some(select), case, value)
    }

    #[inline(always)]
    fn push(
        &mut self,
        parts: Parts,
        waker: Option<Waker>,
        select: Option<Arc<Claim>>,
        case: usize,
        value: Option<T>,
    ) -> Seat<T> {
        let entry = Box::new(Entry {
            stage: AtomicU8::new(WAITING),
            contents: UnsafeCell::new(Contents {
                before: self.last,
                after: None,
                waker,
                select,
                case,
                value,
                number: 0,
            }),
        });
        let entry = NonNull::from(Box::leak(entry));
        match self.last.replace(entry) {
            // SAFETY: the last entry is linked.
            Some(last) => unsafe { at(last, |it| it.after = Some(entry)) },
            None => self.first = Some(entry),
        }
        Seat {
            entry,
            waker: parts,
            owned: PhantomData,
        }
    }

    /// Unlinks an entry.
    ///
    /// # Safety
    /// The entry is linked in this line.
    #[inline]
    unsafe fn unlink(&mut self, entry: NonNull<Entry<T>>) {
        // SAFETY: the entry is linked, by the contract of this function, and so its neighbours are
        // linked.
        unsafe {
            let (before, after) = at(entry, |it| (it.before.take(), it.after.take()));
            match before {
                Some(before) => at(before, |it| it.after = after),
                None => self.first = after,
            }
            match after {
                Some(after) => at(after, |it| it.before = before),
                None => self.last = before,
            }
        }
    }

    /// Takes the first waiter that can be served out of the line.
    #[inline(always)]
    pub(crate) fn serve(&mut self) -> Option<Served<T>> {
        let first = self.first?;
        // SAFETY: the first entry is linked.
        let (is_select, waker) = unsafe { at(first, |it| (it.select.is_some(), it.waker.take())) };
        let (entry, waker) = if is_select {
            self.claim()?
        } else {
            (first, waker)
        };
        // SAFETY: the entry is linked.
        unsafe { self.unlink(entry) };
        Some(Served { entry, waker })
    }

    /// Finds the first waiter that can be served, and claims its select. Returns its waker, too.
    #[cold]
    fn claim(&mut self) -> Option<(NonNull<Entry<T>>, Option<Waker>)> {
        let mut next = self.first;
        while let Some(entry) = next {
            // SAFETY: the entry is linked.
            let (claimed, after) = unsafe { at(entry, |it| (it.claim(), it.after)) };
            match claimed {
                Ok(waker) => return Some((entry, waker)),
                Err(Claimed::TooLate) => {
                    // The thread that chose the other case wakes the waiter.
                    // SAFETY: the entry is linked until `unlink`.
                    unsafe { self.unlink(entry) };
                    let _none = Served { entry, waker: None }.end(TOO_LATE);
                }
                Err(_) => {}
            }
            next = after;
        }
        None
    }

    /// Ends all waits that can be ended.
    pub(crate) fn end_all(&mut self, next: u8, mut each: impl FnMut(Wake)) {
        while let Some(served) = self.serve() {
            each(served.end(next));
        }
    }

    /// Sets the waker of a wait, if it goes on. Returns the waker to be dropped.
    ///
    /// # Safety
    /// The seat is of this line.
    pub(crate) unsafe fn change_waker(
        &mut self,
        seat: &mut Seat<T>,
        waker: Waker,
    ) -> Result<Option<Waker>, Waker> {
        if seat.is_over() {
            return Err(waker);
        }
        seat.waker = parts(&waker);
        // SAFETY: the entry is linked, for its wait goes on.
        Ok(unsafe { at(seat.entry, |it| it.waker.replace(waker)) })
    }

    /// Calls `f` with the contents of a wait that goes on.
    ///
    /// # Safety
    /// The seat is of this line.
    pub(crate) unsafe fn waiting<R>(
        &mut self,
        seat: &Seat<T>,
        f: impl FnOnce(&mut Contents<T>) -> R,
    ) -> Option<R> {
        // SAFETY: the entry is linked, for its wait goes on.
        (!seat.is_over()).then(|| unsafe { at(seat.entry, f) })
    }

    /// Ends a wait, which may go on. Returns the contents of its entry.
    ///
    /// # Safety
    /// The seat is of this line.
    #[inline]
    pub(crate) unsafe fn leave(&mut self, seat: Seat<T>) -> (Remains, Outcome<T>) {
        if !seat.is_over() {
            // SAFETY: the entry is linked, for its wait goes on.
            unsafe { self.unlink(seat.entry) };
        }
        // SAFETY: this thread has the lock, so no server has, and the entry is not linked.
        unsafe { seat.free() }
    }
}

/// Calls `f` with the contents of an entry.
///
/// # Safety
/// This thread has the lock, and the stage of the entry is `WAITING`.
#[inline(always)]
unsafe fn at<T, R>(entry: NonNull<Entry<T>>, f: impl FnOnce(&mut Contents<T>) -> R) -> R {
    // SAFETY: this thread has the lock, and the stage is `WAITING`, as the caller says. The waiter
    // frees the entry of a wait that goes on under the lock alone, so the entry lives.
    let contents = unsafe { &(*entry.as_ptr()).contents };
    // SAFETY: while the stage is `WAITING`, the thread with the lock is the only user of the
    // contents.
    contents.with_mut(|contents| f(unsafe { &mut *contents }))
}

/// A waiter that has been taken out of its line, for the thread with the lock.
#[must_use = "its wait ends"]
pub(crate) struct Served<T> {
    entry: NonNull<Entry<T>>,
    waker: Option<Waker>,
}

impl<T> Served<T> {
    /// Hands a receiver a value with its number.
    #[inline(always)]
    pub(crate) fn give(self, number: usize, value: T) -> Wake {
        // SAFETY: the stage is `WAITING` until `end`, under the lock.
        unsafe {
            at(self.entry, |it| {
                it.value = Some(value);
                it.number = number;
            });
        }
        self.end(MET)
    }

    /// Takes the value of a sender.
    #[inline(always)]
    pub(crate) fn take(self) -> (Option<T>, Wake) {
        // SAFETY: the stage is `WAITING` until `end`, under the lock.
        let value = unsafe { at(self.entry, |it| it.value.take()) };
        (value, self.end(MET))
    }

    /// Ends the wait: the last access to the entry.
    #[inline(always)]
    pub(crate) fn end(self, next: u8) -> Wake {
        // SAFETY: the waiter does not free the entry before it sees the stage.
        let stage = unsafe { &(*self.entry.as_ptr()).stage };
        // Ordering: Release pairs with the Acquire in `is_over`: the waiter then owns the contents.
        stage.store(next, Ordering::Release);
        Wake(self.waker)
    }
}

impl<T> Contents<T> {
    /// Claims the waiter, if it is or was in a select. Returns the waker.
    fn claim(&mut self) -> Result<Option<Waker>, Claimed> {
        match &self.select {
            None => Ok(self.waker.take()),
            Some(claim) => match claim.try_claim(self.case) {
                Claimed::Yes => Ok(claim.take_waker()),
                refused => Err(refused),
            },
        }
    }
}

/// A waiter to be woken, once the lock is free.
#[must_use = "the waiter must be woken"]
#[derive(Debug)]
pub(crate) struct Wake(Option<Waker>);

impl Wake {
    #[inline]
    pub(crate) fn wake(self) {
        if let Some(waker) = self.0 {
            waker.wake();
        }
    }
}
