//! Counts that threads can wait for, until few enough are left.
//!
//! **Problem.** Many threads enter and leave, and a few threads wait until few are left. Counting
//! must stay cheap while no thread waits. And a single counter for all threads is a cache line that
//! moves from thread to thread.
//!
//! **Rejected.** A lock around the count: every enter and leave would take it.
//!
//! **Protocol of waiting.** A thread that *leaves* counts, makes a light fence, and then checks
//! whether a thread waits. A thread that *waits* announces its wait, makes a heavy fence, and then
//! reads the count, under the lock that the leaving thread takes before it signals. So either
//! thread sees the other, and no signal falls between a check of the count and the sleep after it.
//!
//! **Shards.** Each shard has two counters: of enters and of leaves. A member may enter at one
//! shard and leave at another. A reader sums all leaves, and then all enters. A leave comes after
//! its enter, so the sum of enters includes each member whose leave is counted.
//!
//! **Children.** A member may let another in, its *child*, until it closes; it closes before it
//! leaves. The child enters, makes a light fence, and then checks whether its parent has closed. A
//! waiting thread sums all leaves, makes a heavy fence, and then sums all enters. Proof sketch, for
//! none left: a member whose leave is counted has closed before the heavy fence. Its child has
//! either found its parent closed, and withdraws, or its enter is counted. So the counted enters
//! include the children of all members that have left. As both sums are equal, these children have
//! left, too; and so on down to the last. Rejected: the heavy fence in each check. Each leave wakes
//! a waiting thread, so it first checks without the fence.

use crate::atomic::{AtomicUsize, Ordering};
use crate::fence;
use crate::sync::{Condvar, Mutex, lock};
use crossbeam_utils::CachePadded;
use std::sync::PoisonError;
use std::time::Duration;

/// A count in a word. A change is a single read-modify-write, unless a thread waits.
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
    /// Adds one.
    pub fn enter(&self) {
        // Ordering: Relaxed: `leave` publishes the actions of the members.
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds one, unless the count is at `limit`: exact under any concurrency.
    #[must_use]
    pub fn enter_below(&self, limit: usize) -> bool {
        let add_one = |count: usize| (count < limit).then_some(count + 1);
        // Ordering: Acquire pairs with the Release in `leave`: a thread that takes a place sees the
        // actions of the member that has left it. Relaxed on failure, without a place.
        self.count
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, add_one)
            .is_ok()
    }

    /// Subtracts one, and signals the waiting threads.
    pub fn leave(&self) {
        // Ordering: Release pairs with the Acquire in `get` and `enter_below`.
        self.count.fetch_sub(1, Ordering::Release);
        self.waiters.note_change();
    }

    /// Returns the count. A thread that sees a member leave sees its earlier actions.
    #[must_use]
    pub fn get(&self) -> usize {
        // Ordering: Acquire pairs with the Release in `leave`.
        self.count.load(Ordering::Acquire)
    }

    /// Makes the waiting threads check their target and time again.
    pub fn poke(&self) {
        self.waiters.poke();
    }

    /// Blocks until at most `target` are left, or no time remains. Returns whether the target is
    /// reached.
    ///
    /// Both may change meanwhile, before a [`poke`](Self::poke).
    pub fn wait(&self, target: impl Fn() -> usize, remaining: impl Fn() -> Duration) -> bool {
        self.waiters.wait(|| self.get() <= target(), remaining)
    }
}

/// A count in several shards: each belongs to a single thread, and the last to all other threads. A
/// change on a thread with a shard takes no read-modify-write.
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
    /// The shards of single threads, and last the shard of all other threads.
    shards: Box<[CachePadded<Shard>]>,
    waiters: Waiters,
}

/// Written by the owning thread, read by counting or waiting threads.
#[derive(Debug, Default)]
struct Shard {
    entered: AtomicUsize,
    left: AtomicUsize,
}

impl ShardedCount {
    /// Creates a count with `owners` shards of single threads, and the shared shard.
    #[must_use]
    pub fn new(owners: usize) -> Self {
        Self {
            shards: (0..=owners).map(|_| CachePadded::default()).collect(),
            waiters: Waiters::default(),
        }
    }

    /// Returns how many have entered and not left. The result may include members that entered or
    /// left just before. A thread that sees a member leave sees its earlier actions. O(shards).
    #[must_use]
    pub fn get(&self) -> usize {
        self.count(|| {})
    }

    /// Counts, as [`get`](Self::get) does, and includes each child of a member whose leave it sees.
    fn get_with_children(&self) -> usize {
        // Pairs with the light fence in `enter`: a child enters, then checks whether its parent has
        // closed; a parent closes and is seen to leave, then this thread reads the enters. Either
        // thread sees the other.
        self.count(fence::heavy)
    }

    fn count(&self, between: impl FnOnce()) -> usize {
        // Ordering: Acquire pairs with the Release in `add_one`: a member that is seen to have left
        // has entered before.
        let left = self.sum(|shard| shard.left.load(Ordering::Acquire));
        between();
        // Ordering: Relaxed, because the loads above order these loads.
        let entered = self.sum(|shard| shard.entered.load(Ordering::Relaxed));
        entered.wrapping_sub(left)
    }

    fn sum(&self, read: impl Fn(&Shard) -> usize) -> usize {
        let counts = self.shards.iter().map(|shard| read(shard));
        counts.fold(0, usize::wrapping_add)
    }

    /// Adds one, on the thread that owns the shard `owner`, or on a thread without a shard. For a
    /// thread that makes a heavy fence between a store and [`get`](Self::get), the caller's loads
    /// after `enter` come after the enter. So [`wait`](Self::wait) counts each child that finds its
    /// parent open, as the parent closes before it leaves.
    pub fn enter(&self, owner: Option<usize>) {
        add_one(&self.shard(owner).entered, owner.is_some());
        fence::light();
    }

    /// Subtracts one, on the thread that owns the shard `owner`, or on a thread without a shard;
    /// and signals the waiting threads.
    pub fn leave(&self, owner: Option<usize>) {
        add_one(&self.shard(owner).left, owner.is_some());
        self.waiters.note_change();
    }

    /// Makes the waiting threads check their target and time again.
    pub fn poke(&self) {
        self.waiters.poke();
    }

    /// Blocks until at most `target` are left, or no time remains. Returns whether the target is
    /// reached.
    ///
    /// Both may change meanwhile, before a [`poke`](Self::poke). A member may let in a child: see
    /// [`enter`](Self::enter).
    pub fn wait(&self, target: impl Fn() -> usize, remaining: impl Fn() -> Duration) -> bool {
        let is_reached = || self.get() <= target() && self.get_with_children() <= target();
        self.waiters.wait(is_reached, remaining)
    }

    fn shard(&self, owner: Option<usize>) -> &Shard {
        let others = self.shards.len() - 1;
        &self.shards[owner.unwrap_or(others)]
    }
}

/// Adds one; without a read-modify-write if no other thread writes the counter.
fn add_one(counter: &AtomicUsize, is_own: bool) {
    if is_own {
        // Ordering: Relaxed: this thread wrote it.
        let next = counter.load(Ordering::Relaxed).wrapping_add(1);
        // Ordering: Release pairs with the Acquire in `count`.
        counter.store(next, Ordering::Release);
    } else {
        // Ordering: Release pairs with the Acquire in `count`, through the additions of other
        // threads.
        counter.fetch_add(1, Ordering::Release);
    }
}

/// The waiting threads of a count.
#[derive(Debug, Default)]
struct Waiters {
    waiting: AtomicUsize,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Waiters {
    /// Signals the waiting threads, if any. The caller has changed the count.
    #[inline]
    fn note_change(&self) {
        fence::light();
        // Ordering: Relaxed: the fence pairs with the heavy fence in `wait`.
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
        // Ordering: Relaxed: the fence below pairs with the light fence in `note_change`.
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
        // Ordering: Relaxed: a needless signal does no harm.
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

    /// Counts while others enter and leave: a member that stays is always counted.
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
