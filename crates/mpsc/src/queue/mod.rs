//! The queue: one word that any thread pushes to, and that says which thread wakes the consumer.
//!
//! **Problem.** Every process has a mailbox. There may be a million of them, most of them empty: an
//! empty one must cost a word and no allocation. Any thread pushes, and one consumer takes
//! everything there is, in order. The consumer sleeps in between, and exactly one of the pushers
//! that race with its falling asleep must wake it. No wake-up is a hang; two are a wasted one or,
//! where a wake-up is the right to run a process, one process running twice. And a queue that is
//! closed must lose nothing: each item is drained, or goes to the closer, or back to its pusher.
//!
//! **Rejected.**
//! - *Vyukov's linked queue*: a pusher that is suspended between its swap and its link hides every
//!   item behind its own. It also needs a stub node, and a second word for sleeping, hence a full
//!   fence between the two on both sides.
//! - *A ring*: its size is either a limit or a waste, times a million.
//! - *A lock around a deque*: a pusher that is preempted inside stops all others and the consumer.
//! - *Draining by a plain swap*: it would displace `CLOSED` and `PARKED` too. Putting them back
//!   afterwards leaves a gap in which a push gets into a closed queue, or a park is lost. A
//!   compare-and-swap costs the same when no other thread interferes.
//!
//! **The word** holds one of `EMPTY`, `PARKED`, `CLOSED`, or the newest node of a chain, which may
//! be tagged as closed: see the table at [`Word`]. No thread stores to it: every change is a
//! read-modify-write that starts from the value it displaces.
//!
//! **Pusher**
//! 1. Build a node (or a chain of them) that no other thread sees.
//! 2. Read the word. If it is closed, give the items back.
//! 3. Link the chain's oldest node to the value read, and compare-and-swap its newest node in. If
//!    that fails, go back to 2 with the value that won.
//! 4. The value displaced says what the pusher owes: see [`Pushed`].
//!
//! **Consumer**
//! 1. `drain`: if there is a chain in the word, compare-and-swap it out, leaving `EMPTY` or
//!    `CLOSED`, and turn it round.
//! 2. If nothing has come: `park`, which puts `PARKED` in the place of `EMPTY`, and of nothing
//!    else. If there is something else, go back to 1.
//! 3. Sleep until the holder of the token says so. After waking for another reason, such as a
//!    deadline: `cancel_park`, which fails if a pusher or closer has the token already.
//!
//! **Closer**
//! 1. `close` swaps `CLOSED` in and takes the rest. `seal` closes, and leaves the rest to a drain.
//! 2. If it displaced `PARKED`, it has the token.
//!
//! **Proof sketch.** *One token*: all changes of the word have one order. `PARKED` enters it by a
//! park, and the next change displaces it: a push, a seal, a close or a park that is taken back.
//!
//! *Nothing is lost*: a node enters the word by a swap that starts from an open value. It leaves by
//! the one swap that displaces it, which gives it to a drain or a closer. No open value comes after
//! a closed one.
//!
//! *A drain sees what every pusher wrote*: it reads the newest node, whose swap continues the
//! release sequence of all swaps before it, because nothing but read-modify-writes changes the
//! word.
//!
//! **Layers.** `word` is the state machine, `outcome` what callers owe, `push` the pusher's side.
//! This folder may import `list`.

mod outcome;
mod push;
mod word;

pub use outcome::{Closed, Closing, Park, Pushed, Sealed};

use crate::list::{Batch, Node};
use ganger_sync::atomic::{AtomicPtr, Ordering};
use std::fmt;
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};
use word::Word;

/// An unbounded queue for many producers and one consumer, in one word.
///
/// All methods take `&self` and never block. They are lock-free: a method tries again only because
/// another thread has succeeded. [`park`](Self::park) and [`cancel_park`](Self::cancel_park) are
/// the consumer's; the others are for any thread. Two threads may drain at the same time: each item
/// goes to one of them, and the order of items is known within each batch only.
///
/// Items of one producer come out in the order in which it pushed them. A push happens before the
/// drain or close that returns the item. A park happens before the push, seal or close that takes
/// its token. A seal or close happens before the operation that finds the queue closed.
///
/// The queue is one pointer in size, and takes one node an item. Dropping it drops the items that
/// are left, without recursion.
///
/// ```
/// use ganger_mpsc::{Park, Pushed, Queue};
///
/// let queue = Queue::new();
/// assert_eq!(queue.push('a').unwrap(), Pushed::First);
/// assert_eq!(queue.push('b').unwrap(), Pushed::Queued);
/// assert_eq!(queue.drain().into_iter().collect::<String>(), "ab");
///
/// assert_eq!(queue.park(), Park::Parked);
/// assert_eq!(queue.push('c').unwrap(), Pushed::Unparked); // must wake the consumer
/// assert_eq!(queue.push('d').unwrap(), Pushed::Queued); // need not
///
/// assert_eq!(queue.close().batch.len(), 2);
/// assert_eq!(queue.push('e').unwrap_err().into_inner(), 'e');
/// ```
pub struct Queue<T> {
    /// Written by pushers, the consumer and closers; see the table at [`Word`].
    word: AtomicPtr<Node<T>>,
    /// Takes the automatic `Send` and `Sync` away, which the pointer would give for any `T`.
    owns: PhantomData<*mut T>,
}

// SAFETY: a queue owns the items in it. Items go in on one thread and come out on another, each to
// one owner, and the queue gives out no reference to an item: so `T: Send` is enough.
unsafe impl<T: Send> Send for Queue<T> {}
// SAFETY: a shared queue gives out items by value, each to one owner: so `T: Send` is enough.
unsafe impl<T: Send> Sync for Queue<T> {}

// No foreign code runs inside an operation that has begun to change the queue.
impl<T> UnwindSafe for Queue<T> {}
impl<T> RefUnwindSafe for Queue<T> {}

impl<T> Queue<T> {
    /// An open queue with nothing in it. Allocates nothing.
    #[cfg(not(ganger_loom))]
    #[must_use]
    pub const fn new() -> Self {
        const { Word::<T>::TAGS_FIT };
        Self {
            word: AtomicPtr::new(Word::EMPTY.raw()),
            owns: PhantomData,
        }
    }

    /// An open queue with nothing in it. Allocates nothing.
    #[cfg(ganger_loom)]
    #[must_use]
    pub fn new() -> Self {
        const { Word::<T>::TAGS_FIT };
        Self {
            word: AtomicPtr::new(Word::EMPTY.raw()),
            owns: PhantomData,
        }
    }

    /// Takes everything out, the oldest item first. O(n) in what it takes; allocates nothing.
    ///
    /// If there is nothing, it reads the word and changes nothing. A consumer that drains while it
    /// is parked finds nothing, and is still parked. A closed queue stays closed.
    #[inline]
    #[must_use = "the items are in the queue no longer"]
    pub fn drain(&self) -> Batch<T> {
        self.drain_contended().0
    }

    /// [Drains](Self::drain), and says whether another thread changed the word meanwhile.
    #[inline]
    pub(crate) fn drain_contended(&self) -> (Batch<T>, bool) {
        let (chain, contended) = self.take_chain();
        // SAFETY: only the swap that displaced the chain, or null, has it, so it is this thread's.
        // Its nodes were exposed and linked down to null before they were published.
        (unsafe { Batch::from_newest(chain) }, contended)
    }

    /// Takes the chain out of the word, or null if there is none. Says whether another thread
    /// changed the word meanwhile.
    #[inline]
    fn take_chain(&self) -> (*mut Node<T>, bool) {
        // Ordering: Relaxed, because nothing is read through it before the swap acquires. A thread
        // that has been notified of an item sees it here: the notification orders this read behind
        // the push.
        let mut seen = Word::from_raw(self.word.load(Ordering::Relaxed));
        let mut contended = false;
        while seen.has_items() {
            // Ordering: Acquire pairs with the Release of the swap in `publish`, for every node of
            // the chain. Relaxed on failure, because nothing is read through it.
            match self.word.compare_exchange_weak(
                seen.raw(),
                seen.drained().raw(),
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(chain) => return (Word::from_raw(chain).newest(), contended),
                Err(now) => {
                    // A weak exchange may fail although the value is the same.
                    contended |= now != seen.raw();
                    seen = Word::from_raw(now);
                }
            }
        }
        (std::ptr::null_mut(), contended)
    }

    /// Announces that the consumer is about to sleep. O(1) but for lost races.
    ///
    /// After [`Park::Parked`] exactly one pusher or closer learns that it has to wake the consumer.
    /// Parking twice is the same as parking once. Only the consumer may call it.
    pub fn park(&self) -> Park {
        let mut seen = Word::EMPTY;
        loop {
            if seen.has_items() {
                return Park::NotEmpty;
            }
            if seen.is_closed() {
                return Park::Closed;
            }
            // Ordering: Release pairs with the Acquire of the thread that takes the token: the
            // fence in `publish`, or the swap in `seal`, `close` or `cancel_park`. The swap is done
            // even where the value is `PARKED` already, so that the token covers what happened
            // since. Acquire on failure pairs with the Release in `seal` and `close`.
            match self.word.compare_exchange(
                seen.raw(),
                Word::PARKED.raw(),
                Ordering::Release,
                Ordering::Acquire,
            ) {
                Ok(_) => return Park::Parked,
                Err(now) => seen = Word::from_raw(now),
            }
        }
    }

    /// Takes a park back. O(1).
    ///
    /// `true`: the queue was parked, and no other thread gets the token of that park. `false`: it
    /// was not, or a pusher or closer has the token and acts on it. Only the consumer may call it,
    /// or a thread that stands in for it.
    ///
    /// ```
    /// # use ganger_mpsc::{Park, Pushed, Queue};
    /// let queue = Queue::new();
    /// assert_eq!(queue.park(), Park::Parked);
    /// assert!(queue.cancel_park());
    /// assert_eq!(queue.push(1).unwrap(), Pushed::First); // not `Unparked`
    /// assert!(!queue.cancel_park());
    /// ```
    #[inline]
    #[must_use = "`false` after a park means that a wake-up is on its way"]
    pub fn cancel_park(&self) -> bool {
        // Ordering: Acquire pairs with the Release in `park`, for a thread that stands in for the
        // consumer. Relaxed on failure, because a drain follows, which acquires.
        self.word
            .compare_exchange(
                Word::PARKED.raw(),
                Word::EMPTY.raw(),
                Ordering::Acquire,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    /// Closes the queue to pushers and takes what is in it. O(n) in what it takes.
    ///
    /// It may be called more than once; the later calls find nothing. A queue never opens again.
    pub fn close(&self) -> Closing<T> {
        // Ordering: Acquire pairs with the Releases in `publish`, for the chain, and in `park`, for
        // the token. Release pairs with the Acquire of the thread that finds the queue closed.
        let last = Word::from_raw(self.word.swap(Word::CLOSED.raw(), Ordering::AcqRel));
        Closing {
            // SAFETY: only the swap that displaced the chain, or null, has it, so it is this
            // thread's. Its nodes were exposed and linked down to null before they were published.
            batch: unsafe { Batch::from_newest(last.newest()) },
            parked: last == Word::PARKED,
        }
    }

    /// Closes the queue to pushers and leaves what is in it to a drain. O(1) but for lost races.
    ///
    /// It may be called more than once; the later calls change nothing.
    ///
    /// ```
    /// # use ganger_mpsc::{Queue, Sealed};
    /// let queue = Queue::new();
    /// let _ = queue.push(1);
    /// assert_eq!(queue.seal(), Sealed::Awake);
    /// assert!(queue.push(2).is_err());
    /// assert!(!queue.is_finished());
    /// assert_eq!(queue.drain().pop_front(), Some(1));
    /// assert!(queue.is_finished());
    /// ```
    pub fn seal(&self) -> Sealed {
        // Ordering: Relaxed, because nothing is read through it.
        let mut seen = Word::from_raw(self.word.load(Ordering::Relaxed));
        while !seen.is_closed() {
            // Ordering: Release pairs with the Acquire of the thread that finds the queue closed.
            // Acquire pairs with the Release in `park`, for the token. Relaxed on failure, because
            // nothing is read through it.
            match self.word.compare_exchange_weak(
                seen.raw(),
                seen.sealed().raw(),
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) if seen == Word::PARKED => return Sealed::Unparked,
                Ok(_) => break,
                Err(now) => seen = Word::from_raw(now),
            }
        }
        Sealed::Awake
    }

    /// Whether there is no item at this moment. O(1).
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        // Ordering: Relaxed, because nothing is read through it.
        !Word::from_raw(self.word.load(Ordering::Relaxed)).has_items()
    }

    /// Whether the queue is parked at this moment: see [`park`](Self::park). O(1).
    #[inline]
    #[must_use]
    pub fn is_parked(&self) -> bool {
        // Ordering: Relaxed, because nothing is read through it.
        Word::from_raw(self.word.load(Ordering::Relaxed)) == Word::PARKED
    }

    /// How many items there are. O(n).
    ///
    /// # Safety
    /// No thread drains or closes the queue meanwhile.
    pub(crate) unsafe fn count(&self) -> usize {
        // Ordering: Acquire pairs with the Release in `publish`, for every node of the chain.
        let newest = Word::from_raw(self.word.load(Ordering::Acquire)).newest();
        // SAFETY: the nodes were exposed and linked down to null before they were published. Only
        // drains and closes take them out and change their links, and there are none
        // (precondition).
        unsafe { Node::count(newest) }
    }

    /// Whether the queue is closed to pushers; there may be items left. Once true, it stays true.
    /// O(1).
    #[must_use]
    pub fn is_closed(&self) -> bool {
        // Ordering: Acquire pairs with the Release in `seal` and `close`.
        Word::from_raw(self.word.load(Ordering::Acquire)).is_closed()
    }

    /// Whether the queue is closed and nothing is left: no drain finds anything again. Once true,
    /// it stays true. O(1).
    #[must_use]
    pub fn is_finished(&self) -> bool {
        // Ordering: Acquire pairs with the Release in `seal` and `close`.
        Word::from_raw(self.word.load(Ordering::Acquire)) == Word::CLOSED
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for Queue<T> {
    fn drop(&mut self) {
        drop(self.drain());
    }
}

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Ordering: Relaxed, because nothing is read through it.
        let word = Word::from_raw(self.word.load(Ordering::Relaxed));
        f.debug_tuple("Queue").field(&word).finish()
    }
}
