//! Where a process's exit reason waits for whoever holds its handle.
//!
//! One word, for there is one in every process, and almost none is ever looked at. What it points to is
//! allocated when somebody waits, and when a process ends whose handle is still there.
//!
//! | word | left by |
//! |---|---|
//! | `EMPTY`, a waker | the worker (`fill`), the handle (`poll`, `abandon`) |
//! | a reason | the handle (`take`, `poll`, `abandon`) |
//! | `TAKEN` | the handle (`abandon`) |
//! | `ABANDONED` | nobody |
//!
//! The worker calls `fill`, once; the other calls that change it are the handle's, of which there is one.
//! So each change is an exchange with what was read, which the other side loses by at most one change.
//! Nothing of a user's runs in between: wakers are cloned before, and woken or dropped after it.

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
/// The reason has been taken.
const TAKEN: Word = Word(ptr::without_provenance_mut(IS_WAKER | IS_REASON));
/// The handle is gone.
const ABANDONED: Word = Word(ptr::without_provenance_mut(4 | IS_WAKER | IS_REASON));

/// Beside a pointer to a waker.
const IS_WAKER: usize = 1;
/// Beside a pointer to a reason.
const IS_REASON: usize = 2;

const _: () = assert!(align_of::<Waker>() > 3 && align_of::<ExitReason>() > 3);

/// One exit reason on its way from the worker that ended the process to the one waiter.
pub(crate) struct ExitSlot {
    word: AtomicPtr<()>,
    owns: PhantomData<(Waker, ExitReason)>,
}

/// A value of the word.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Word(*mut ());

/// What a value of the word stands for, taken out of it.
enum Held {
    Empty,
    Waker(Waker),
    Reason(ExitReason),
    Taken,
    Abandoned,
}

impl Word {
    fn waker(waker: Waker) -> Self {
        Self(Box::into_raw(Box::new(waker)).cast()).tagged(IS_WAKER)
    }

    fn reason(reason: ExitReason) -> Self {
        Self(Box::into_raw(Box::new(reason)).cast()).tagged(IS_REASON)
    }

    fn tagged(self, tag: usize) -> Self {
        Self(self.0.map_addr(|addr| addr | tag))
    }

    fn is_waker(self) -> bool {
        self.0.addr() & 3 == IS_WAKER
    }

    fn is_reason(self) -> bool {
        self.0.addr() & 3 == IS_REASON
    }

    /// Takes what it points to.
    ///
    /// # Safety
    /// The caller has taken it out of the slot, or never put it there, and uses it no more.
    unsafe fn into_held(self) -> Held {
        let pointer = self.0.map_addr(|addr| addr & !3);
        if self == EMPTY {
            Held::Empty
        } else if self == TAKEN {
            Held::Taken
        } else if self == ABANDONED {
            Held::Abandoned
        } else if self.is_waker() {
            // SAFETY: it comes from `waker`, and the caller owns it.
            Held::Waker(*unsafe { Box::from_raw(pointer.cast()) })
        } else {
            // SAFETY: it is nothing else, so it comes from `reason`; the caller owns it.
            Held::Reason(*unsafe { Box::from_raw(pointer.cast()) })
        }
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

    /// Leaves the reason, and returns the waiter's waker, which the caller must wake. Called once.
    ///
    /// # Errors
    /// Gives the reason back when nobody will ever take it.
    pub(crate) fn fill(&self, reason: ExitReason) -> Result<Option<Waker>, ExitReason> {
        let mut now = self.load();
        if now == ABANDONED {
            return Err(reason);
        }
        let full = Word::reason(reason);
        loop {
            match self.exchange(now, full) {
                // SAFETY: the exchange has taken it out.
                Ok(before) => match unsafe { before.into_held() } {
                    Held::Waker(waker) => return Ok(Some(waker)),
                    _ => return Ok(None),
                },
                Err(other) if other == ABANDONED => break,
                Err(other) => now = other,
            }
        }
        // SAFETY: it was never put there.
        match unsafe { full.into_held() } {
            Held::Reason(reason) => Err(reason),
            _ => unreachable!("a reason was made of one"),
        }
    }

    /// The handle is gone: nobody will take the reason.
    pub(crate) fn abandon(&self) {
        // Ordering: Acquire pairs with the Release in `exchange`, for what is dropped here. Release, so
        // that the worker that drops the reason instead sees what the handle's owner did.
        let before = Word(self.word.swap(ABANDONED.0, Ordering::AcqRel));
        // SAFETY: the swap has taken it out.
        drop(unsafe { before.into_held() });
    }

    /// Takes the reason if it is there.
    pub(crate) fn take(&self) -> Option<ExitReason> {
        let now = self.load();
        if !now.is_reason() {
            return None;
        }
        // Nobody but the handle changes it now, so that this can't fail.
        let before = self.exchange(now, TAKEN).ok()?;
        // SAFETY: the exchange has taken it out.
        match unsafe { before.into_held() } {
            Held::Reason(reason) => Some(reason),
            _ => unreachable!("it is a reason, as was seen"),
        }
    }

    /// Whether the process has ended.
    pub(crate) fn is_filled(&self) -> bool {
        let now = self.load();
        now.is_reason() || now == TAKEN
    }

    /// Takes the reason, or has the task woken when it is there.
    ///
    /// # Panics
    /// When the reason has been taken before, as futures do that are polled after their end.
    pub(crate) fn poll(&self, context: &Context<'_>) -> Poll<ExitReason> {
        if let Some(reason) = self.take() {
            return Poll::Ready(reason);
        }
        let waker = Word::waker(context.waker().clone());
        let now = self.load();
        if (now == EMPTY || now.is_waker())
            && let Ok(before) = self.exchange(now, waker)
        {
            // SAFETY: the exchange has taken it out.
            drop(unsafe { before.into_held() });
            return Poll::Pending;
        }
        // SAFETY: it was never put there.
        drop(unsafe { waker.into_held() });
        // The process has ended meanwhile, or long ago.
        match self.take() {
            Some(reason) => Poll::Ready(reason),
            None => panic!("a ProcessHandle was polled after it had completed"),
        }
    }

    /// Whether the reason has been left there, or nobody is to take it.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_filled() || self.load() == ABANDONED
    }

    /// Blocks until the reason is there and takes it; gives up after `timeout` if there is one.
    pub(crate) fn wait(&self, timeout: Option<Duration>) -> Option<ExitReason> {
        let parker = ThreadWaker::new();
        let waker = Waker::from(Arc::clone(&parker));
        let context = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(reason) = self.poll(&context) {
                return Some(reason);
            }
            match timeout {
                None => parker.0.park(),
                Some(timeout) => {
                    parker.0.park_timeout(timeout);
                    return self.take();
                }
            }
        }
    }

    fn load(&self) -> Word {
        // Ordering: Acquire pairs with the Release in `exchange`, for what is read through it.
        Word(self.word.load(Ordering::Acquire))
    }

    /// Returns what was there, which is the caller's if it was what it should be.
    fn exchange(&self, now: Word, next: Word) -> Result<Word, Word> {
        // Ordering: Release publishes what `next` points to, to the Acquire here, in `load` and in
        // `abandon`.
        self.word
            .compare_exchange(now.0, next.0, Ordering::AcqRel, Ordering::Acquire)
            .map(Word)
            .map_err(Word)
    }
}

impl Drop for ExitSlot {
    fn drop(&mut self) {
        // A handle keeps its process, and abandons the slot before it lets go of that. What never had
        // a handle has nothing in its slot, or a reason.
        // Ordering: Relaxed: nobody else has the slot any more.
        let last = Word(self.word.load(Ordering::Relaxed));
        // SAFETY: nobody else takes it out.
        drop(unsafe { last.into_held() });
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
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Counting(Mutex<usize>);

    impl Counting {
        fn get(&self) -> usize {
            *self.0.lock().unwrap()
        }
    }

    impl Wake for Counting {
        fn wake(self: Arc<Self>) {
            *self.0.lock().unwrap() += 1;
        }
    }

    fn done(number: u64) -> ExitReason {
        ExitReason::Done(number.into())
    }

    fn number(reason: ExitReason) -> Option<u64> {
        match reason {
            ExitReason::Done(payload) => payload.as_u64(),
            _ => None,
        }
    }

    // pins: P12
    #[test]
    fn a_reason_is_taken_once() {
        let slot = ExitSlot::new();
        assert!(!slot.is_filled() && slot.take().is_none());
        assert!(slot.fill(done(7)).unwrap().is_none());
        assert!(slot.is_filled());
        assert_eq!(slot.take().and_then(number), Some(7));
        assert!(slot.is_filled() && slot.take().is_none());
    }

    // pins: P12
    #[test]
    fn the_last_waker_is_the_one_that_is_woken() {
        let slot = ExitSlot::new();
        let counting = [0, 1].map(|_| Arc::new(Counting::default()));
        for waiter in &counting {
            let waker = Waker::from(Arc::clone(waiter));
            assert!(slot.poll(&Context::from_waker(&waker)).is_pending());
        }
        assert_eq!(Arc::strong_count(&counting[0]), 1, "its waker has gone");
        slot.fill(done(7)).unwrap().unwrap().wake();
        assert_eq!(counting.each_ref().map(|waiter| waiter.get()), [0, 1]);
        match slot.poll(&Context::from_waker(Waker::noop())) {
            Poll::Ready(reason) => assert_eq!(number(reason), Some(7)),
            Poll::Pending => panic!("it is there"),
        }
    }

    // pins: P12
    #[test]
    fn what_nobody_wants_comes_back() {
        let slot = ExitSlot::new();
        let counting = Arc::new(Counting::default());
        let waker = Waker::from(Arc::clone(&counting));
        assert!(slot.poll(&Context::from_waker(&waker)).is_pending());
        slot.abandon();
        drop(waker);
        assert_eq!(Arc::strong_count(&counting), 1, "its waker has gone");
        assert_eq!(number(slot.fill(done(7)).unwrap_err()), Some(7));
    }

    #[test]
    fn what_is_left_in_it_is_dropped_with_it() {
        let value = Arc::new(());
        let slot = ExitSlot::new();
        let payload = ganger_proc_api::Payload::any(Arc::clone(&value));
        assert!(slot.fill(ExitReason::Done(payload)).unwrap().is_none());
        drop(slot);
        assert_eq!(Arc::strong_count(&value), 1);
    }
}
