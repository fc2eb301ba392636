//! The place in which a process's exit reason waits for its handle.
//!
//! **Problem.** Every process has a slot, and few slots are ever read. So the slot is a single
//! word. The worker puts the reason into memory of the ended process ([`ExitStorage`]). Memory of
//! its own would be allocated by the worker and freed by the handle, which general allocators do
//! slowly.
//!
//! **The process's reference count leaves the handle out.** Counting would cost two
//! read-modify-writes on top of those of the slot, on memory owned by another core by then. The
//! registry's reference keeps the cell while the process lives. At the end this reference passes
//! through the slot to the handle, with the reason. Without a handle it stays with the worker.
//!
//! | word | changed by | owner and content of the storage |
//! |---|---|---|
//! | `EMPTY`, a waker | worker (`fill`), handle (`poll`, `abandon`) | the worker: the process |
//! | `FULL`, `UNWATCHED` | the handle (`take`, `poll`, `abandon`) | the handle: the reason |
//! | `TAKEN` | none: final | none: nothing |
//! | `ABANDONED` | none: final | the worker: the process |
//!
//! `UNWATCHED` is `FULL`, except that the handle reports a failure when it is dropped with the
//! reason.
//!
//! The worker calls `fill` once. All other changes of the word come from calls of the only handle.
//! When the handle's exchange fails, the worker has filled the slot. When the worker's exchange
//! fails, the handle has polled or has been dropped, and the worker tries again. No user code runs
//! between a load and its exchange: wakers are cloned before, and woken or dropped after.

use ganger_proc_api::ExitReason;
use ganger_sync::Parker;
use ganger_sync::atomic::{AtomicPtr, Ordering};
use std::fmt;
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The process lives, and the handle does not wait.
const EMPTY: Word = Word(ptr::null_mut());
/// The reason is in its storage.
const FULL: Word = Word(ptr::without_provenance_mut(2));
/// As `FULL`, and the reason is a failure reported to nothing else.
const UNWATCHED: Word = Word(ptr::without_provenance_mut(8));
/// The reason has been taken.
const TAKEN: Word = Word(ptr::without_provenance_mut(4));
/// The handle was dropped before the process ended.
const ABANDONED: Word = Word(ptr::without_provenance_mut(6));

/// The tag of a pointer to a waker.
const IS_WAKER: usize = 1;

const _: () = assert!(align_of::<Waker>() > IS_WAKER);

/// The memory for the reason.
pub(crate) trait ExitStorage {
    /// Puts the reason in.
    ///
    /// # Safety
    /// The caller owns the storage: it is the worker that ends the process, and has not filled the
    /// slot.
    unsafe fn put(&self, reason: ExitReason);

    /// Takes the reason out again, and restores a storage without a reason.
    ///
    /// # Safety
    /// The contract of [`put`](Self::put), after a call of `put`.
    unsafe fn take_back(&self) -> ExitReason;

    /// Takes the reason out for good.
    ///
    /// # Safety
    /// The caller owns the storage: it has the handle, the slot was `FULL`, and is `TAKEN`.
    unsafe fn take(&self) -> ExitReason;
}

/// An exit reason on its way from the worker that ended the process to the only waiter.
pub(crate) struct ExitSlot {
    word: AtomicPtr<()>,
    owns: PhantomData<Waker>,
}

/// A value of the word.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Word(*mut ());

/// The findings of a dropped handle.
#[must_use]
pub(crate) enum Abandoned {
    /// The process has not ended. Its reference does not belong to the handle.
    Alive(Option<Waker>),
    /// The process has ended. Its reference belongs to the handle, for the handle to drop.
    Ended(Option<ExitReason>),
    /// As `Ended`, for a failure reported to nothing else.
    Unwatched(ExitReason),
}

/// The content of the storage, when no other thread uses slot and storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// No reason has been put in.
    Before,
    Reason,
    Nothing,
}

impl Word {
    fn waker(waker: Waker) -> Self {
        let pointer: *mut () = Box::into_raw(Box::new(waker)).cast();
        Self(pointer.map_addr(|addr| addr | IS_WAKER))
    }

    fn is_full(self) -> bool {
        self == FULL || self == UNWATCHED
    }

    fn is_waker(self) -> bool {
        self.0.addr() & IS_WAKER != 0
    }

    /// Returns the waker behind the pointer, if the word is one.
    ///
    /// # Safety
    /// The caller has taken the word out of the slot, or never put it there, and does not use it
    /// again.
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

    /// Creates the slot of no process: nothing has to be dropped, and nothing is waited for.
    pub(crate) fn of_nothing() -> Self {
        Self {
            word: AtomicPtr::new(TAKEN.0),
            owns: PhantomData,
        }
    }

    /// Marks a process without a handle. Called before another thread uses the slot.
    pub(crate) fn abandon_unseen(&self) {
        // Ordering: Relaxed: the store that makes the process known publishes this store.
        self.word.store(ABANDONED.0, Ordering::Relaxed);
    }

    /// Leaves the reason, and returns the waiter's waker, which the caller must wake.
    /// `is_unwatched` marks a failure reported to nothing else. With the reason, the handle gets
    /// the registry's reference from the caller, and the process may be gone when this returns.
    ///
    /// # Errors
    /// Gives the reason back when the handle has been dropped. The caller keeps the reference.
    ///
    /// # Safety
    /// The worker calls `fill` once, at the end of the process, with the slot's storage, owned by
    /// the worker.
    pub(crate) unsafe fn fill(
        &self,
        storage: &impl ExitStorage,
        reason: ExitReason,
        is_unwatched: bool,
    ) -> Result<Option<Waker>, ExitReason> {
        let full = if is_unwatched { UNWATCHED } else { FULL };
        let mut now = self.load();
        if now == ABANDONED {
            return Err(reason);
        }
        // SAFETY: the worker owns the storage until the exchange below.
        unsafe { storage.put(reason) };
        loop {
            match self.exchange(now, full) {
                // SAFETY: the exchange has taken it out.
                Ok(before) => return Ok(unsafe { before.into_waker() }),
                Err(other) if other == ABANDONED => break,
                Err(other) => now = other,
            }
        }
        // SAFETY: the reason has been put there, and the worker still owns the storage.
        Err(unsafe { storage.take_back() })
    }

    /// Drops the handle without taking the reason. Returns the value for the caller to drop. Unless
    /// the process has ended, it may be gone when this returns.
    ///
    /// # Safety
    /// The handle calls it once, with the slot's storage, and does not use the slot afterwards.
    pub(crate) unsafe fn abandon(&self, storage: &impl ExitStorage) -> Abandoned {
        let mut now = self.load();
        loop {
            if now == TAKEN {
                return Abandoned::Ended(None);
            }
            if now.is_full() {
                // SAFETY: the precondition is this function's own.
                let reason = unsafe { self.take(storage) };
                return match reason {
                    Some(reason) if now == UNWATCHED => Abandoned::Unwatched(reason),
                    reason => Abandoned::Ended(reason),
                };
            }
            match self.exchange(now, ABANDONED) {
                // SAFETY: the exchange has taken it out.
                Ok(before) => return Abandoned::Alive(unsafe { before.into_waker() }),
                Err(other) => now = other,
            }
        }
    }

    /// Takes the reason, if it is there.
    ///
    /// # Safety
    /// The handle calls it, on one thread at a time, with the slot's storage.
    pub(crate) unsafe fn take(&self, storage: &impl ExitStorage) -> Option<ExitReason> {
        if !self.load().is_full() {
            return None;
        }
        // Ordering: Relaxed: only the handle uses slot and storage from here on.
        self.word.store(TAKEN.0, Ordering::Relaxed);
        // SAFETY: the slot was full, and the caller has the handle.
        Some(unsafe { storage.take() })
    }

    /// Returns whether the handle was dropped before the process ended.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.load() == ABANDONED
    }

    /// Returns whether the process has ended.
    pub(crate) fn is_filled(&self) -> bool {
        let now = self.load();
        now.is_full() || now == TAKEN
    }

    /// Takes the reason, or has the task woken when it is there.
    ///
    /// # Panics
    /// When the reason has been taken before, as other futures do when polled after their end.
    ///
    /// # Safety
    /// As for [`take`](Self::take).
    pub(crate) unsafe fn poll(
        &self,
        storage: &impl ExitStorage,
        context: &Context<'_>,
    ) -> Poll<ExitReason> {
        // SAFETY: the precondition is this function's own.
        if let Some(reason) = unsafe { self.take(storage) } {
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
        // SAFETY: the waker was never put into the slot.
        drop(unsafe { waker.into_waker() });
        // The process has ended, during this call or before it.
        // SAFETY: the precondition is this function's own.
        match unsafe { self.take(storage) } {
            Some(reason) => Poll::Ready(reason),
            None => panic!("a ProcessHandle was polled after it had completed"),
        }
    }

    /// Returns whether the reason has been left, or the handle dropped.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_filled() || self.is_abandoned()
    }

    /// Blocks until the reason is there, and takes it. Gives up after `timeout`, if given.
    ///
    /// # Safety
    /// As for [`take`](Self::take).
    pub(crate) unsafe fn wait(
        &self,
        storage: &impl ExitStorage,
        timeout: Option<Duration>,
    ) -> Option<ExitReason> {
        let parker = Arc::new(Parker::new());
        let waker = Waker::from(Arc::clone(&parker));
        let context = Context::from_waker(&waker);
        loop {
            // SAFETY: the precondition is this function's own.
            if let Poll::Ready(reason) = unsafe { self.poll(storage, &context) } {
                return Some(reason);
            }
            match timeout {
                None => parker.park(),
                Some(timeout) => {
                    parker.park_timeout(timeout);
                    // SAFETY: the precondition is this function's own.
                    return unsafe { self.take(storage) };
                }
            }
        }
    }

    /// Returns the content of the storage. No other thread uses slot and storage.
    pub(crate) fn left(&mut self) -> Left {
        match self.load() {
            FULL | UNWATCHED => Left::Reason,
            TAKEN => Left::Nothing,
            _ => Left::Before,
        }
    }

    fn load(&self) -> Word {
        // Ordering: Acquire pairs with the Release in `exchange`, for the waker or the reason.
        Word(self.word.load(Ordering::Acquire))
    }

    /// Replaces `now` by `next`. Returns the old word; on success it belongs to the caller.
    fn exchange(&self, now: Word, next: Word) -> Result<Word, Word> {
        // Ordering: Release pairs with the Acquire here and in `load`. The Release publishes the
        // waker or the reason, and the acts of the handle's owner to the worker with the reference.
        self.word
            .compare_exchange(now.0, next.0, Ordering::AcqRel, Ordering::Acquire)
            .map(Word)
            .map_err(Word)
    }
}

impl Drop for ExitSlot {
    fn drop(&mut self) {
        // Ordering: Relaxed: no other thread has the slot.
        let last = Word(self.word.load(Ordering::Relaxed));
        // SAFETY: no other thread takes the waker out.
        drop(unsafe { last.into_waker() });
    }
}

impl fmt::Debug for ExitSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ExitSlot").field(&self.is_filled()).finish()
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests;
