//! The injector: a FIFO queue to which any thread pushes, and from which several threads pop.
//!
//! **Problem.** Work from outside of a pool of workers goes through one queue, in bursts of up to a
//! million items. So a push must be cheap, also beside popping threads. And a pusher that is
//! suspended in the middle of a push must hide no item of another pusher.
//!
//! **Rejected.**
//! - *crossbeam's `SegQueue`*: a pusher that has claimed a slot and is suspended before it fills
//!   the slot stops all popping threads. And popping threads return blocks to the allocator while
//!   pushers ask it for blocks, so they wait for one another in the allocator.
//! - *A lock around a deque*: a pusher that is preempted inside stops all other threads.
//!
//! **Push**: into a [`Queue`], which hides nothing and takes one read-modify-write.
//!
//! **Pop**, under a lock that pushers never take: from the *front*, the items drained from the
//! queue. When the front is used up, all items in the queue become the front.
//!
//! **Proof sketch.** A thread that checks for items looks at the queue first. An item missing there
//! has become part of the front. The thread that drained it announced the front before the drain,
//! and the fences in `refill` and `is_empty` make this visible.
//!
//! **Price.** A drain reverses the links of all items, once, while no other thread can pop.
//!
//! This folder may import `queue` and `list`.

use crate::list::Batch;
use crate::queue::Queue;
use ganger_sync::CachePadded;
use ganger_sync::atomic::{AtomicUsize, Ordering, fence};
use ganger_sync::sync::{Mutex, MutexGuard, lock};
use std::fmt;

/// An unbounded FIFO queue: any thread pushes and never waits, and any thread pops.
///
/// For work from outside of a pool of threads. With a deque for each thread, a thread looks here
/// when its own deque is empty, and takes a batch.
///
/// Items of one pusher come out in the order in which it pushed them, and each item comes out once.
/// A push happens before the pop that returns the item. Popping threads wait for one another, and
/// for nothing else. Dropping the injector drops the remaining items.
///
/// ```
/// use ganger_mpsc::Injector;
///
/// let injector = Injector::new();
/// (0..5).for_each(|item| injector.push(item));
/// assert_eq!(injector.pop(), Some(0));
/// assert_eq!(injector.pop_batch(3).into_iter().collect::<Vec<_>>(), [1, 2, 3]);
/// assert_eq!((injector.len(), injector.is_empty()), (1, false));
/// ```
///
/// Threads share it by reference:
///
/// ```
/// use ganger_mpsc::Injector;
/// use std::thread;
///
/// let injector = Injector::new();
/// thread::scope(|scope| {
///     let half = |from| (from..from + 50).for_each(|job| injector.push(job));
///     [0, 50].map(|from| scope.spawn(move || half(from)));
/// });
/// let sum = || std::iter::from_fn(|| injector.pop()).sum::<u32>();
/// let sums: u32 = thread::scope(|scope| {
///     let workers = [0, 1].map(|_| scope.spawn(sum));
///     workers.into_iter().map(|worker| worker.join().unwrap()).sum()
/// });
/// assert_eq!(sums, (0..100).sum());
/// ```
pub struct Injector<T> {
    front: CachePadded<Front<T>>,
    pushed: CachePadded<Pushed<T>>,
}

/// The fields written by pushers. The thread that refills the front writes the queue as well.
struct Pushed<T> {
    queue: Queue<T>,
    /// How many items have ever been pushed, or are about to be.
    count: AtomicUsize,
}

/// The items drained from the queue and not yet popped. Popping threads write it.
struct Front<T> {
    /// The number of items; at least 1 while the front is being filled. Written under the lock,
    /// read without it.
    left: AtomicUsize,
    /// How many items have ever been popped. Written under the lock, read without it.
    popped: AtomicUsize,
    batch: Mutex<Batch<T>>,
}

impl<T> Injector<T> {
    /// Creates an empty injector. Allocates nothing.
    ///
    /// ```
    /// let injector = ganger_mpsc::Injector::<u64>::new();
    /// assert!(injector.is_empty());
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self {
            front: CachePadded::new(Front {
                left: AtomicUsize::new(0),
                popped: AtomicUsize::new(0),
                batch: Mutex::new(Batch::new()),
            }),
            pushed: CachePadded::new(Pushed {
                queue: Queue::new(),
                count: AtomicUsize::new(0),
            }),
        }
    }

    /// Pushes an item behind all others. O(1) except for lost races; allocates one node. Never
    /// blocks.
    ///
    /// ```
    /// let injector = ganger_mpsc::Injector::new();
    /// injector.push("older");
    /// injector.push("newer");
    /// assert_eq!(injector.pop(), Some("older"));
    /// ```
    #[inline]
    pub fn push(&self, item: T) {
        // Ordering: Relaxed, because a count orders nothing.
        self.pushed.count.fetch_add(1, Ordering::Relaxed);
        let pushed = self.pushed.queue.push(item);
        debug_assert!(pushed.is_ok(), "no thread closes the queue");
    }

    /// Takes the oldest item, if any. Blocks while another thread pops. O(1), amortised.
    ///
    /// ```
    /// let injector = ganger_mpsc::Injector::new();
    /// injector.push(7);
    /// assert_eq!((injector.pop(), injector.pop()), (Some(7), None));
    /// ```
    pub fn pop(&self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let mut front = self.lock_front();
        if front.is_empty() {
            self.refill(&mut front);
        }
        let item = front.pop_front();
        self.note_popped(usize::from(item.is_some()), &front);
        item
    }

    /// Takes the `at_most` oldest items, or all if fewer remain. Blocks while another thread pops.
    /// O(`at_most`), amortised; allocates nothing.
    ///
    /// ```
    /// let injector = ganger_mpsc::Injector::new();
    /// (0..3).for_each(|item| injector.push(item));
    /// assert_eq!(Vec::from_iter(injector.pop_batch(2)), [0, 1]);
    /// assert_eq!(Vec::from_iter(injector.pop_batch(2)), [2]);
    /// ```
    #[must_use = "the items are in the injector no longer"]
    pub fn pop_batch(&self, at_most: usize) -> Batch<T> {
        if self.is_empty() {
            return Batch::new();
        }
        let mut front = self.lock_front();
        let mut popped = front.split_to(at_most);
        if popped.len() < at_most {
            // The front is used up.
            self.refill(&mut front);
            popped.append(front.split_to(at_most - popped.len()));
        }
        self.note_popped(popped.len(), &front);
        popped
    }

    /// Returns the number of items, with pushes about to complete. More may come or go at any
    /// moment. O(1); never blocks.
    #[must_use]
    pub fn len(&self) -> usize {
        // Ordering: Relaxed, because a count orders nothing. `popped` is read first, so that no
        // item counts as popped but not as pushed.
        let popped = self.front.popped.load(Ordering::Relaxed);
        // Ordering: Relaxed, because a count orders nothing.
        let pushed = self.pushed.count.load(Ordering::Relaxed);
        // Without an order between the two loads the difference may be negative.
        pushed
            .wrapping_sub(popped)
            .cast_signed()
            .max(0)
            .cast_unsigned()
    }

    /// Returns whether the injector is empty at this moment. O(1); never blocks.
    ///
    /// A thread may see a push late. A thread that sleeps beside an empty injector must announce
    /// its sleep, then make a full fence, then call this function. Pushers must push, then make a
    /// full fence, then look for announcements.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        if !self.pushed.queue.is_empty() {
            return false;
        }
        // Ordering: Acquire pairs with the Release fence in `refill`: a thread that sees the queue
        // emptied by a drain sees the announced front.
        fence(Ordering::Acquire);
        // Ordering: Relaxed, because the fence orders it.
        self.front.left.load(Ordering::Relaxed) == 0
    }

    fn lock_front(&self) -> MutexGuard<'_, Batch<T>> {
        let batch = lock(&self.front.batch);
        // Ordering: Acquire pairs with the Release in `note_popped`. The lock orders as much, but
        // ThreadSanitizer does not see it if a thread has waited for the lock.
        let _left = self.front.left.load(Ordering::Acquire);
        batch
    }

    /// Moves all items of the queue to the front, which is empty. The caller has the lock.
    fn refill(&self, front: &mut Batch<T>) {
        // Ordering: Relaxed, because the fence orders it.
        self.front.left.store(1, Ordering::Relaxed);
        // Ordering: Release pairs with the Acquire fence in `is_empty`: a thread that sees the
        // queue emptied by the drain sees the store.
        fence(Ordering::Release);
        *front = self.pushed.queue.drain();
    }

    /// Counts items as popped, and stores how many are left. The last step under the lock.
    fn note_popped(&self, items: usize, front: &Batch<T>) {
        // Ordering: Relaxed, because the lock orders it.
        let popped = self.front.popped.load(Ordering::Relaxed);
        let popped = popped.wrapping_add(items);
        // Ordering: Relaxed, because a count orders nothing.
        self.front.popped.store(popped, Ordering::Relaxed);
        // Ordering: Release pairs with the Acquire in `lock_front`. `is_empty` may see it late.
        self.front.left.store(front.len(), Ordering::Release);
    }
}

impl<T> Default for Injector<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Injector<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Injector")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod loom_injector;
#[cfg(all(test, not(ganger_loom)))]
mod tests;
