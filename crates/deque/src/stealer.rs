//! The thieves' side: steal one, steal half.

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
/// Any number of threads may use clones of it, or share one, at the same time, also the owner.
/// Taking needs no help from the owner.
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

impl<T> Stealer<T> {
    pub(crate) fn new(shared: Arc<Shared<T>>) -> Self {
        Self { shared }
    }

    /// Takes the oldest item. Never blocks, and does not try again when another thread was faster.
    ///
    /// O(1). Two loads when there is nothing; one CAS when something is exposed; otherwise two
    /// CASes and a heavy fence, which expose the rest to the thieves that follow.
    ///
    /// # Panics
    /// If the system allowed heavy fences at first and refuses them later: see "Platforms" in the
    /// crate's documentation. Then nothing is taken.
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

    /// The rest of [`steal`](Self::steal). It is apart, so that a look in vain stays small.
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

    /// Moves the oldest items into `dest`, of which the calling thread is the owner: half of them,
    /// rounded up, but at most `limit`, and no more than are exposed. Returns how many, at least
    /// one. They keep their order, so `dest` pops the youngest of them first.
    ///
    /// It returns `Empty` as well when `limit` is 0, and when `dest` is the owner of this same
    /// deque. Never blocks, and does not try again when another thread was faster.
    ///
    /// O(n) for n items, and growth of `dest`, amortised. It synchronises as much as one
    /// [`steal`](Self::steal).
    ///
    /// # Panics
    /// Where [`Worker::push`] does, when `dest` cannot grow, and where [`steal`](Self::steal) does.
    /// Then nothing is taken.
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

    /// As [`steal_half_into`](Self::steal_half_into), but returns the oldest of the items, which
    /// the thief can run at once, and moves the others into `dest`. `limit` counts all of them.
    ///
    /// O(n) for n items, and growth of `dest`, amortised. It synchronises as much as one
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

    /// The rest of the two above. It is apart, so that a look in vain stays small. The `kept`
    /// oldest items, at most one, do not go to `dest`: `result` copies them.
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
        // Room comes first: nothing may fail between the claim and the copy.
        let wanted = half(seen.len(bottom)).min(seen.claimable(bottom));
        let room = dest.reserve(wanted.min(limit).saturating_sub(kept));
        let guard = reclaim::pin();
        self.claim(&guard, seen, bottom, limit.min(room + kept))
            .map(|claimed| {
                let result = result(&claimed);
                let (first, count) = (claimed.first.wrapping_add(kept), claimed.count - kept);
                // SAFETY: the slots are this thief's: the owner does not write them before the
                // release. A claim has an item, and with those kept it is no larger than the room.
                unsafe { dest.fill(**claimed.ring, first, count) };
                self.shared.release(claimed.count);
                dest.publish(count);
                result
            })
    }

    /// How many items there are at this moment. It may be more than there ever were, if other
    /// threads steal and the owner pushes between the two loads. O(1).
    #[must_use]
    pub fn len(&self) -> usize {
        let (seen, bottom) = self.look();
        seen.len(bottom) as usize
    }

    /// Whether there are no items at this moment. O(1), two loads.
    ///
    /// An item that the owner pops at this moment may count as gone already. A thread that sleeps
    /// when this returns `true` has to announce its sleep, then make a full fence, then call this.
    /// The owner has to push, then make a full fence, then look for announcements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Which items there are at this moment: the number of the oldest, and how many there are.
    /// O(1), two loads.
    ///
    /// Items have consecutive numbers, in the order in which they are stolen; the next one after
    /// 2^32 - 1 is 0. The count may be too high, like that of [`len`](Self::len).
    ///
    /// The number of the oldest moves on when items are stolen, and for no other reason. So a
    /// second look tells how many have been stolen since the first, up to 2^32. An item that the
    /// owner pushes where it has popped one gets the same number. An item that the owner pops at
    /// this moment may count as gone already.
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

    /// The word, and a `bottom` that is not older. If nothing lies between them, the deque was
    /// empty when `bottom` was read, because `head` never moves back.
    #[inline]
    fn look(&self) -> (Snapshot, u32) {
        let seen = self.shared.word.load();
        (seen, self.shared.bottom())
    }

    /// A word and a `bottom` from which a thief can claim. Announces a claim if nothing is exposed,
    /// and looks again. `None` if another thread was faster.
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
        // at the word: the owner sees the announcement, or this thief's next load sees the store.
        // That holds for every thief that has seen the announcement, so no thief waits for another.
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
        // After the reads of the word and of `bottom`: the ring is not older than the items that
        // they delimit. Before the claim: the ring is not newer than the claim, so they are in it.
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
