//! The queue: a word to which any thread pushes, and which tells which thread wakes the consumer.
//!
//! **Problem.** Every process has a mailbox. A program may have a million mailboxes, most of them
//! empty: an empty mailbox must cost a word and no allocation. Any thread pushes, and one consumer
//! takes all items, in order. The consumer sleeps in between, and exactly one of the pushers that
//! race with its falling asleep must wake it. No wake-up is a hang; a second wake-up is wasted or,
//! if a wake-up is the right to run a process, runs the process twice. And a closed queue must lose
//! nothing: each item is drained, or goes to the closer, or back to its pusher.
//!
//! **Rejected.**
//! - *Vyukov's linked queue*: a pusher that is suspended between its swap and its link hides every
//!   item behind its own. The queue also needs a stub node, and a second word for sleeping, hence a
//!   full fence between the two on both sides.
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
//! 2. Read the word. If it is closed, return the items.
//! 3. Link the chain's oldest node to the value read, and compare-and-swap its newest node in. If
//!    the swap fails, go back to 2 with the value that won.
//! 4. The displaced value tells the pusher's obligation: see [`Pushed`].
//!
//! **Consumer**
//! 1. `drain`: if the word has a chain, compare-and-swap it out, leaving `EMPTY` or `CLOSED`, and
//!    reverse it.
//! 2. If nothing has come: `park`, which replaces `EMPTY`, and nothing else, by `PARKED`. If the
//!    word has another value, go back to 1.
//! 3. Sleep until woken by the holder of the token. After waking for another reason, such as a
//!    deadline: `cancel_park`, which fails if a pusher or closer has the token already.
//!
//! **Closer**
//! 1. `close` swaps `CLOSED` in and takes the rest. `seal` closes, and leaves the rest to a drain.
//! 2. If it displaced `PARKED`, it has the token.
//!
//! **Proof sketch.** *One token*: all changes of the word have one order. `PARKED` enters it by a
//! park, and the next change displaces it: a push, a seal, a close or a cancelled park.
//!
//! *Nothing is lost*: a node enters the word by a swap that starts from an open value. The node
//! leaves by the swap that displaces it: this swap gives the node to a drain or a closer. No open
//! value follows a closed value.
//!
//! *A drain sees the writes of every pusher*: it reads the newest node, whose swap continues the
//! release sequence of all earlier swaps, because only read-modify-writes change the word.
//!
//! **Layers.** `word` is the state machine, `outcome` the obligations of callers, `push` the
//! pusher's side. This folder may import `list`.

mod outcome;
mod push;
mod word;

pub use outcome::{Closed, Closing, Park, Pushed, Sealed};

use crate::list::{Batch, Node, Single};
use ganger_sync::atomic::{AtomicPtr, Ordering};
use std::fmt;
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};
use word::Word;

/// An unbounded queue for many producers and one consumer, in one word.
///
/// All methods take `&self` and never block. They are lock-free: a method tries again only because
/// another thread has succeeded. Only the consumer may call [`park`](Self::park) and
/// [`cancel_park`](Self::cancel_park); any thread may call the other methods. Two threads may drain
/// at the same time: each item goes to only one of them, and the order of items is known within
/// each batch only.
///
/// Items of one producer come out in the order in which it pushed them. A push happens before the
/// drain or close that returns the item. A park happens before the push, seal or close that takes
/// its token. A seal or close happens before the operation that finds the queue closed.
///
/// The queue is one pointer in size, and takes one node an item. Dropping it drops the remaining
/// items, without recursion.
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
    /// Removes the automatic `Send` and `Sync` of the pointer, which would hold for any `T`.
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
    /// Creates an open, empty queue. Allocates nothing.
    #[cfg(not(ganger_loom))]
    #[must_use]
    pub const fn new() -> Self {
        const { Word::<T>::TAGS_FIT };
        Self {
            word: AtomicPtr::new(Word::EMPTY.raw()),
            owns: PhantomData,
        }
    }

    /// Creates an open, empty queue. Allocates nothing.
    #[cfg(ganger_loom)]
    #[must_use]
    pub fn new() -> Self {
        const { Word::<T>::TAGS_FIT };
        Self {
            word: AtomicPtr::new(Word::EMPTY.raw()),
            owns: PhantomData,
        }
    }

    /// Puts an item into a node for this queue. If a thread fills many queues in turn, the nodes of
    /// each queue lie side by side, while the consumer is behind. O(1); allocates one node.
    #[doc(hidden)]
    #[inline]
    pub fn single(&self, item: T) -> Single<T> {
        let newest = || {
            // Ordering: Relaxed, because nothing is read through it: only its address counts.
            Word::from_raw(self.word.load(Ordering::Relaxed))
                .newest()
                .addr()
        };
        Single::behind(item, std::ptr::from_ref(self).addr(), newest)
    }

    /// Takes all items out, the oldest first. O(n) in the items taken; allocates nothing.
    ///
    /// On an empty queue it reads the word and changes nothing. A consumer that drains while it is
    /// parked finds nothing, and is still parked. A closed queue stays closed.
    #[inline]
    #[must_use = "the items are in the queue no longer"]
    pub fn drain(&self) -> Batch<T> {
        self.drain_contended().0
    }

    /// Drains as [`drain`](Self::drain) does, and returns whether another thread changed the word
    /// meanwhile.
    #[inline]
    pub(crate) fn drain_contended(&self) -> (Batch<T>, bool) {
        let (chain, contended) = self.take_chain();
        // SAFETY: the chain, or null, belongs to the swap that displaced it, so it is this
        // thread's. Its nodes were exposed and linked down to null before they were published.
        (unsafe { Batch::from_newest(chain) }, contended)
    }

    /// Takes the chain, or null, out of the word. Returns whether another thread changed the word
    /// meanwhile.
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
    /// After [`Park::Parked`] exactly one pusher or closer learns that it must wake the consumer.
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
            // fence in `publish`, or the swap in `seal`, `close` or `cancel_park`. The swap also
            // replaces `PARKED` by `PARKED`, so that the token covers the consumer's actions since
            // the last park. Acquire on failure pairs with the Release in `seal` and `close`.
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
    /// `true`: the queue was parked, and no other thread gets this park's token. `false`: it was
    /// not parked, or a pusher or closer has the token and acts on it. Only the consumer may call
    /// it, or a thread that stands in for it.
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

    /// Closes the queue to pushers and takes its items. O(n) in the items taken.
    ///
    /// Later calls find nothing. A queue never opens again.
    pub fn close(&self) -> Closing<T> {
        // Ordering: Acquire pairs with the Releases in `publish`, for the chain, and in `park`, for
        // the token. Release pairs with the Acquire of the thread that finds the queue closed.
        let last = Word::from_raw(self.word.swap(Word::CLOSED.raw(), Ordering::AcqRel));
        Closing {
            // SAFETY: the chain, or null, belongs to the swap that displaced it, so it is this
            // thread's. Its nodes were exposed and linked down to null before they were published.
            batch: unsafe { Batch::from_newest(last.newest()) },
            parked: last == Word::PARKED,
        }
    }

    /// Closes the queue to pushers and leaves its items to a drain. O(1) except for lost races.
    ///
    /// Later calls change nothing.
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

    /// Returns whether the queue is empty at this moment. O(1).
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        // Ordering: Relaxed, because nothing is read through it.
        !Word::from_raw(self.word.load(Ordering::Relaxed)).has_items()
    }

    /// Returns whether the queue is parked at this moment: see [`park`](Self::park). O(1).
    #[inline]
    #[must_use]
    pub fn is_parked(&self) -> bool {
        // Ordering: Relaxed, because nothing is read through it.
        Word::from_raw(self.word.load(Ordering::Relaxed)) == Word::PARKED
    }

    /// Returns the number of items. O(n).
    ///
    /// # Safety
    /// No thread drains or closes the queue meanwhile.
    pub(crate) unsafe fn count(&self) -> usize {
        // Ordering: Acquire pairs with the Release in `publish`, for every node of the chain.
        let newest = Word::from_raw(self.word.load(Ordering::Acquire)).newest();
        // SAFETY: the nodes were exposed and linked down to null before they were published. Only
        // drains and closes take them out and change their links, and none runs meanwhile
        // (precondition).
        unsafe { Node::count(newest) }
    }

    /// Returns whether the queue is closed to pushers; items may remain. Once true, it stays true.
    /// O(1).
    #[must_use]
    pub fn is_closed(&self) -> bool {
        // Ordering: Acquire pairs with the Release in `seal` and `close`.
        Word::from_raw(self.word.load(Ordering::Acquire)).is_closed()
    }

    /// Returns whether the queue is closed and empty: no drain finds an item again. Once true, it
    /// stays true. O(1).
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
