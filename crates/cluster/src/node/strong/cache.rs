//! The names and locks of the cluster, as the watch of a node tells.

use crate::store::{Entry, Revision, StoreChange};
use std::collections::{BTreeMap, HashMap};

/// All keys of strong names and locks begin so. `strong/epoch/` is left for processes by key.
pub(crate) const ALL: &str = "strong/";

/// The name follows.
pub(crate) const NAMES: &str = "strong/name/";

/// The nonce of the claim, a slash and the name follow.
pub(crate) const LOCKS: &str = "strong/lock/";

/// The entry of a name.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    pub(crate) value: Vec<u8>,
    pub(crate) revision: Revision,
}

#[derive(Default)]
pub(crate) struct Cache {
    entries: HashMap<Box<str>, Named>,
    /// The claims of each lock, in their order.
    lines: HashMap<Box<str>, BTreeMap<Revision, Box<str>>>,
    /// The entries of names.
    names: usize,
    /// All is known up to this revision. `None`: the store is out of reach.
    revision: Option<Revision>,
}

impl Cache {
    pub(crate) fn changed(&mut self, change: StoreChange) {
        match change {
            StoreChange::Snapshot { entries, revision } => {
                self.entries.clear();
                self.lines.clear();
                self.names = 0;
                self.revision = Some(revision);
                entries.into_iter().for_each(|entry| self.put(entry));
            }
            StoreChange::Put(entry) => {
                self.revision = self.revision.map(|it| it.max(entry.revision));
                self.take(&entry.key);
                self.put(entry);
            }
            StoreChange::Gone { key, revision } => {
                self.revision = self.revision.map(|it| it.max(revision));
                self.take(&key);
            }
            StoreChange::Lost => self.revision = None,
        }
    }

    fn put(&mut self, entry: Entry) {
        if let Some(name) = lock_of(&entry.key) {
            let line = self.lines.entry(name.into()).or_default();
            line.insert(entry.revision, entry.key.clone());
        }
        let named = Named {
            value: entry.value,
            revision: entry.revision,
        };
        let is_name = entry.key.starts_with(NAMES);
        let before = self.entries.insert(entry.key, named);
        self.names += usize::from(is_name && before.is_none());
    }

    fn take(&mut self, key: &str) {
        let Some(named) = self.entries.remove(key) else {
            return;
        };
        self.names -= usize::from(key.starts_with(NAMES));
        if let Some(name) = lock_of(key)
            && let Some(line) = self.lines.get_mut(name)
        {
            line.remove(&named.revision);
            if line.is_empty() {
                self.lines.remove(name);
            }
        }
    }

    pub(crate) fn is_known(&self) -> bool {
        self.revision.is_some()
    }

    /// Returns the entry of a name.
    pub(crate) fn get(&self, key: &str) -> Option<&Named> {
        self.entries.get(key)
    }

    /// Returns the number of names with entries.
    pub(crate) fn names(&self) -> usize {
        self.names
    }

    /// Returns the first names, in the order of their texts. O(entries × log most).
    pub(crate) fn first_names(&self, most: usize) -> Vec<(Box<str>, Named)> {
        let mut first = BTreeMap::new();
        for (key, named) in &self.entries {
            let Some(name) = key.strip_prefix(NAMES) else {
                continue;
            };
            first.insert(name, named);
            if first.len() > most {
                first.pop_last();
            }
        }
        let first = first.into_iter();
        first
            .map(|(name, named)| (name.into(), named.clone()))
            .collect()
    }

    /// Returns whether the entry existed, and exists no more.
    pub(crate) fn is_gone(&self, key: &str, revision: Revision) -> bool {
        let is_there = || {
            self.entries
                .get(key)
                .is_some_and(|it| it.revision == revision)
        };
        self.revision.is_some_and(|known| known >= revision) && !is_there()
    }

    /// Returns whether no earlier claim of the same lock is left.
    pub(crate) fn is_first(&self, key: &str, revision: Revision) -> bool {
        let line = lock_of(key).and_then(|name| self.lines.get(name));
        let first = line.and_then(BTreeMap::first_key_value);
        self.is_known() && first.is_some_and(|(it, of)| *it == revision && **of == *key)
    }
}

/// Returns the lock of a claim's key.
fn lock_of(key: &str) -> Option<&str> {
    key.strip_prefix(LOCKS)?
        .split_once('/')
        .map(|(_, name)| name)
}
