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
/// Any number of threads may use clones of it, or share one, at the same time; the owner as well.
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

    /// Takes the oldest item. Does not block, and does not try again when another thread was
    /// faster.
    ///
    /// O(1). Two loads when there is nothing; one CAS when something is exposed; else two and a
    /// heavy fence, which also exposes the rest to the thieves that follow.
    ///
    /// # Panics
    /// If the system has allowed heavy fences and refuses them now: see the crate's "Platforms".
    /// Nothing is taken then.
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

    /// The rest of [`steal`](Self::steal): apart, so that looking in vain takes no more than that.
    #[inline(never)]
    fn steal_seen(&self, seen: Snapshot, bottom: u32) -> Steal<T> {
        let Some((seen, bottom)) = self.look_closer(seen, bottom) else {
            return Steal::Retry;
        };
        let guard = reclaim::pin();
        self.claim(&guard, seen, bottom, 1).map(|claimed| {
            // SAFETY: the slot is ours: the owner does not write it before it is released.
            let item = unsafe { claimed.ring.read(claimed.first) };
            self.shared.release(claimed.count);
            // SAFETY: it held an item, and the claim makes us the only one to take it.
            unsafe { item.assume_init() }
        })
    }

    /// Moves the oldest items into `dest`, of which the calling thread is the owner: half of them,
    /// rounded up, but at most `limit`, and no more than are exposed. Returns how many, at least
    /// one. They keep their order, so `dest` pops the youngest of them first.
    ///
    /// `Empty` as well when `limit` is 0, and when `dest` is the owner of this very deque. Does not
    /// block, and does not try again when another thread was faster.
    ///
    /// O(n) for n items, and amortised growth of `dest`; otherwise as [`steal`](Self::steal).
    ///
    /// # Panics
    /// As [`Worker::push`], when `dest` cannot grow; and as [`steal`](Self::steal). Nothing is taken
    /// then.
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
        self.steal_half_seen(seen, bottom, dest, limit)
    }

    /// The rest of [`steal_half_into`](Self::steal_half_into), as [`steal_seen`](Self::steal_seen).
    #[inline(never)]
    fn steal_half_seen(
        &self,
        seen: Snapshot,
        bottom: u32,
        dest: &Worker<T>,
        limit: usize,
    ) -> Steal<usize> {
        let Some((seen, bottom)) = self.look_closer(seen, bottom) else {
            return Steal::Retry;
        };
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        // Room first: nothing may fail between the claim and the copy.
        let wanted = half(seen.len(bottom)).min(seen.claimable(bottom));
        let room = dest.reserve(wanted.min(limit));
        let guard = reclaim::pin();
        self.claim(&guard, seen, bottom, limit.min(room))
            .map(|claimed| {
                // SAFETY: the slots are ours: the owner does not write them before they are
                // released. There is room, for no more was claimed.
                unsafe { dest.fill(**claimed.ring, claimed.first, claimed.count) };
                self.shared.release(claimed.count);
                dest.publish(claimed.count);
                claimed.count as usize
            })
    }

    /// How many items there were a moment ago; more than there ever were, if others steal and the owner pushes between
    /// the two loads. O(1).
    #[must_use]
    pub fn len(&self) -> usize {
        let (seen, bottom) = self.look();
        seen.len(bottom) as usize
    }

    /// Whether there were no items a moment ago. O(1), two loads.
    ///
    /// An item that the owner is popping at this moment may count as gone already. A thread that goes
    /// to sleep when this returns `true` must have announced its sleep before, with a full fence
    /// between; and whoever pushes must look for the announcement after the push, with a full fence
    /// between as well.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Which items there were a moment ago: the number of the oldest, and how many there were. Items have consecutive
    /// numbers, in the order in which they are stolen, and the next one after 2^32 - 1 is 0. The count may be too high,
    /// as that of [`len`](Self::len). O(1), two loads.
    ///
    /// The number of the oldest moves on when items are stolen, and for no other reason: so who looks again can tell
    /// how many have been, up to 2^32. An item that the owner pushes where it has popped one has that one's number,
    /// and one that it is popping at this moment may count as gone already.
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

    /// The word, and `bottom` not older than it. If that leaves nothing between them, the deque was
    /// empty when `bottom` was read, because `head` never moves back.
    #[inline]
    fn look(&self) -> (Snapshot, u32) {
        let seen = self.shared.word.load();
        (seen, self.shared.bottom())
    }

    /// The same, from which can be claimed: announces a claim if nothing is exposed, and looks again. None if another
    /// thread was faster.
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
        // at the word: either it sees the announcement, or the load below sees its store. That
        // holds for whoever has seen the announcement, so no thief waits for another.
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
        // After the word and `bottom` were read: the ring is not older than the items that they
        // delimit. Before the claim: it is not newer than it, so they are in it.
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
