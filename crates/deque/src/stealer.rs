//! The thieves' side: steal one item, steal half.

use crate::counts::{Event, count};
use crate::reclaim::{self, Guard};
use crate::ring::Ring;
use crate::shared::Shared;
use crate::steal::Steal;
use crate::word::{Announcement, Claim, Snapshot, half};
use crate::worker::Worker;
use ganger_sync::fence;
use ganger_sync::sync::Arc;
use std::fmt;

/// A thief's handle of a deque: takes the oldest items.
///
/// Any number of threads, also the owner, may use clones of it, or share it, at the same time. A
/// thief needs no help from the owner.
///
/// ```
/// use ganger_deque::{Steal, Worker};
///
/// let worker = Worker::new();
/// let stealer = worker.stealer();
/// for item in 0..3 {
///     worker.push(item);
/// }
/// let thief = std::thread::spawn(move || stealer.steal());
/// assert_eq!(thief.join().unwrap(), Steal::Success(0));
/// assert_eq!(worker.pop(), Some(2));
/// ```
pub struct Stealer<T> {
    shared: Arc<Shared<T>>,
}

/// Slots that this thread has claimed and not yet released.
struct Claimed<'g, T> {
    ring: &'g Ring<T>,
    first: u32,
    count: u32,
}

impl<T> Worker<T> {
    /// Returns a handle for thieves. O(1).
    #[must_use]
    pub fn stealer(&self) -> Stealer<T> {
        Stealer::new(Arc::clone(&self.shared))
    }
}

impl<T> Stealer<T> {
    pub(crate) fn new(shared: Arc<Shared<T>>) -> Self {
        Self { shared }
    }

    /// Takes the oldest item. Never blocks, and does not try again if another thread was faster.
    ///
    /// O(1). Two loads if the deque is empty; one CAS if an item is exposed; otherwise two CASes
    /// and a heavy fence, which expose the rest to later thieves.
    ///
    /// # Panics
    /// If the system allowed heavy fences at first and refuses them later: see "Platforms" in the
    /// crate's documentation. The deque is then unchanged.
    ///
    /// ```
    /// let worker = ganger_deque::Worker::new();
    /// worker.push("older");
    /// worker.push("newer");
    /// assert_eq!(worker.stealer().steal().success(), Some("older"));
    /// ```
    #[inline]
    pub fn steal(&self) -> Steal<T> {
        let (seen, bottom) = self.look();
        if seen.len(bottom) == 0 {
            return Steal::Empty;
        }
        self.steal_seen(seen, bottom)
    }

    /// Steals after the look of [`steal`](Self::steal), in its own function so that a look in vain
    /// stays small.
    #[inline(never)]
    fn steal_seen(&self, seen: Snapshot, bottom: u32) -> Steal<T> {
        let Some((seen, bottom)) = self.look_closer(seen, bottom) else {
            return Steal::Retry;
        };
        let guard = reclaim::pin();
        self.claim(&guard, seen, bottom, 1).map(|claimed| {
            // SAFETY: the slot is this thief's: the owner does not write it before the release.
            let item = unsafe { claimed.ring.read(claimed.first) };
            self.shared.release(claimed.count);
            // SAFETY: the slot held an item, and only the thief with the claim takes it.
            unsafe { item.assume_init() }
        })
    }

    /// Moves the oldest items into `dest`, whose owner is the calling thread: half of them, rounded
    /// up, but at most `limit`, and no more than are exposed. Returns how many, at least one. They
    /// keep their order, so `dest` pops the youngest of them first.
    ///
    /// Also returns `Empty` if `limit` is 0, or if `dest` is the owner of this same deque. Never
    /// blocks, and does not try again if another thread was faster.
    ///
    /// O(n) for n items, and growth of `dest`, amortised. Synchronises as much as one
    /// [`steal`](Self::steal).
    ///
    /// # Panics
    /// As [`Worker::push`], if `dest` cannot grow, and as [`steal`](Self::steal). The deque is then
    /// unchanged.
    ///
    /// ```
    /// use ganger_deque::{Steal, Worker};
    ///
    /// let (victim, dest) = (Worker::new(), Worker::new());
    /// for item in 0..5 {
    ///     victim.push(item);
    /// }
    /// assert_eq!(victim.stealer().steal_half_into(&dest, 16), Steal::Success(3));
    /// assert_eq!(dest.pop(), Some(2));
    /// assert_eq!(victim.len(), 2);
    /// ```
    #[inline]
    pub fn steal_half_into(&self, dest: &Worker<T>, limit: usize) -> Steal<usize> {
        let (seen, bottom) = self.look();
        if seen.len(bottom) == 0 || limit == 0 || dest.belongs_to(&self.shared) {
            return Steal::Empty;
        }
        let count = |claimed: &Claimed<'_, T>| claimed.count as usize;
        self.steal_half_seen(seen, bottom, dest, limit, 0, count)
    }

    /// Steals half, as [`steal_half_into`](Self::steal_half_into) does, but returns the oldest
    /// item, which the thief can run at once, and moves the other items into `dest`. `limit` counts
    /// all of them.
    ///
    /// O(n) for n items, and growth of `dest`, amortised. Synchronises as much as one
    /// [`steal`](Self::steal).
    ///
    /// # Panics
    /// As [`steal_half_into`](Self::steal_half_into).
    ///
    /// ```
    /// use ganger_deque::{Steal, Worker};
    ///
    /// let (victim, dest) = (Worker::new(), Worker::new());
    /// for item in 0..6 {
    ///     victim.push(item);
    /// }
    /// assert_eq!(victim.stealer().steal_half_and_pop(&dest, 16), Steal::Success(0));
    /// assert_eq!((dest.pop(), dest.pop(), dest.pop()), (Some(2), Some(1), None));
    /// assert_eq!(victim.len(), 3);
    /// ```
    #[inline]
    pub fn steal_half_and_pop(&self, dest: &Worker<T>, limit: usize) -> Steal<T> {
        let (seen, bottom) = self.look();
        if seen.len(bottom) == 0 || limit == 0 || dest.belongs_to(&self.shared) {
            return Steal::Empty;
        }
        // SAFETY: the slot is this thief's: the owner does not write it before the release.
        let oldest = |claimed: &Claimed<'_, T>| unsafe { claimed.ring.read(claimed.first) };
        let stolen = self.steal_half_seen(seen, bottom, dest, limit, 1, oldest);
        // SAFETY: the slot held an item, and only the thief with the claim takes it.
        stolen.map(|oldest| unsafe { oldest.assume_init() })
    }

    /// Steals after the look of [`steal_half_into`](Self::steal_half_into) or
    /// [`steal_half_and_pop`](Self::steal_half_and_pop), in its own function so that a look in vain
    /// stays small. The `kept` oldest items, at most one, do not go to `dest`: `result` copies
    /// them.
    #[inline(never)]
    fn steal_half_seen<R>(
        &self,
        seen: Snapshot,
        bottom: u32,
        dest: &Worker<T>,
        limit: usize,
        kept: u32,
        result: impl FnOnce(&Claimed<'_, T>) -> R,
    ) -> Steal<R> {
        let Some((seen, bottom)) = self.look_closer(seen, bottom) else {
            return Steal::Retry;
        };
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        // Room comes first: no step may fail between the claim and the copy.
        let wanted = half(seen.len(bottom)).min(seen.claimable(bottom));
        let room = dest.reserve(wanted.min(limit).saturating_sub(kept));
        let guard = reclaim::pin();
        self.claim(&guard, seen, bottom, limit.min(room + kept))
            .map(|claimed| {
                let result = result(&claimed);
                let (first, count) = (claimed.first.wrapping_add(kept), claimed.count - kept);
                // SAFETY: the slots are this thief's: the owner does not write them before the
                // release. A claim has an item, and without the kept items it is no larger than the
                // room.
                unsafe { dest.fill(**claimed.ring, first, count) };
                self.shared.release(claimed.count);
                dest.publish(count);
                result
            })
    }

    /// Returns the number of items at this moment. The number may be more than the deque ever had,
    /// if other threads steal and the owner pushes between the two loads. O(1).
    #[must_use]
    pub fn len(&self) -> usize {
        let (seen, bottom) = self.look();
        seen.len(bottom) as usize
    }

    /// Returns whether the deque has no items at this moment. O(1), two loads.
    ///
    /// An item that the owner pops at this moment may count as gone already. A thread that sleeps
    /// after `true` must announce its sleep, then make a full fence, then call this function. The
    /// owner must push, then make a full fence, then look for announcements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of the oldest item at this moment, and the count of items. O(1), two
    /// loads.
    ///
    /// Items have consecutive numbers, in the order in which they are stolen; 0 follows 2^32 - 1.
    /// The count may be too high, like the result of [`len`](Self::len).
    ///
    /// The number of the oldest item moves on only when items are stolen. So a second look tells
    /// how many have been stolen since the first, up to 2^32. An item pushed by the owner in place
    /// of a popped item gets the same number. An item that the owner pops at this moment may count
    /// as gone already.
    ///
    /// ```
    /// let worker = ganger_deque::Worker::new();
    /// let stealer = worker.stealer();
    /// worker.push('a');
    /// worker.push('b');
    /// let (oldest, count) = stealer.position();
    /// assert_eq!(count, 2);
    /// assert_eq!(stealer.steal().success(), Some('a'));
    /// assert_eq!(stealer.position(), (oldest.wrapping_add(1), 1));
    /// assert_eq!(worker.pop(), Some('b'));
    /// assert_eq!(stealer.position(), (oldest.wrapping_add(1), 0));
    /// ```
    #[must_use]
    pub fn position(&self) -> (u32, usize) {
        let (seen, bottom) = self.look();
        (seen.head(), seen.len(bottom) as usize)
    }

    /// Returns the word, and a `bottom` that is not older. If no item lies between them, the deque
    /// was empty when `bottom` was read, because `head` never moves back.
    #[inline]
    fn look(&self) -> (Snapshot, u32) {
        let seen = self.shared.word.load();
        (seen, self.shared.bottom())
    }

    /// Returns a word and a `bottom` from which a thief can claim. If no item is exposed, announces
    /// a claim and looks again. `None` if another thread was faster.
    fn look_closer(&self, seen: Snapshot, bottom: u32) -> Option<(Snapshot, u32)> {
        if seen.is_open() {
            return Some((seen, bottom));
        }
        let seen = if seen.tentative() {
            seen
        } else {
            match self.shared.word.announce(seen, bottom) {
                Announcement::Announced(announced) => announced,
                Announcement::Lost => return None,
            }
        };
        // Pairs with the light fence of the owner's pop between its store of `bottom` and its look
        // at the word: the owner sees the announcement, or this thread's next load sees the store.
        // This holds for every thief that has seen the announcement, so no thief waits for another.
        fence::heavy();
        count(Event::Fenced);
        Some((seen, self.shared.bottom()))
    }

    fn claim<'g>(
        &self,
        guard: &'g Guard,
        seen: Snapshot,
        bottom: u32,
        at_most: u32,
    ) -> Steal<Claimed<'g, T>> {
        // After the reads of the word and of `bottom`: the ring is not older than the items between
        // them. Before the claim: the ring is not newer than the claim, so it holds the items.
        let ring = self.shared.owner.buffer.load(guard);
        match self.shared.word.claim(seen, bottom, at_most) {
            Claim::Claimed { first, count } => Steal::Success(Claimed { ring, first, count }),
            Claim::Empty => Steal::Empty,
            Claim::Lost => Steal::Retry,
        }
    }
}

impl<T> Clone for Stealer<T> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.shared))
    }
}

impl<T> fmt::Debug for Stealer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stealer")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
