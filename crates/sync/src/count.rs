//! Counts that a thread can wait for, until few enough are left.
//!
//! **Problem.** Many threads begin and end something, and a few threads wait until little of it is
//! left. Counting has to stay cheap while no thread waits. And one counter for all threads is a
//! cache line that each of them has to fetch from another.
//!
//! **Rejected.** A lock around the count: each thread that counts would take it.
//!
//! **Protocol of waiting.** A thread that *leaves* counts, makes a light fence, and then looks
//! whether a thread waits. A thread that *waits* says so, makes a heavy fence, and then reads the
//! count, under the lock that the leaving thread takes before it signals. So one of the two sees
//! the other, and no signal falls between a look at the count and the sleep that follows it.
//!
//! **Shards.** Each shard has two counters: what has entered there, and what has left there. What
//! enters at one shard may leave at another. A reader reads all that have left, and then all that
//! have entered. What it sees leave has entered before, so the reader overlooks nothing.
//!
//! **Children.** One that is in may let another one in, its *child*, until it closes; it closes
//! before it leaves. The child enters, makes a light fence, and then looks whether its parent has
//! closed. A thread that waits for few enough reads all that have left, makes a heavy fence, and
//! then reads all that have entered. Proof sketch, for none left: what it sees leave has closed
//! before the heavy fence. So a child of that either found its parent closed, and does not count,
//! or is seen. So the children of all that have left are among those that have entered, which are
//! those that have left; and so on down to the last. Rejected: the heavy fence in each look. A
//! thread that waits is woken at each end, so it looks without it first.

use crate::atomic::{AtomicUsize, Ordering};
use crate::sync::{Condvar, Mutex, lock};
use crate::{CachePadded, fence};
use std::sync::PoisonError;
use std::time::Duration;

/// A count in one word. Changing it is one read-modify-write, unless a thread waits for it.
///
/// ```
/// use ganger_sync::WaitableCount;
/// use std::time::Duration;
///
/// let count = WaitableCount::default();
/// assert!(count.enter_below(1) && !count.enter_below(1));
/// assert!(!count.wait(|| 0, || Duration::ZERO));
/// count.leave();
/// assert!(count.wait(|| 0, || Duration::ZERO));
/// ```
#[derive(Debug, Default)]
pub struct WaitableCount {
    count: CachePadded<AtomicUsize>,
    waiters: Waiters,
}

impl WaitableCount {
    /// Counts one more.
    pub fn enter(&self) {
        // Ordering: Relaxed: `leave` publishes what the ones counted have done.
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one more, unless there are `limit` already: exact under any concurrency.
    #[must_use]
    pub fn enter_below(&self, limit: usize) -> bool {
        let add_one = |count: usize| (count < limit).then_some(count + 1);
        // Ordering: Acquire pairs with the Release in `leave`: the one that takes a place sees the
        // end of the one that has left it. Relaxed where there is none.
        self.count
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, add_one)
            .is_ok()
    }

    /// Counts one less, and signals the threads that wait.
    pub fn leave(&self) {
        // Ordering: Release pairs with the Acquire in `get` and `enter_below`.
        self.count.fetch_sub(1, Ordering::Release);
        self.waiters.note_change();
    }

    /// The count. A thread that sees one leave sees what it did before.
    #[must_use]
    pub fn get(&self) -> usize {
        // Ordering: Acquire pairs with the Release in `leave`.
        self.count.load(Ordering::Acquire)
    }

    /// Lets the threads that wait look at their target and time again.
    pub fn poke(&self) {
        self.waiters.poke();
    }

    /// Blocks until at most `target` are left, or no time remains. Returns whether they are.
    ///
    /// Both may change meanwhile, before a [`poke`](Self::poke).
    pub fn wait(&self, target: impl Fn() -> usize, remaining: impl Fn() -> Duration) -> bool {
        self.waiters.wait(|| self.get() <= target(), remaining)
    }
}

/// A count in several shards: each belongs to one thread, and the last one to all other threads.
/// Changing it on a thread that has a shard takes no read-modify-write.
///
/// ```
/// use ganger_sync::ShardedCount;
///
/// let count = ShardedCount::new(2);
/// count.enter(Some(0));
/// count.enter(None);
/// count.leave(Some(1));
/// assert_eq!(count.get(), 1);
/// ```
#[derive(Debug)]
pub struct ShardedCount {
    /// Those of single threads, and last the one of all other threads.
    shards: Box<[CachePadded<Shard>]>,
    waiters: Waiters,
}

/// Written by the thread that it belongs to, read by threads that count or wait.
#[derive(Debug, Default)]
struct Shard {
    entered: AtomicUsize,
    left: AtomicUsize,
}

impl ShardedCount {
    /// With that many shards of single threads.
    #[must_use]
    pub fn new(owners: usize) -> Self {
        Self {
            shards: (0..=owners).map(|_| CachePadded::default()).collect(),
            waiters: Waiters::default(),
        }
    }

    /// How many have entered and not left, and perhaps some that entered or left just before. A
    /// thread that sees one leave sees what it did before. O(shards).
    #[must_use]
    pub fn get(&self) -> usize {
        self.count(|| {})
    }

    /// As [`get`](Self::get), and overlooks no child of one that it sees leave.
    fn get_with_children(&self) -> usize {
        // Pairs with the light fence in `enter`: a child enters, then looks whether its parent has
        // closed; a parent closes and is seen to leave, then this thread reads what has entered.
        // One of the two sees the other.
        self.count(fence::heavy)
    }

    fn count(&self, between: impl FnOnce()) -> usize {
        // Ordering: Acquire pairs with the Release in `add_one`: what is seen to have left has
        // entered before.
        let left = self.sum(|shard| shard.left.load(Ordering::Acquire));
        between();
        // Ordering: Relaxed, because the loads above order these.
        let entered = self.sum(|shard| shard.entered.load(Ordering::Relaxed));
        entered.wrapping_sub(left)
    }

    fn sum(&self, read: impl Fn(&Shard) -> usize) -> usize {
        let counts = self.shards.iter().map(|shard| read(shard));
        counts.fold(0, usize::wrapping_add)
    }

    /// Counts one more, on the thread that owns that shard, or on one that owns none. For a thread
    /// that makes a heavy fence between a store and [`get`](Self::get), what the caller loads after
    /// this comes after it. So a child that enters and then finds that its parent has not closed,
    /// which that does before it leaves, is not overlooked by [`wait`](Self::wait).
    pub fn enter(&self, owner: Option<usize>) {
        add_one(&self.shard(owner).entered, owner.is_some());
        fence::light();
    }

    /// Counts one less, on the thread that owns that shard, or on one that owns none; and signals
    /// the threads that wait.
    pub fn leave(&self, owner: Option<usize>) {
        add_one(&self.shard(owner).left, owner.is_some());
        self.waiters.note_change();
    }

    /// Lets the threads that wait look at their target and time again.
    pub fn poke(&self) {
        self.waiters.poke();
    }

    /// Blocks until at most `target` are left, or no time remains. Returns whether they are.
    ///
    /// Both may change meanwhile, before a [`poke`](Self::poke). One that is in may let in another
    /// one: see [`enter`](Self::enter).
    pub fn wait(&self, target: impl Fn() -> usize, remaining: impl Fn() -> Duration) -> bool {
        let is_reached = || self.get() <= target() && self.get_with_children() <= target();
        self.waiters.wait(is_reached, remaining)
    }

    fn shard(&self, owner: Option<usize>) -> &Shard {
        let others = self.shards.len() - 1;
        &self.shards[owner.unwrap_or(others)]
    }
}

/// Without a read-modify-write where no other thread writes the counter.
fn add_one(counter: &AtomicUsize, is_own: bool) {
    if is_own {
        // Ordering: Relaxed: this thread wrote it.
        let next = counter.load(Ordering::Relaxed).wrapping_add(1);
        // Ordering: Release pairs with the Acquire in `get`.
        counter.store(next, Ordering::Release);
    } else {
        // Ordering: Release pairs with the Acquire in `get`, through the additions of other
        // threads.
        counter.fetch_add(1, Ordering::Release);
    }
}

/// The threads that wait for a count.
#[derive(Debug, Default)]
struct Waiters {
    waiting: AtomicUsize,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Waiters {
    /// The caller has changed the count: signals the threads that wait, if any.
    #[inline]
    fn note_change(&self) {
        fence::light();
        // Ordering: Relaxed: the fence pairs with the heavy one in `wait`.
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.poke();
        }
    }

    #[cold]
    fn poke(&self) {
        drop(lock(&self.lock));
        self.changed.notify_all();
    }

    fn wait(&self, is_reached: impl Fn() -> bool, remaining: impl Fn() -> Duration) -> bool {
        // Ordering: Relaxed: the fence below pairs with the light one in `note_change`.
        self.waiting.fetch_add(1, Ordering::Relaxed);
        fence::heavy();
        let mut guard = lock(&self.lock);
        let reached = loop {
            if is_reached() {
                break true;
            }
            let time = remaining();
            if time == Duration::ZERO {
                break false;
            }
            let waited = self.changed.wait_timeout(guard, time);
            guard = waited.unwrap_or_else(PoisonError::into_inner).0;
        };
        drop(guard);
        // Ordering: Relaxed: one signal too many does no harm.
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        reached
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    #[test]
    fn what_enters_at_one_shard_may_leave_at_another() {
        let count = ShardedCount::new(2);
        for owner in [None, Some(0), Some(1)] {
            count.enter(owner);
        }
        assert_eq!(count.get(), 3);
        for owner in [Some(1), Some(1), None] {
            count.leave(owner);
        }
        assert_eq!(count.get(), 0);
    }

    #[test]
    fn a_thread_that_waits_is_told_of_the_last_end() {
        const EACH: usize = 1_000;
        for _ in 0..20 {
            let count = Arc::new(ShardedCount::new(2));
            for _ in 0..3 * EACH {
                count.enter(None);
            }
            let leavers = [None, Some(0), Some(1)].map(|owner| {
                let count = Arc::clone(&count);
                thread::spawn(move || (0..EACH).for_each(|_| count.leave(owner)))
            });
            assert!(count.wait(|| 0, || Duration::MAX));
            assert_eq!(count.get(), 0);
            leavers.into_iter().for_each(|it| it.join().unwrap());
        }
    }

    #[test]
    fn a_wait_ends_when_no_time_remains() {
        let (sharded, single) = (ShardedCount::new(1), WaitableCount::default());
        sharded.enter(Some(0));
        single.enter();
        let looks = std::cell::Cell::new(0);
        let remaining = || {
            looks.set(looks.get() + 1);
            Duration::from_millis(u64::from(looks.get() == 1))
        };
        assert!(!sharded.wait(|| 0, remaining) && !single.wait(|| 0, remaining));
        assert!(sharded.wait(|| 1, remaining) && single.wait(|| 1, remaining));
    }

    /// Counts while others enter and leave: one that is in all the time is not overlooked.
    #[test]
    fn a_count_is_never_too_low() {
        let count = Arc::new(ShardedCount::new(2));
        count.enter(None);
        let movers = [0, 1].map(|owner| {
            let count = Arc::clone(&count);
            thread::spawn(move || {
                for _ in 0..10_000 {
                    count.enter(Some(owner));
                    count.leave(Some(owner));
                }
            })
        });
        for _ in 0..10_000 {
            assert!(count.get() >= 1);
        }
        movers.into_iter().for_each(|mover| mover.join().unwrap());
        assert_eq!(count.get(), 1);
    }
}
