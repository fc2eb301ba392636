//! The only module that touches the concurrent maps.
//!
//! **Problem.** A concurrent map gives out guards: a reference to a value holds a lock. Under a
//! guard, a call of a receiver, a tracing event or the drop of a value runs a user's code. When
//! that code comes back to the same map, it waits for ever.
//!
//! **Rejected.** A rule for the callers. Nothing checks it, and a `match` on a look-up holds a
//! guard without showing it.
//!
//! **Protocol.** No method returns a guard, or runs a user's code under one. A look-up returns a
//! clone of the value, which is cheap for an `Arc`. A value that is taken out or refused is
//! returned, so that it is dropped outside.

use dashmap::{DashMap, Entry};
use ganger_sync::CachePadded;
use ganger_sync::atomic::{AtomicUsize, Ordering};
use std::hash::Hash;

/// After so many removals the table looks whether it has grown too large for what it has.
const LOOK: usize = 256;

/// A concurrent map.
///
/// Each operation but [`keys`](Self::keys) is O(1), and holds the lock of one shard for a few
/// instructions. A removal is O(1) amortised: the table gives memory back when it fills less than a
/// quarter of its room, and looks at that after every [`LOOK`] removals.
pub(crate) struct Table<K, V> {
    map: DashMap<K, V>,
    /// Apart from the map's own words, which each look-up reads.
    removals: CachePadded<AtomicUsize>,
}

impl<K: Copy + Eq + Hash, V: Clone> Table<K, V> {
    pub(crate) fn new() -> Self {
        Self {
            map: DashMap::new(),
            removals: CachePadded::default(),
        }
    }

    /// A clone of the value.
    pub(crate) fn get(&self, key: K) -> Option<V> {
        self.map.get(&key).map(|value| V::clone(&value))
    }

    /// Adds a value, or gives it back when there is one already.
    pub(crate) fn insert(&self, key: K, value: V) -> Result<(), V> {
        match self.map.entry(key) {
            Entry::Occupied(_) => Err(value),
            Entry::Vacant(vacant) => {
                vacant.insert(value);
                Ok(())
            }
        }
    }

    /// Takes the value out.
    pub(crate) fn remove(&self, key: K) -> Option<V> {
        self.note_removal(self.map.remove(&key))
    }

    /// Takes the value out if `wanted` holds for it. `wanted` must not touch the table.
    pub(crate) fn remove_if(&self, key: K, wanted: impl FnOnce(&V) -> bool) -> Option<V> {
        self.note_removal(self.map.remove_if(&key, |_, value| wanted(value)))
    }

    fn note_removal(&self, removed: Option<(K, V)>) -> Option<V> {
        let (_, value) = removed?;
        // Ordering: Relaxed: a count.
        let before = self.removals.fetch_add(1, Ordering::Relaxed);
        if before % LOOK == LOOK - 1 && self.map.len() < self.map.capacity() / 4 {
            self.map.shrink_to_fit();
        }
        Some(value)
    }

    /// The keys, in no particular order. O(n). Each key that is present during the whole call is
    /// among them.
    pub(crate) fn keys(&self) -> Vec<K> {
        self.map.iter().map(|entry| *entry.key()).collect()
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_loses_almost_all_gives_their_memory_back() {
        const BURST: usize = 100_000;
        let table = Table::new();
        (0..BURST).for_each(|key| table.insert(key, ()).unwrap());
        let full = table.map.capacity();
        for key in 0..BURST {
            let removed = if key % 2 == 0 {
                table.remove(key)
            } else {
                table.remove_if(key, |()| true)
            };
            assert!(removed.is_some());
            if key < BURST / 2 {
                // A map counts some places of removed entries as none.
                assert!(table.map.capacity() > full / 2, "at {key}");
            }
        }
        assert!(table.map.capacity() < 4 * LOOK, "{}", table.map.capacity());
        assert!(table.remove(1).is_none());
    }
}
