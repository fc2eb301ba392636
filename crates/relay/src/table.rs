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
use std::hash::Hash;

/// A concurrent map.
///
/// Each operation but [`keys`](Self::keys) is O(1), and holds the lock of one shard for a few
/// instructions.
pub(crate) struct Table<K, V> {
    map: DashMap<K, V>,
}

impl<K: Copy + Eq + Hash, V: Clone> Table<K, V> {
    pub(crate) fn new() -> Self {
        Self {
            map: DashMap::new(),
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
        self.map.remove(&key).map(|(_, value)| value)
    }

    /// Takes the value out if `wanted` holds for it. `wanted` must not touch the table.
    pub(crate) fn remove_if(&self, key: K, wanted: impl FnOnce(&V) -> bool) -> Option<V> {
        self.map
            .remove_if(&key, |_, value| wanted(value))
            .map(|(_, value)| value)
    }

    /// The keys, in no particular order. O(n). Each key that is present during the whole call is
    /// among them.
    pub(crate) fn keys(&self) -> Vec<K> {
        self.map.iter().map(|entry| *entry.key()).collect()
    }
}
