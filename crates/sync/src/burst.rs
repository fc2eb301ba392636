//! Memory after a burst: a grown collection does not shrink by itself.
//!
//! **Rule.** Collections of one process, one worker, one channel or one lock shrink when they are
//! almost empty. The owner calls [`shrink_after_burst`] after it takes items out. Tables of a
//! scheduler shrink in `Handle::release_memory`. A small collection never shrinks.
//!
//! **Cost.** Before a collection shrinks, it has lost half of its capacity since it last grew or
//! shrank. So the moves are O(1) for each item taken out. (A hash table counts some of its free
//! places as full, so it shrinks a little later.)

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, Hash};

/// A collection that may have spare room.
#[allow(
    clippy::len_without_is_empty,
    reason = "a burst is about numbers alone"
)]
pub trait Roomy {
    /// Returns the number of items.
    fn len(&self) -> usize;
    /// Returns the number of items that fit without growing.
    fn capacity(&self) -> usize;
    /// Gives up the room beyond `capacity` items, but keeps all items.
    fn shrink_to(&mut self, capacity: usize);
}

/// Gives memory back if the collection fills less than a quarter of its room, and has room for more
/// than `kept` items. Leaves room for twice the present items. O(1) amortised.
// A call for each item costs more than the comparisons.
#[inline(always)]
pub fn shrink_after_burst(collection: &mut impl Roomy, kept: usize) {
    let (len, capacity) = (collection.len(), collection.capacity());
    if capacity > kept && len < capacity / 4 {
        shrink(collection, len);
    }
}

#[cold]
fn shrink(collection: &mut impl Roomy, len: usize) {
    collection.shrink_to(2 * len);
}

macro_rules! roomy {
    ($([$($of:tt)*] $collection:ty),+) => {$(
        impl<$($of)*> Roomy for $collection {
            fn len(&self) -> usize {
                self.len()
            }

            fn capacity(&self) -> usize {
                self.capacity()
            }

            fn shrink_to(&mut self, capacity: usize) {
                self.shrink_to(capacity);
            }
        }
    )+};
}

roomy!(
    [T] Vec<T>,
    [T] VecDeque<T>,
    [T: Eq + Hash, S: BuildHasher] HashSet<T, S>,
    [K: Eq + Hash, V, S: BuildHasher] HashMap<K, V, S>
);

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    const BURST: usize = 10_000;
    const KEPT: usize = 64;

    /// Checks that the collection has little room while it loses all its items.
    fn assert_shrinks<C: Roomy>(mut burst: C, mut take_one: impl FnMut(&mut C)) {
        while burst.len() > 0 {
            take_one(&mut burst);
            shrink_after_burst(&mut burst, KEPT);
            let most = KEPT.max(4 * burst.len() + 4);
            assert!(
                burst.capacity() <= most,
                "{} for {}",
                burst.capacity(),
                burst.len()
            );
        }
    }

    #[test]
    fn what_loses_its_items_has_room_for_four_times_the_rest() {
        let list: Vec<_> = (0..BURST).collect();
        assert_shrinks(list.clone(), |list| assert!(list.pop().is_some()));
        let queue: VecDeque<_> = list.iter().copied().collect();
        assert_shrinks(queue, |queue| assert!(queue.pop_front().is_some()));
        let set: HashSet<_> = list.iter().copied().collect();
        let mut rest = list.clone();
        assert_shrinks(set, |set| assert!(set.remove(&rest.pop().unwrap())));
        let map: HashMap<_, _> = list.iter().map(|&it| (it, ())).collect();
        let mut rest = list;
        assert_shrinks(map, |map| {
            assert_eq!(map.remove(&rest.pop().unwrap()), Some(()));
        });
    }

    #[test]
    fn what_is_small_or_a_quarter_full_keeps_its_room() {
        let mut small: Vec<u8> = Vec::with_capacity(KEPT);
        let before = small.capacity();
        shrink_after_burst(&mut small, before);
        assert_eq!(small.capacity(), before);
        let mut full: Vec<u8> = Vec::with_capacity(4 * KEPT);
        full.resize(full.capacity() / 4, 0);
        let before = full.capacity();
        shrink_after_burst(&mut full, KEPT);
        assert_eq!(full.capacity(), before);
    }
}
