//! The only module that touches the concurrent maps.
//!
//! **Problem.** A concurrent map gives out guards: a reference to a value holds a lock. Under a
//! guard, a call of a receiver, a tracing event or the drop of a value runs a user's code. User
//! code that comes back to the same map waits for ever.
//!
//! **Rejected.** A rule for the callers. No tool checks it, and a `match` on a look-up holds a
//! guard without showing it.
//!
//! **Protocol.** No method returns a guard, or runs a user's code under a guard. A look-up returns
//! a clone of the value, which is cheap for an `Arc`. A removed or refused value is returned, so
//! the caller drops it without a lock.

use dashmap::{DashMap, Entry};
use ganger_sync::CachePadded;
use ganger_sync::atomic::{AtomicUsize, Ordering};
use std::hash::Hash;

/// After this many removals the table checks whether it has grown too large for its entries.
const LOOK: usize = 256;

/// A concurrent map.
///
/// Each operation but [`keys`](Self::keys) is O(1), and holds the lock of one shard for a few
/// instructions. A removal is O(1) amortised: after every [`LOOK`] removals, the table gives memory
/// back if its entries fill less than a quarter of its room.
pub(crate) struct Table<K, V> {
    map: DashMap<K, V>,
    /// Separate from the map's own words, which each look-up reads.
    removals: CachePadded<AtomicUsize>,
}

impl<K: Copy + Eq + Hash, V: Clone> Table<K, V> {
    pub(crate) fn new() -> Self {
        Self {
            map: DashMap::new(),
            removals: CachePadded::default(),
        }
    }

    /// Returns a clone of the value.
    pub(crate) fn get(&self, key: K) -> Option<V> {
        self.map.get(&key).map(|value| V::clone(&value))
    }

    /// Adds a value, or returns it if the key already has a value.
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

    /// Takes the value out if `wanted` returns true for it. `wanted` must not touch the table.
    pub(crate) fn remove_if(&self, key: K, wanted: impl FnOnce(&V) -> bool) -> Option<V> {
        self.note_removal(self.map.remove_if(&key, |_, value| wanted(value)))
    }

    fn note_removal(&self, removed: Option<(K, V)>) -> Option<V> {
        let (_, value) = removed?;
        // Ordering: Relaxed: only a count.
        let before = self.removals.fetch_add(1, Ordering::Relaxed);
        if before % LOOK == LOOK - 1 && self.map.len() < self.map.capacity() / 4 {
            self.map.shrink_to_fit();
        }
        Some(value)
    }

    /// Returns the keys, in no particular order. O(n). Includes each key that is present during the
    /// whole call.
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
                // The map's capacity leaves out some places of removed entries.
                assert!(table.map.capacity() > full / 2, "at {key}");
            }
        }
        assert!(table.map.capacity() < 4 * LOOK, "{}", table.map.capacity());
        assert!(table.remove(1).is_none());
    }
}
