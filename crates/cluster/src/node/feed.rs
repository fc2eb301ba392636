//! Entries of a single writer, told to many readers, each at its own pace.
//!
//! **Problem.** A node tells all peers of its entries. A peer that connects needs all of them, and
//! a peer with a full lane must not have changes pile up.
//!
//! **Rejected.** A queue of changes for each peer: it grows with the changes, not with the entries.
//! A set of changed entries for each peer: at the begin of a session it is a copy of all keys.
//!
//! **Protocol.** Each change gives its entry the next version. A reader has a cursor: the version
//! up to which it was told. It takes the entry with the next higher version, as it is by then. So
//! an entry that changes while a reader waits is told once, with its latest value.
//!
//! A removed entry is kept as a tombstone as long as a reader may have been told of the entry and
//! not of the removal. So the tombstones are at most as many as the entries that a reader knows.
//!
//! **Proof sketch.** An entry's version is above the cursor of each reader that does not know its
//! present value, and a cursor grows past a version by telling its entry alone.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// The entries of a writer, and how far each reader is.
#[derive(Debug)]
pub(crate) struct Feed<R, K, V> {
    entries: HashMap<K, Entry<V>>,
    by_version: BTreeMap<u64, K>,
    last: u64,
    tombstones: usize,
    readers: BTreeMap<R, u64>,
}

#[derive(Debug)]
struct Entry<V> {
    /// None in a tombstone.
    value: Option<V>,
    version: u64,
    /// The version in which the entry came.
    created: u64,
}

impl<V> Entry<V> {
    /// Returns whether a reader with this cursor may know the entry.
    fn is_known_at(&self, cursor: u64) -> bool {
        self.created <= cursor
    }

    /// Returns whether a reader with this cursor needs the tombstone.
    fn is_needed_at(&self, cursor: u64) -> bool {
        self.is_known_at(cursor) && cursor < self.version
    }
}

impl<R, K, V> Default for Feed<R, K, V> {
    fn default() -> Self {
        Self {
            entries: HashMap::new(),
            by_version: BTreeMap::new(),
            last: 0,
            tombstones: 0,
            readers: BTreeMap::new(),
        }
    }
}

impl<R: Ord + Copy, K: Hash + Eq + Clone, V: Clone + PartialEq> Feed<R, K, V> {
    /// Returns the value of an entry.
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key)?.value.as_ref()
    }

    /// Gives an entry a value, or removes the entry. O(log n), and O(readers) for a removal.
    pub(crate) fn set(&mut self, key: K, value: Option<V>) {
        let Some(entry) = self.entries.get_mut(&key) else {
            if value.is_some() {
                self.last += 1;
                let (version, created) = (self.last, self.last);
                self.by_version.insert(version, key.clone());
                self.entries.insert(
                    key,
                    Entry {
                        value,
                        version,
                        created,
                    },
                );
            }
            return;
        };
        if entry.value == value {
            return;
        }
        self.by_version.remove(&entry.version);
        self.tombstones -= usize::from(entry.value.is_none());
        self.tombstones += usize::from(value.is_none());
        entry.value = value;
        self.last += 1;
        entry.version = self.last;
        self.by_version.insert(self.last, key.clone());
        self.bury(&key);
    }

    /// Begins to tell a reader of all entries.
    pub(crate) fn begin(&mut self, reader: R) {
        self.readers.insert(reader, 0);
    }

    /// Ends a reader: no change is told to the reader any more.
    pub(crate) fn end(&mut self, reader: R) {
        let Some(cursor) = self.readers.remove(&reader) else {
            return;
        };
        if self.tombstones == 0 {
            return;
        }
        let later = self.by_version.range(cursor + 1..);
        let keys: Vec<_> = later.map(|(_, key)| key.clone()).collect();
        for key in keys {
            self.bury(&key);
        }
    }

    /// Takes the next entry to tell the reader, with no value where it was removed.
    pub(crate) fn next(&mut self, reader: R) -> Option<(K, Option<V>)> {
        loop {
            let cursor = *self.readers.get(&reader)?;
            let (version, key) = self.by_version.range(cursor + 1..).next()?;
            let (version, key) = (*version, key.clone());
            self.readers.insert(reader, version);
            let entry = self.entries.get(&key)?;
            let (value, is_known) = (entry.value.clone(), entry.is_known_at(cursor));
            self.bury(&key);
            if value.is_some() || is_known {
                return Some((key, value));
            }
        }
    }

    /// Drops the entry if it is a tombstone that no reader needs.
    fn bury(&mut self, key: &K) {
        let Some(entry) = self.entries.get(key) else {
            return;
        };
        let is_needed = || self.readers.values().any(|it| entry.is_needed_at(*it));
        if entry.value.is_none() && !is_needed() {
            self.by_version.remove(&entry.version);
            self.entries.remove(key);
            self.tombstones -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Numbers = Feed<u8, u8, u32>;

    /// A reader with the entries that the feed has told.
    #[derive(Debug, Default)]
    struct Reader {
        known: HashMap<u8, u32>,
        told: usize,
    }

    impl Reader {
        fn take(&mut self, feed: &mut Numbers, reader: u8, most: usize) {
            for _ in 0..most {
                let Some((key, value)) = feed.next(reader) else {
                    return;
                };
                self.told += 1;
                match value {
                    Some(value) => drop(self.known.insert(key, value)),
                    None => drop(self.known.remove(&key)),
                }
            }
        }
    }

    // pins: B36
    #[test]
    fn an_entry_that_changes_while_a_reader_waits_is_told_once() {
        let mut feed = Numbers::default();
        let mut reader = Reader::default();
        feed.begin(1);
        for value in 0..1_000 {
            feed.set(7, Some(value));
        }
        reader.take(&mut feed, 1, usize::MAX);
        assert_eq!((reader.told, reader.known[&7]), (1, 999));
        // An entry made and removed meanwhile is not told at all, and leaves nothing.
        for key in 8..200 {
            feed.set(key, Some(0));
            feed.set(key, None);
        }
        reader.take(&mut feed, 1, usize::MAX);
        assert_eq!((reader.told, feed.entries.len()), (1, 1));
    }

    // pins: B36
    #[test]
    fn a_tombstone_is_kept_for_the_readers_that_know_the_entry() {
        let mut feed = Numbers::default();
        let [mut quick, mut slow] = [Reader::default(), Reader::default()];
        feed.begin(1);
        feed.begin(2);
        feed.set(7, Some(1));
        quick.take(&mut feed, 1, usize::MAX);
        slow.take(&mut feed, 2, usize::MAX);
        feed.set(7, None);
        quick.take(&mut feed, 1, usize::MAX);
        assert_eq!(
            (quick.known.len(), feed.entries.len(), feed.tombstones),
            (0, 1, 1)
        );
        // The slow reader does not know these, and needs no tombstones.
        for key in 8..200 {
            feed.set(key, Some(0));
            quick.take(&mut feed, 1, usize::MAX);
            feed.set(key, None);
            quick.take(&mut feed, 1, usize::MAX);
        }
        assert_eq!((feed.tombstones, feed.by_version.len()), (1, 1));
        feed.end(2);
        assert!(feed.entries.is_empty() && feed.by_version.is_empty());
        slow.take(&mut feed, 2, usize::MAX);
        assert_eq!(slow.told, 1);
    }

    #[derive(Debug, Clone)]
    enum Act {
        Set(u8, Option<u32>),
        Begin(u8),
        End(u8),
        Take(u8, usize),
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let value = proptest::option::of(0_u32..4);
        let act = prop_oneof![
            6 => (0_u8..12, value).prop_map(|(key, value)| Act::Set(key, value)),
            1 => (0_u8..3).prop_map(Act::Begin),
            1 => (0_u8..3).prop_map(Act::End),
            4 => (0_u8..3, 1_usize..4).prop_map(|(reader, most)| Act::Take(reader, most)),
        ];
        proptest::collection::vec(act, 0..200)
    }

    proptest! {
        // pins: B36
        #[test]
        fn readers_that_have_taken_all_know_what_there_is(acts in acts()) {
            let mut feed = Numbers::default();
            let mut entries = HashMap::new();
            let mut readers: HashMap<u8, Reader> = HashMap::new();
            for act in acts {
                match act {
                    Act::Set(key, value) => {
                        feed.set(key, value);
                        match value {
                            Some(value) => drop(entries.insert(key, value)),
                            None => drop(entries.remove(&key)),
                        }
                    }
                    Act::Begin(reader) => {
                        feed.begin(reader);
                        readers.insert(reader, Reader::default());
                    }
                    Act::End(reader) => {
                        feed.end(reader);
                        readers.remove(&reader);
                    }
                    Act::Take(number, most) => {
                        if let Some(reader) = readers.get_mut(&number) {
                            reader.take(&mut feed, number, most);
                        }
                    }
                }
                prop_assert_eq!(feed.entries.len() - feed.tombstones, entries.len());
                prop_assert_eq!(feed.by_version.len(), feed.entries.len());
                // At most 12 keys: each known to a reader once at most.
                prop_assert!(feed.tombstones <= 12);
            }
            for (number, mut reader) in readers {
                reader.take(&mut feed, number, usize::MAX);
                prop_assert_eq!(&reader.known, &entries);
            }
            let needed = feed.tombstones;
            prop_assert_eq!(needed, 0);
        }
    }
}
