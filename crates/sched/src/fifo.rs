//! A first-in-first-out queue of pointers: any thread pushes, and any thread takes, several at once.
//!
//! **Problem.** What is submitted, or woken, from outside of any worker goes through one queue, a million
//! times in a row when somebody starts a million processes. So a push has to be cheap, also beside those
//! who take, and must not wait for them; and who takes wants some at a time.
//!
//! **Rejected.**
//! - *crossbeam's `SegQueue`*: it is the same idea, but gives each block back to the allocator when it has been
//!   used, on another thread than the one that asked for it: workers and submitters then wait for one another in the
//!   allocator. It has read-modify-writes for each that is taken, and for the slot of each.
//! - *A chain of nodes* (`ganger-mpsc`): it is taken whole and turned round, by one of the workers, before
//!   anybody sees the first, which takes some milliseconds when there are a million.
//! - *A lock around a deque*: a submitter that is preempted inside of it stops all workers.
//!
//! **Blocks** have [`SLOTS`] slots, empty ones being null, and are linked. A position is a count, which leaves
//! one out behind each block: while the tail's is such a one, somebody is putting the next block there.
//!
//! **Push**
//! 1. Read the tail's position and, after that, its block. Have the next block ready if this is the last slot.
//! 2. Claim the position by a compare-and-swap that moves the tail on. Lost: back to 1.
//! 3. Who has claimed the last slot of a block puts the next one there: as the tail's block, then the tail's position,
//!    which lets others go on, then the link.
//! 4. Fill the slot.
//!
//! **Take**, under a lock that those who push do not know: read the slots from the head on, as long as they are filled;
//! leave them empty. A block whose last slot has been read is kept for those who push.
//!
//! **Why the block is that of the position.** Positions only grow, and both are changed before the tail's position
//! gets into the next block: who reads a newer block has its compare-and-swap fail.
//!
//! **Why nobody uses a block that is kept for others.** Whoever has claimed a slot of it fills that last of all,
//! and it is kept when all have been read; whoever has not, does not look into it.
//!
//! One that has claimed a position and is suspended before it fills the slot hides what comes behind it. The
//! queue is not empty then, so that no worker falls asleep, and none waits for it here.
//!
//! The blocks are as in crossbeam-queue's `SegQueue`, which goes back to the segments of C. Zhao and others'
//! and D. Vyukov's queues.

use ganger_sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use ganger_sync::sync::{Mutex, lock};
use ganger_sync::{CachePadded, hint, sized, thread};
use std::ptr::{self, NonNull};

/// How many a block has.
const SLOTS: usize = sized(63, 2);

/// From one block's first position to the next one's.
const LAP: usize = SLOTS + 1;

/// Blocks that are kept for those who push: 32 KiB.
const KEPT: usize = sized(64, 1);

/// How often one that waits for the next block spins before it gives way to others.
const SPINS: u32 = 64;

pub(crate) struct Fifo<V> {
    tail: CachePadded<Tail<V>>,
    front: CachePadded<Front<V>>,
    /// Blocks to be used again; all of their slots are empty.
    #[expect(
        clippy::vec_box,
        reason = "a block goes from a box into the list of blocks, and back"
    )]
    kept: Mutex<Vec<Box<Block<V>>>>,
}

/// Written by those who push.
struct Tail<V> {
    position: AtomicUsize,
    block: AtomicPtr<Block<V>>,
}

struct Front<V> {
    /// Of the first that has not been taken. Written under the lock, read by anybody.
    position: AtomicUsize,
    /// The block of that position.
    block: Mutex<Owned<V>>,
}

struct Block<V> {
    slots: [AtomicPtr<V>; SLOTS],
    /// Null in the last one.
    next: AtomicPtr<Block<V>>,
}

/// The first of all blocks; the queue owns it, and those behind it.
struct Owned<V>(NonNull<Block<V>>);

// SAFETY: what a block holds is atomic, and nobody reads what its pointers lead to.
unsafe impl<V> Send for Owned<V> {}

impl<V> Block<V> {
    fn new() -> Box<Self> {
        Box::new(Self {
            slots: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
            next: AtomicPtr::new(ptr::null_mut()),
        })
    }
}

impl<V> Fifo<V> {
    pub(crate) fn new() -> Self {
        let first = Box::into_raw(Block::new());
        Self {
            tail: CachePadded::new(Tail {
                position: AtomicUsize::new(0),
                block: AtomicPtr::new(first),
            }),
            front: CachePadded::new(Front {
                position: AtomicUsize::new(0),
                // SAFETY: a box is not null.
                block: Mutex::new(Owned(unsafe { NonNull::new_unchecked(first) })),
            }),
            kept: Mutex::new(Vec::new()),
        }
    }

    /// Puts it behind all others. What was done before happens before it is taken.
    pub(crate) fn push(&self, item: NonNull<V>) {
        let tail = &self.tail;
        let mut next = None;
        let mut spins = 0;
        // Ordering: Acquire pairs with the Release of who has put the block there, directly or by a later
        // claim, which continues its release sequence: the block that is read next is not an older one.
        let mut position = tail.position.load(Ordering::Acquire);
        loop {
            let slot = position % LAP;
            if slot == SLOTS {
                spins += 1;
                if spins % SPINS == 0 {
                    thread::yield_now();
                } else {
                    hint::spin_loop();
                }
                // Ordering: Acquire, as above.
                position = tail.position.load(Ordering::Acquire);
                continue;
            }
            let is_last = slot + 1 == SLOTS;
            if is_last && next.is_none() {
                next = Some(self.fresh());
            }
            // Ordering: Relaxed, because the position orders it: it is that of the position, or a newer one.
            let block = tail.block.load(Ordering::Relaxed);
            // Ordering: Relaxed: the slot and the block say all that others have to see; who looks whether
            // something is queued relies on the fences in `idle.rs`. Acquire on failure: as above.
            match tail.position.compare_exchange_weak(
                position,
                position + 1,
                Ordering::Relaxed,
                Ordering::Acquire,
            ) {
                Ok(_) => {
                    // SAFETY: it is the block of the position, which this thread has claimed, and stays until
                    // the slot is filled and has been read.
                    let block = unsafe { &*block };
                    if is_last && let Some(next) = next.take() {
                        self.go_on(position, block, next);
                    }
                    // Ordering: Release pairs with the Acquire in `take`.
                    block.slots[slot].store(item.as_ptr(), Ordering::Release);
                    break;
                }
                Err(found) => position = found,
            }
        }
        if let Some(next) = next {
            self.keep(next);
        }
    }

    /// Puts the next block behind one of which the caller has claimed the last slot.
    #[cold]
    fn go_on(&self, position: usize, block: &Block<V>, next: Box<Block<V>>) {
        let next = Box::into_raw(next);
        // Ordering: Relaxed, because the position orders it.
        self.tail.block.store(next, Ordering::Relaxed);
        // Ordering: Release pairs with the Acquire in `push`: the block is the next one, and its slots are empty.
        // Nobody else changes a position between blocks.
        self.tail.position.store(position + 2, Ordering::Release);
        // Ordering: Relaxed: the slot that is filled next orders it, for who takes that.
        block.next.store(next, Ordering::Relaxed);
    }

    /// Takes so many at the most, in order, and hands each to `give`, which must not use the queue. Takes fewer
    /// where one is still being pushed. Blocks while another thread takes some.
    pub(crate) fn take(&self, most: usize, mut give: impl FnMut(NonNull<V>)) {
        if self.is_empty() {
            return;
        }
        let mut owned = lock(&self.front.block);
        // Ordering: Relaxed: the lock orders it.
        let mut position = self.front.position.load(Ordering::Relaxed);
        for _ in 0..most {
            // SAFETY: the queue's own, and not given back before its last slot is read, under the lock.
            let block = unsafe { owned.0.as_ref() };
            let slot = &block.slots[position % LAP];
            // Ordering: Acquire pairs with the Release in `push`.
            let Some(item) = NonNull::new(slot.load(Ordering::Acquire)) else {
                break;
            };
            // Ordering: Relaxed: whoever uses the slot again gets its block by a lock.
            slot.store(ptr::null_mut(), Ordering::Relaxed);
            position += 1;
            if position % LAP == SLOTS {
                position += 1;
                self.leave(&mut owned);
            }
            give(item);
        }
        // Ordering: Relaxed: who looks whether something is queued may see it late.
        self.front.position.store(position, Ordering::Relaxed);
    }

    /// All of the first block has been taken.
    #[cold]
    fn leave(&self, owned: &mut Owned<V>) {
        // SAFETY: as in `take`.
        let block = unsafe { owned.0.as_ref() };
        // Ordering: Relaxed: it was written before the last slot was filled, which has been read; and it is this
        // thread's now.
        let next = block.next.load(Ordering::Relaxed);
        let Some(next) = NonNull::new(next) else {
            unreachable!("the next block is linked before the last slot is filled");
        };
        // Ordering: Relaxed, as above.
        block.next.store(ptr::null_mut(), Ordering::Relaxed);
        let block = std::mem::replace(&mut owned.0, next);
        // SAFETY: it came from a box. Whoever has claimed one of its slots has filled it, and does not look at the
        // block after that.
        self.keep(unsafe { Box::from_raw(block.as_ptr()) });
    }

    fn fresh(&self) -> Box<Block<V>> {
        let kept = lock(&self.kept).pop();
        kept.unwrap_or_else(Block::new)
    }

    fn keep(&self, block: Box<Block<V>>) {
        let mut kept = lock(&self.kept);
        if kept.len() < KEPT {
            kept.push(block);
        }
    }

    /// Whether nothing is queued, or about to be.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // Ordering: Relaxed: the fences in `idle.rs` order it, and the pushes before them, for one that falls
        // asleep and for the last searcher; any other may be late. Whoever has taken what is missed is awake.
        let tail = self.tail.position.load(Ordering::Relaxed);
        // Ordering: Relaxed, as above.
        tail == self.front.position.load(Ordering::Relaxed)
    }

    /// How many are queued, or about to be, at some moment. O(1).
    pub(crate) fn len(&self) -> usize {
        let count = |position: usize| position / LAP * SLOTS + position % LAP;
        // Ordering: Relaxed: the auditor's versions order it; for display nothing has to.
        let front = self.front.position.load(Ordering::Relaxed);
        // Ordering: Relaxed, as above.
        let tail = self.tail.position.load(Ordering::Relaxed);
        count(tail).saturating_sub(count(front))
    }
}

impl<V> Drop for Fifo<V> {
    fn drop(&mut self) {
        let mut block = lock(&self.front.block).0.as_ptr();
        while !block.is_null() {
            // SAFETY: blocks came from boxes, and each is in the list once; nobody else has the queue.
            let owned = unsafe { Box::from_raw(block) };
            // Ordering: Relaxed: nobody else has the queue.
            block = owned.next.load(Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
