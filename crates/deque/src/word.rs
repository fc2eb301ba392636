//! The word: tells which items thieves may claim.
//!
//! **Problem.** The owner must be able to take items without an atomic read-modify-write, and a
//! thief must be able to take many with one. So both agree beforehand where the owner's part
//! begins, and a thief's CAS compares the agreement as well.
//!
//! **Rejected.** `head` alone in the word, as in Chase and Lev's deque: a CAS that moves it by more
//! than one succeeds although the owner has popped into the range. Two words: a claim may rest on
//! an outdated word.
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 0..32 | `head` | index of the oldest item that no thief has claimed |
//! | 32..47 | `exposed` | how many items from `head` on thieves may claim |
//! | 47 | `tentative` | `exposed` rests on a `bottom` that may be out of date |
//! | 48..64 | `version` | makes a word that looks like an earlier one differ from it |
//!
//! The *limit* is `head + exposed`: the items from the limit to `bottom` are the owner's own.
//!
//! | `exposed` | `tentative` | a thief | the owner, below the limit | written by |
//! |---|---|---|---|---|
//! | 0 | no | announces first | has nothing there | owner, thief |
//! | n | no | claims up to n by one CAS | takes back first | owner, thief |
//! | n | yes | fences, reads `bottom` again, then claims and settles | takes back first | thief |
//! | 0 | yes | does not occur | does not occur | - |
//!
//! `head` moves only when a thief claims, and only forwards. While `head` stands still, the word
//! changes when a thief announces and when the owner takes back or exposes. Each of these changes
//! increments `version`. All numbers wrap: indices are compared by their difference.
//!
//! **Remaining ABA.** A thief that is suspended between its last look and its CAS may find a word
//! that only looks the same, after exactly a multiple of 2^32 steals, or of 2^16 changes without a
//! steal. A claim on settled items then still takes exposed items, and goes wrong only if the owner
//! has replaced its ring as well. A claim on a tentative word goes wrong if another thief has
//! announced a claim at exactly this moment and not yet made it.

use crate::counts::{Event, count};
use ganger_sync::atomic::{AtomicU64, Ordering};
use std::fmt;

/// The largest number of exposed items. A claim takes no more.
pub(crate) const MAX_EXPOSED: u32 = (1 << 15) - 1;

/// Where indices start: so close to the wrap that every test crosses it.
pub(crate) const FIRST_INDEX: u32 = 0_u32.wrapping_sub(2);

const FIRST_VERSION: u16 = u16::MAX;

const EXPOSED_SHIFT: u32 = 32;
const TENTATIVE: u64 = 1 << 47;
const VERSION_SHIFT: u32 = 48;

/// The cell. Only a CAS from a [`Snapshot`] seen by the caller changes it.
pub(crate) struct Word(AtomicU64);

/// A value that the word had at some time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Snapshot(u64);

/// The result of [`Word::announce`].
#[must_use]
pub(crate) enum Announcement {
    /// The new word; the caller must make a heavy fence and read `bottom` again before it claims.
    Announced(Snapshot),
    /// The word has changed since it was seen.
    Lost,
}

/// The result of [`Word::claim`].
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The `count` items from `first` on are the caller's. The caller must copy them out, and then
    /// add `count` to `released`.
    Claimed { first: u32, count: u32 },
    /// `bottom` leaves no item to claim.
    Empty,
    /// The word has changed since it was seen.
    Lost,
}

/// The result of [`Word::take_back`].
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TakeBack {
    /// The item is the owner's.
    Owned,
    /// A thief has claimed the item, and with it all older items: the deque is empty. The owner's
    /// next item goes to the same index, or above.
    Stolen,
}

impl Word {
    pub(crate) fn new() -> Self {
        let first = Snapshot::new(FIRST_INDEX, 0, false, FIRST_VERSION);
        Self(AtomicU64::new(first.0))
    }

    #[inline]
    pub(crate) fn load(&self) -> Snapshot {
        // Ordering: Acquire pairs with the Release CAS in `change`. A thief sees the exposed items,
        // and the ring that holds them. The owner sees a thief's actions before a claim that leaves
        // the owner no item.
        Snapshot(self.0.load(Ordering::Acquire))
    }

    /// Announces a claim while no item is exposed. For thieves. An owner that sees the announcement
    /// takes back before it pops any item below `bottom`.
    pub(crate) fn announce(&self, seen: Snapshot, bottom: u32) -> Announcement {
        debug_assert!(seen.exposed() == 0 && !seen.tentative());
        let exposed = seen.len(bottom).min(MAX_EXPOSED);
        debug_assert!(exposed > 0);
        let next = Snapshot::new(seen.head(), exposed, true, seen.next_version());
        match self.change(seen, next) {
            Ok(()) => Announcement::Announced(next),
            Err(_) => Announcement::Lost,
        }
    }

    /// Claims half of the items below `bottom`, rounded up, but no more than are exposed, and no
    /// more than `at_most`. For thieves. Leaves the other exposed items to other thieves, settled.
    ///
    /// If `seen` is tentative, the caller must have read `bottom` after a heavy fence after `seen`.
    pub(crate) fn claim(&self, seen: Snapshot, bottom: u32, at_most: u32) -> Claim {
        let claimable = seen.claimable(bottom);
        let count = half(seen.len(bottom)).min(claimable).min(at_most);
        if count == 0 {
            return Claim::Empty;
        }
        let first = seen.head();
        let next = Snapshot::new(
            first.wrapping_add(count),
            claimable - count,
            false,
            seen.version(),
        );
        match self.change(seen, next) {
            Ok(()) => Claim::Claimed { first, count },
            Err(_) => Claim::Lost,
        }
    }

    /// Takes the item at `index`, the newest, out of the reach of thieves. Leaves thieves half of
    /// the older items, so that emptying a deque of n exposed items takes O(log n) CASes. For the
    /// owner, with `bottom` already at `index`.
    pub(crate) fn take_back(&self, mut seen: Snapshot, index: u32) -> TakeBack {
        loop {
            if seen.is_private(index) {
                return TakeBack::Owned;
            }
            if seen.has_passed(index) {
                return TakeBack::Stolen;
            }
            let exposed = (seen.len(index) / 2).min(MAX_EXPOSED);
            let next = Snapshot::new(seen.head(), exposed, false, seen.next_version());
            match self.change(seen, next) {
                Ok(()) => return TakeBack::Owned,
                Err(now) => seen = now,
            }
        }
    }

    /// Lets thieves claim everything below `bottom`, up to [`MAX_EXPOSED`]. For the owner.
    pub(crate) fn expose(&self, bottom: u32) {
        let mut seen = self.load();
        loop {
            let exposed = seen.len(bottom).min(MAX_EXPOSED);
            if exposed == seen.exposed() && !seen.tentative() {
                return;
            }
            let next = Snapshot::new(seen.head(), exposed, false, seen.next_version());
            match self.change(seen, next) {
                Ok(()) => return,
                Err(now) => seen = now,
            }
        }
    }

    fn change(&self, seen: Snapshot, next: Snapshot) -> Result<(), Snapshot> {
        debug_assert!(!next.tentative() || next.exposed() > 0);
        // Ordering: Release publishes the items exposed by `next` to a thread that acquires the
        // word: the owner's own items, or items that a thief acquired with `bottom`. Acquire pairs
        // with this Release, on success and on failure. Every change is a RMW, so everything
        // published by an earlier change stays published. Nothing else publishes the items: a light
        // fence does not, and a thief may read a `bottom` that is older than they are.
        let result = self
            .0
            .compare_exchange(seen.0, next.0, Ordering::AcqRel, Ordering::Acquire);
        count(match result {
            Ok(_) => Event::Changed,
            Err(_) => Event::Failed,
        });
        result.map(|_| ()).map_err(Snapshot)
    }
}

impl Snapshot {
    /// A value that the word never has.
    pub(crate) const IMPOSSIBLE: Self = Self(TENTATIVE);

    fn new(head: u32, exposed: u32, tentative: bool, version: u16) -> Self {
        debug_assert!(exposed <= MAX_EXPOSED);
        let tentative = if tentative { TENTATIVE } else { 0 };
        Self(
            u64::from(head)
                | u64::from(exposed) << EXPOSED_SHIFT
                | tentative
                | u64::from(version) << VERSION_SHIFT,
        )
    }

    /// Returns the index of the oldest item that no thief has claimed.
    #[inline]
    pub(crate) fn head(self) -> u32 {
        (self.0 & 0xFFFF_FFFF) as u32
    }

    /// Returns how many items lie between `head` and `bottom`. A `bottom` below `head`, left by an
    /// owner that has found its deque empty, counts as none.
    #[inline]
    pub(crate) fn len(self, bottom: u32) -> u32 {
        self.distance(bottom).max(0).cast_unsigned()
    }

    /// Returns the index at which the owner's part begins.
    pub(crate) fn limit(self) -> u32 {
        self.head().wrapping_add(self.exposed())
    }

    /// Returns whether `index` is at or above the limit.
    #[inline]
    pub(crate) fn is_private(self, index: u32) -> bool {
        self.distance(index) >= self.exposed().cast_signed()
    }

    /// Returns whether a thief can claim by one CAS, without an announcement or a fence.
    pub(crate) fn is_open(self) -> bool {
        self.exposed() > 0 && !self.tentative()
    }

    pub(crate) fn tentative(self) -> bool {
        self.0 & TENTATIVE != 0
    }

    fn exposed(self) -> u32 {
        (self.0 >> EXPOSED_SHIFT & 0x7FFF) as u32
    }

    fn version(self) -> u16 {
        (self.0 >> VERSION_SHIFT & 0xFFFF) as u16
    }

    fn next_version(self) -> u16 {
        self.version().wrapping_add(1)
    }

    /// Returns how many items are exposed, given a `bottom` that was read after `self`. The exposed
    /// items of a settled word exist with any `bottom`.
    pub(crate) fn claimable(self, bottom: u32) -> u32 {
        if self.tentative() {
            self.exposed().min(self.len(bottom))
        } else {
            self.exposed()
        }
    }

    /// Returns whether a thief has claimed the item at `index`.
    fn has_passed(self, index: u32) -> bool {
        self.distance(index) < 0
    }

    #[inline]
    fn distance(self, index: u32) -> i32 {
        index.wrapping_sub(self.head()).cast_signed()
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Word")
            .field("head", &self.head())
            .field("exposed", &self.exposed())
            .field("tentative", &self.tentative())
            .field("version", &self.version())
            .finish()
    }
}

/// Returns half, rounded up.
pub(crate) fn half(count: u32) -> u32 {
    count.div_ceil(2)
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    /// Returns a word with `exposed` items below `FIRST_INDEX + exposed`.
    fn exposing(exposed: u32) -> Word {
        let word = Word::new();
        word.expose(at(exposed));
        word
    }

    fn at(offset: u32) -> u32 {
        FIRST_INDEX.wrapping_add(offset)
    }

    #[test]
    fn the_fields_do_not_overlap() {
        let word = Snapshot::new(u32::MAX, 0, false, 0);
        assert_eq!((word.exposed(), word.version()), (0, 0));
        let word = Snapshot::new(0, MAX_EXPOSED, true, 0);
        assert_eq!((word.head(), word.version()), (0, 0));
        assert_eq!((word.exposed(), word.tentative()), (MAX_EXPOSED, true));
        let word = Snapshot::new(0, 0, false, u16::MAX);
        assert_eq!((word.head(), word.exposed()), (0, 0));
        assert!(!word.tentative());
        assert_eq!(word.next_version(), 0);
    }

    #[test]
    fn no_more_is_exposed_than_the_field_holds() {
        let word = exposing(100_000);
        assert_eq!(word.load().exposed(), MAX_EXPOSED);
        assert!(!word.load().is_private(at(MAX_EXPOSED - 1)));
        assert!(word.load().is_private(at(MAX_EXPOSED)));
        // Taking back from a huge deque stays within the field as well.
        let word = exposing(100_000);
        assert_eq!(word.take_back(word.load(), at(100)), TakeBack::Owned);
        assert_eq!(word.load().exposed(), 50);
    }

    #[test]
    fn an_owner_that_takes_everything_back_needs_few_changes() {
        let word = exposing(1_000);
        let first = word.load().version();
        for index in (0..1_000).rev() {
            assert_eq!(word.take_back(word.load(), at(index)), TakeBack::Owned);
        }
        assert!(word.load().version().wrapping_sub(first) <= 11);
        assert_eq!(
            word.take_back(word.load(), at(0).wrapping_sub(1)),
            TakeBack::Stolen
        );
    }

    #[test]
    fn a_claim_is_bounded_by_half_by_what_is_exposed_and_by_its_limit() {
        let first = FIRST_INDEX;
        for (exposed, bottom, at_most, count) in [
            (5, 5, 9, 3),
            (5, 5, 2, 2),
            (1, 9, 9, 1),
            (3, 4, 9, 2),
            (1, 1, 9, 1),
        ] {
            let word = exposing(exposed);
            let claim = word.claim(word.load(), at(bottom), at_most);
            assert_eq!(claim, Claim::Claimed { first, count });
            assert_eq!(word.load().head(), at(count));
            assert_eq!(word.load().exposed(), exposed - count);
        }
        let word = exposing(1);
        assert_eq!(word.claim(word.load(), at(0), 1), Claim::Empty);
    }

    #[test]
    fn a_tentative_claim_is_bounded_by_what_bottom_has_become() {
        let word = Word::new();
        let Announcement::Announced(seen) = word.announce(word.load(), at(8)) else {
            panic!("no other thread changes the word");
        };
        assert!(!seen.is_open() && !seen.is_private(at(7)));
        let (first, count) = (FIRST_INDEX, 2);
        let claim = word.claim(seen, at(3), 9);
        assert_eq!(claim, Claim::Claimed { first, count });
        assert_eq!(word.load().exposed(), 1);
        assert!(word.load().is_open());
        assert_eq!(word.claim(seen, at(3), 9), Claim::Lost);
    }

    #[test]
    fn what_the_owner_leaves_of_an_announcement_is_settled() {
        let word = Word::new();
        let Announcement::Announced(seen) = word.announce(word.load(), at(8)) else {
            panic!("no other thread changes the word");
        };
        assert_eq!(word.take_back(seen, at(4)), TakeBack::Owned);
        assert!(word.load().is_open());
        assert_eq!(word.load().exposed(), 2);
        assert_eq!(word.claim(seen, at(4), 9), Claim::Lost);
    }

    /// Pops an item before the owner sees its announcement; the owner then exposes no item, because
    /// the deque is empty. The next announcement of one item differs from the first.
    #[test]
    fn a_word_that_was_announced_and_exposed_empty_differs() {
        let word = Word::new();
        let announce = || match word.announce(word.load(), at(1)) {
            Announcement::Announced(seen) => seen,
            Announcement::Lost => panic!("no other thread changes the word"),
        };
        let seen = announce();
        word.expose(at(0));
        assert_ne!(announce(), seen);
        assert_eq!(word.claim(seen, at(1), 1), Claim::Lost);
    }

    #[test]
    fn exposing_settles_an_announcement() {
        let word = Word::new();
        let announcement = word.announce(word.load(), at(8));
        assert!(matches!(announcement, Announcement::Announced(_)));
        word.expose(at(8));
        assert_eq!(word.load().exposed(), 8);
        assert!(word.load().is_open());
    }

    #[test]
    fn a_word_that_was_taken_back_and_exposed_again_differs() {
        let word = exposing(1);
        let seen = word.load();
        assert_eq!(word.take_back(seen, at(0)), TakeBack::Owned);
        word.expose(at(1));
        assert_ne!(word.load(), seen);
        assert_eq!(word.claim(seen, at(1), 1), Claim::Lost);
    }
}
