//! The global queue: new processes, and processes that are woken from outside of any worker; first in, first out.
//!
//! **Problem.** What is started, or woken, from outside of any worker goes through one queue, a million times in a
//! row when somebody starts a million processes. So a push has to be cheap, also beside those who take. And who is
//! suspended in the middle of one must hide nobody else's process: workers would go on with others meanwhile, and
//! it would wait for more picks than is promised (G4), or they would wait for a thread that is no part of the scheduler.
//!
//! **Rejected.**
//! - *crossbeam's `SegQueue`*: who has claimed a slot and is suspended before it has filled it stops all who take.
//!   And its blocks are given back to the allocator by workers, while those who push ask for some: they then wait for
//!   one another in there.
//! - *A lock around a deque*: a submitter that is preempted inside of it stops everybody.
//!
//! **The urgent lane** is a second queue of this kind, for processes that a system event has woken or
//! waits for. Workers look there first at every pick, and find it empty as a rule: that takes two loads.
//! Rejected for it: a lane of each worker's own, where the sender would have to choose one whose worker
//! may be in a long step; the top of the worker's deque, where a thief could take the process, or the
//! next process that the same step wakes could bury it.
//!
//! **Push**: to a mailbox ([`Queue`]), which hides nothing and takes one read-modify-write.
//!
//! **Take**, under a lock that those who push do not know: from the front, which is what has been taken out of the
//! mailbox. When that is used up, all that is in the mailbox becomes the front.
//!
//! **Why nothing is missed** by who looks whether something is queued: it looks at the mailbox first. What it does
//! not see there any more has become the front, and who makes it that says before that there is one.
//!
//! To turn a million round that have been pushed takes some milliseconds, once; nobody takes one meanwhile.

use ganger_mpsc::{Batch, Queue};
use ganger_sync::CachePadded;
use ganger_sync::atomic::{AtomicUsize, Ordering, fence};
use ganger_sync::sync::{Mutex, MutexGuard, lock};

pub(crate) struct GlobalQueue<T> {
    pushed: CachePadded<Pushed<T>>,
    front: CachePadded<Front<T>>,
}

/// Written by those who push; the mailbox also by who takes all of it.
struct Pushed<T> {
    mailbox: Queue<T>,
    /// How many have ever been pushed, or are about to be.
    count: AtomicUsize,
}

/// What has been taken out of the mailbox, and by no worker yet.
struct Front<T> {
    /// How many there are, or at least one while it is being filled. Written under the lock.
    left: AtomicUsize,
    /// How many have ever been taken. Written under the lock, so that who counts needs none and stops nobody.
    taken: AtomicUsize,
    batch: Mutex<Batch<T>>,
}

impl<T> GlobalQueue<T> {
    pub(crate) fn new() -> Self {
        Self {
            pushed: CachePadded::new(Pushed {
                mailbox: Queue::new(),
                count: AtomicUsize::new(0),
            }),
            front: CachePadded::new(Front {
                left: AtomicUsize::new(0),
                taken: AtomicUsize::new(0),
                batch: Mutex::new(Batch::new()),
            }),
        }
    }

    /// Puts one behind the others. To be followed by a wake-up, or by this worker's own look.
    #[inline]
    pub(crate) fn push(&self, item: T) {
        // Ordering: Relaxed: the auditor's versions order it; for display nothing has to.
        self.pushed.count.fetch_add(1, Ordering::Relaxed);
        let pushed = self.pushed.mailbox.push(item);
        debug_assert!(pushed.is_ok(), "nobody closes it");
    }

    /// Takes so many at the most, the first ones, and hands each to `give`, which must not use the queue. Blocks
    /// while another thread takes some.
    pub(crate) fn take(&self, most: usize, mut give: impl FnMut(T)) {
        if self.is_empty() {
            return;
        }
        let mut batch = self.lock_front();
        // Ordering: Relaxed: the lock orders it.
        let mut taken = self.front.taken.load(Ordering::Relaxed);
        for _ in 0..most {
            if batch.is_empty() {
                self.refill(&mut batch);
            }
            let Some(item) = batch.pop_front() else {
                break;
            };
            taken = taken.wrapping_add(1);
            give(item);
        }
        // Ordering: Relaxed, as in `push`.
        self.front.taken.store(taken, Ordering::Relaxed);
        self.note_left(&batch);
    }

    /// Takes the first one, as [`take`](Self::take) does.
    pub(crate) fn pop(&self) -> Option<T> {
        let mut first = None;
        self.take(1, |item| first = Some(item));
        first
    }

    fn lock_front(&self) -> MutexGuard<'_, Batch<T>> {
        let batch = lock(&self.front.batch);
        // Ordering: Acquire pairs with the Release in `note_left`. The lock does the same, but ThreadSanitizer does not
        // see that of one who has waited for it.
        let _left = self.front.left.load(Ordering::Acquire);
        batch
    }

    /// Says how many there are: last of all before the lock is given back.
    fn note_left(&self, batch: &Batch<T>) {
        // Ordering: Release, as above. Who looks whether something is queued may see it late.
        self.front.left.store(batch.len(), Ordering::Release);
    }

    /// Makes all that has been pushed the front.
    fn refill(&self, batch: &mut Batch<T>) {
        // Ordering: Relaxed, because the fence orders it.
        self.front.left.store(1, Ordering::Relaxed);
        // Ordering: Release pairs with the Acquire in `is_empty`: who sees that the mailbox is empty now sees this.
        fence(Ordering::Release);
        *batch = self.pushed.mailbox.drain();
    }

    /// How many are queued, or about to be. O(1); stops nobody.
    pub(crate) fn len(&self) -> usize {
        // Ordering: Relaxed, as in `push`. First, so that none is counted as taken only.
        let taken = self.front.taken.load(Ordering::Relaxed);
        // Ordering: Relaxed, as in `push`.
        let left = self
            .pushed
            .count
            .load(Ordering::Relaxed)
            .wrapping_sub(taken);
        // Without an order between the two it may be less than none.
        left.cast_signed().max(0).cast_unsigned()
    }

    /// Whether nothing is queued.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        if !self.pushed.mailbox.is_empty() {
            return false;
        }
        // Ordering: Acquire pairs with the Release in `refill`. That a push is seen, the fences in `idle.rs` see to,
        // for one that falls asleep and for the last searcher; any other may be late.
        fence(Ordering::Acquire);
        // Ordering: Relaxed, because the fence orders it.
        self.front.left.load(Ordering::Relaxed) == 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
