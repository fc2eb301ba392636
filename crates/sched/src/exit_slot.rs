//! Where a process's exit reason waits for whoever holds its handle.
//!
//! One word, for there is one in every process, and almost none is ever looked at. The reason itself is put
//! where the process was, which needs that no more ([`Place`]): to allocate memory on the worker's thread
//! and free it on the handle's is what general allocators are slowest at.
//!
//! **The handle counts for nothing in the process's reference count**, which would cost two
//! read-modify-writes beside those of the slot, on memory that another core has by then. The registry's
//! reference keeps the cell while the process lives, and when it has ended passes through the slot: to the
//! handle with the reason, or it stays with the worker when there is no handle any more.
//!
//! | word | left by | the place is |
//! |---|---|---|
//! | `EMPTY`, a waker | the worker (`fill`), the handle (`poll`, `abandon`) | the worker's |
//! | `FULL` | the handle (`take`, `poll`, `abandon`) | the handle's: the reason |
//! | `TAKEN` | nobody | nobody's: nothing |
//! | `ABANDONED` | nobody | the worker's |
//!
//! The worker calls `fill`, once; the other calls that change it are the handle's, of which there is one.
//! So each change before the end is an exchange with what was read, which the other side loses by at most
//! one change. Nothing of a user's runs in between: wakers are cloned before, and woken or dropped after it.

use ganger_proc_api::ExitReason;
use ganger_sync::Parker;
use ganger_sync::atomic::{AtomicPtr, Ordering};
use std::fmt;
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// The process lives, and nobody waits.
const EMPTY: Word = Word(ptr::null_mut());
/// The reason is in its place.
const FULL: Word = Word(ptr::without_provenance_mut(2));
/// The reason has been taken.
const TAKEN: Word = Word(ptr::without_provenance_mut(4));
/// The handle went before the process had ended.
const ABANDONED: Word = Word(ptr::without_provenance_mut(6));

/// Beside a pointer to a waker.
const IS_WAKER: usize = 1;

const _: () = assert!(align_of::<Waker>() > IS_WAKER);

/// Where the reason is put.
pub(crate) trait Place {
    /// Puts the reason in.
    ///
    /// # Safety
    /// The place is the caller's: it is the worker that ends the process, and has not filled the slot.
    unsafe fn put(&self, reason: ExitReason);

    /// Takes the reason out again, and makes the place what it was.
    ///
    /// # Safety
    /// As for [`put`](Self::put), which has been called.
    unsafe fn take_back(&self) -> ExitReason;

    /// Takes the reason out, for good.
    ///
    /// # Safety
    /// The place is the caller's: it has the handle, and the slot is `FULL`, and not from now on.
    unsafe fn take(&self) -> ExitReason;
}

/// One exit reason on its way from the worker that ended the process to the one waiter.
pub(crate) struct ExitSlot {
    word: AtomicPtr<()>,
    owns: PhantomData<Waker>,
}

/// A value of the word.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Word(*mut ());

/// What a handle has found when it went.
#[must_use]
pub(crate) enum Abandoned {
    /// The process had not ended: its reference is not the handle's.
    Alive(Option<Waker>),
    /// It had, and its reference is the handle's, to be dropped.
    Ended(Option<ExitReason>),
}

/// What is in the place, when nobody uses slot and place any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// What was there before a reason.
    Before,
    Reason,
    Nothing,
}

impl Word {
    fn waker(waker: Waker) -> Self {
        let pointer: *mut () = Box::into_raw(Box::new(waker)).cast();
        Self(pointer.map_addr(|addr| addr | IS_WAKER))
    }

    fn is_waker(self) -> bool {
        self.0.addr() & IS_WAKER != 0
    }

    /// Takes out the waker that it points to, if it does.
    ///
    /// # Safety
    /// The caller has taken it out of the slot, or never put it there, and uses it no more.
    unsafe fn into_waker(self) -> Option<Waker> {
        let pointer = self.0.map_addr(|addr| addr & !IS_WAKER);
        // SAFETY: it comes from `waker`, and the caller owns it.
        self.is_waker()
            .then(|| *unsafe { Box::from_raw(pointer.cast()) })
    }
}

impl ExitSlot {
    pub(crate) fn new() -> Self {
        Self {
            word: AtomicPtr::new(EMPTY.0),
            owns: PhantomData,
        }
    }

    /// There is to be no handle. To be called before anybody else uses the slot, which is empty.
    pub(crate) fn abandon_unseen(&self) {
        // Ordering: Relaxed: whatever makes the process known makes this known.
        self.word.store(ABANDONED.0, Ordering::Relaxed);
    }

    /// Leaves the reason, and returns the waiter's waker, which the caller must wake. With the reason the
    /// handle gets the reference that the registry had: the caller gives it up, and the process may be gone
    /// when this returns.
    ///
    /// # Errors
    /// Gives the reason back when there is no handle any more, and the caller keeps the reference.
    ///
    /// # Safety
    /// It is called once, by the worker that ends the process, with the slot's place, which is the caller's.
    pub(crate) unsafe fn fill(
        &self,
        place: &impl Place,
        reason: ExitReason,
    ) -> Result<Option<Waker>, ExitReason> {
        let mut now = self.load();
        if now == ABANDONED {
            return Err(reason);
        }
        // SAFETY: the place is the worker's until the exchange below.
        unsafe { place.put(reason) };
        loop {
            match self.exchange(now, FULL) {
                // SAFETY: the exchange has taken it out.
                Ok(before) => return Ok(unsafe { before.into_waker() }),
                Err(other) if other == ABANDONED => break,
                Err(other) => now = other,
            }
        }
        // SAFETY: it has been put there, and stays the worker's.
        Err(unsafe { place.take_back() })
    }

    /// The handle goes: nobody will take the reason. Returns what was there, which the caller is to drop.
    /// Unless the process has ended, it may be gone when this returns.
    ///
    /// # Safety
    /// It is called once, by the handle, which does nothing else with the slot then; with its place.
    pub(crate) unsafe fn abandon(&self, place: &impl Place) -> Abandoned {
        let mut now = self.load();
        loop {
            if now == TAKEN {
                return Abandoned::Ended(None);
            }
            if now == FULL {
                // SAFETY: as this function's.
                return Abandoned::Ended(unsafe { self.take(place) });
            }
            match self.exchange(now, ABANDONED) {
                // SAFETY: the exchange has taken it out.
                Ok(before) => return Abandoned::Alive(unsafe { before.into_waker() }),
                Err(other) => now = other,
            }
        }
    }

    /// Takes the reason if it is there.
    ///
    /// # Safety
    /// It is called by the handle, by one thread at a time, with the slot's place.
    pub(crate) unsafe fn take(&self, place: &impl Place) -> Option<ExitReason> {
        if self.load() != FULL {
            return None;
        }
        // Ordering: Relaxed: nobody but the handle uses slot and place from now on.
        self.word.store(TAKEN.0, Ordering::Relaxed);
        // SAFETY: the slot was full, and the caller has the handle.
        Some(unsafe { place.take() })
    }

    /// Whether the process has ended.
    pub(crate) fn is_filled(&self) -> bool {
        let now = self.load();
        now == FULL || now == TAKEN
    }

    /// Takes the reason, or has the task woken when it is there.
    ///
    /// # Panics
    /// When the reason has been taken before, as futures do that are polled after their end.
    ///
    /// # Safety
    /// As for [`take`](Self::take).
    pub(crate) unsafe fn poll(
        &self,
        place: &impl Place,
        context: &Context<'_>,
    ) -> Poll<ExitReason> {
        // SAFETY: as this function's.
        if let Some(reason) = unsafe { self.take(place) } {
            return Poll::Ready(reason);
        }
        let waker = Word::waker(context.waker().clone());
        let now = self.load();
        if (now == EMPTY || now.is_waker())
            && let Ok(before) = self.exchange(now, waker)
        {
            // SAFETY: the exchange has taken it out.
            drop(unsafe { before.into_waker() });
            return Poll::Pending;
        }
        // SAFETY: it was never put there.
        drop(unsafe { waker.into_waker() });
        // The process has ended meanwhile, or long ago.
        // SAFETY: as this function's.
        match unsafe { self.take(place) } {
            Some(reason) => Poll::Ready(reason),
            None => panic!("a ProcessHandle was polled after it had completed"),
        }
    }

    /// Whether the reason has been left there, or nobody is to take it.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_filled() || self.load() == ABANDONED
    }

    /// Blocks until the reason is there and takes it; gives up after `timeout` if there is one.
    ///
    /// # Safety
    /// As for [`take`](Self::take).
    pub(crate) unsafe fn wait(
        &self,
        place: &impl Place,
        timeout: Option<Duration>,
    ) -> Option<ExitReason> {
        let parker = ThreadWaker::new();
        let waker = Waker::from(Arc::clone(&parker));
        let context = Context::from_waker(&waker);
        loop {
            // SAFETY: as this function's.
            if let Poll::Ready(reason) = unsafe { self.poll(place, &context) } {
                return Some(reason);
            }
            match timeout {
                None => parker.0.park(),
                Some(timeout) => {
                    parker.0.park_timeout(timeout);
                    // SAFETY: as above.
                    return unsafe { self.take(place) };
                }
            }
        }
    }

    /// What is in the place, when nobody else uses slot and place any more.
    pub(crate) fn left(&mut self) -> Left {
        match self.load() {
            FULL => Left::Reason,
            TAKEN => Left::Nothing,
            _ => Left::Before,
        }
    }

    fn load(&self) -> Word {
        // Ordering: Acquire pairs with the Release in `exchange`, for what is read through it.
        Word(self.word.load(Ordering::Acquire))
    }

    /// Returns what was there, which is the caller's if it was what it should be.
    fn exchange(&self, now: Word, next: Word) -> Result<Word, Word> {
        // Ordering: Release publishes what `next` points to, or the reason, to the Acquire here and in
        // `load`, and what the handle's owner has done to the worker that keeps the reference.
        self.word
            .compare_exchange(now.0, next.0, Ordering::AcqRel, Ordering::Acquire)
            .map(Word)
            .map_err(Word)
    }
}

impl Drop for ExitSlot {
    fn drop(&mut self) {
        // Ordering: Relaxed: nobody else has the slot any more.
        let last = Word(self.word.load(Ordering::Relaxed));
        // SAFETY: nobody else takes it out.
        drop(unsafe { last.into_waker() });
    }
}

impl fmt::Debug for ExitSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ExitSlot").field(&self.is_filled()).finish()
    }
}

/// Wakes a thread that has parked.
pub(crate) struct ThreadWaker(pub(crate) Parker);

impl ThreadWaker {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Parker::new()))
    }
}

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
