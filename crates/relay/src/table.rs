//! The one place that touches the maps.
//!
//! **Problem.** A concurrent map gives out guards: a reference to a value keeps a lock. Whoever
//! calls a receiver, emits a tracing event or drops a user's value while it holds one runs unknown
//! code under that lock, and code that comes back to the same map from there never returns.
//!
//! **Rejected.** A rule for the callers: nothing checks it, and a guard is easy to hold by accident
//! in the scrutinee of a `match`.
//!
//! **Protocol.** No method returns a guard, or runs code that it does not know while it holds one.
//! Values are cheap to clone (an `Arc`), and a look-up returns a clone; what is taken out or refused
//! is returned, so that it is dropped outside.

use dashmap::{DashMap, Entry};
use std::hash::Hash;

/// A concurrent map whose values come and go while it is in use.
///
/// Each operation is O(1), but for [`keys`](Self::keys), and holds the lock of one shard for a few
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

    /// Takes the value out if it is the `wanted` one, which must not touch the table.
    pub(crate) fn remove_if(&self, key: K, wanted: impl FnOnce(&V) -> bool) -> Option<V> {
        self.map
            .remove_if(&key, |_, value| wanted(value))
            .map(|(_, value)| value)
    }

    /// The keys, in no particular order. O(n); sees each key that is there all the time.
    pub(crate) fn keys(&self) -> Vec<K> {
        self.map.iter().map(|entry| *entry.key()).collect()
    }
}
