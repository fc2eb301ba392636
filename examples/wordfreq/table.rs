//! The number of occurrences of each word.
//!
//! Nearly all words have at most sixteen bytes. Such a word is its own key, packed into a number: a
//! few instructions hash it, a single comparison compares it, and it needs no allocation. Longer
//! words are in a second map. Packed words sort as their texts do: the first byte is the most
//! significant, and the padding is NUL, a byte of no word.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::Hash;

/// Hashed with a key of its own: strangers may have written the files.
type Counts<K> = HashMap<K, u64, foldhash::quality::RandomState>;

/// The most bytes of a packed word.
pub(crate) const PACKED_BYTES: usize = size_of::<u128>();

/// Packs a word of at most [`PACKED_BYTES`] bytes.
pub(crate) fn pack(word: &[u8]) -> u128 {
    let mut bytes = [0; PACKED_BYTES];
    bytes[..word.len()].copy_from_slice(word);
    u128::from_be_bytes(bytes)
}

/// Counts of words in UTF-8.
#[derive(Debug, Default)]
pub(crate) struct Table {
    packed: Counts<u128>,
    long: Counts<Box<[u8]>>,
    words: u64,
}

/// A word in a table. Its order is alphabetical, by code points.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Word<'a> {
    start: u128,
    rest: &'a [u8],
}

impl Word<'_> {
    fn text(self) -> String {
        let start = self.start.to_be_bytes();
        let padding = self.start.trailing_zeros() as usize / 8;
        let bytes = [&start[..PACKED_BYTES - padding], self.rest].concat();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Table {
    /// Returns the number of words, repetitions included.
    pub(crate) fn words(&self) -> u64 {
        self.words
    }

    /// Returns the number of different words.
    pub(crate) fn distinct(&self) -> usize {
        self.packed.len() + self.long.len()
    }

    /// Counts a word. The word is not empty.
    pub(crate) fn add(&mut self, word: &[u8], times: u64) {
        if word.len() <= PACKED_BYTES {
            return self.add_packed(pack(word), times);
        }
        self.words += times;
        match self.long.get_mut(word) {
            Some(count) => *count += times,
            None => _ = self.long.insert(word.into(), times),
        }
    }

    /// Counts a packed word.
    #[inline]
    pub(crate) fn add_packed(&mut self, word: u128, times: u64) {
        self.words += times;
        *self.packed.entry(word).or_default() += times;
    }

    /// Adds the counts of another table. O(distinct words of the smaller table).
    pub(crate) fn merge(&mut self, other: Self) {
        self.words += other.words;
        merge(&mut self.packed, other.packed);
        merge(&mut self.long, other.long);
    }

    /// Returns the `limit` most frequent words; equally frequent words are in alphabetical order.
    pub(crate) fn top(&self, limit: usize) -> Vec<(String, u64)> {
        let mut ranked: Vec<_> = self
            .iter()
            .map(|(word, count)| (Reverse(count), word))
            .collect();
        if limit < ranked.len() {
            ranked.select_nth_unstable(limit);
            ranked.truncate(limit);
        }
        ranked.sort_unstable();
        ranked
            .into_iter()
            .map(|(Reverse(count), word)| (word.text(), count))
            .collect()
    }

    /// Returns the words and their counts with every word changed by `change`, which may make words
    /// equal.
    pub(crate) fn map_words(&self, change: impl Fn(&str) -> String) -> Self {
        let mut table = Self::default();
        for (word, count) in self.iter() {
            table.add(change(&word.text()).as_bytes(), count);
        }
        table
    }

    fn iter(&self) -> impl Iterator<Item = (Word<'_>, u64)> {
        let packed = self.packed.iter().map(|(&start, &count)| {
            let rest: &[u8] = &[];
            (Word { start, rest }, count)
        });
        let long = self.long.iter().map(|(word, &count)| {
            let (start, rest) = word.split_at(PACKED_BYTES);
            let start = pack(start);
            (Word { start, rest }, count)
        });
        packed.chain(long)
    }
}

fn merge<K: Hash + Eq>(counts: &mut Counts<K>, mut other: Counts<K>) {
    if other.len() > counts.len() {
        std::mem::swap(counts, &mut other);
    }
    for (word, count) in other {
        *counts.entry(word).or_default() += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn table(words: &[&str]) -> Table {
        let mut table = Table::default();
        for word in words {
            table.add(word.as_bytes(), 1);
        }
        table
    }

    #[test]
    fn equally_frequent_words_are_ranked_alphabetically() {
        let table = table(&[
            "pear", "fig", "fig", "apple", "pear", "apple", "kiwi", "date",
        ]);
        let top = |n| {
            table
                .top(n)
                .into_iter()
                .map(|(word, _)| word)
                .collect::<Vec<_>>()
        };
        assert_eq!(top(9), ["apple", "fig", "pear", "date", "kiwi"]);
        assert_eq!(top(4), ["apple", "fig", "pear", "date"]);
        assert_eq!(top(2), ["apple", "fig"]);
        assert!(top(0).is_empty());
    }

    #[test]
    fn words_of_every_length_come_back_and_sort_as_texts() {
        let longest = "é".repeat(12);
        let ends = longest.char_indices().map(|(at, c)| at + c.len_utf8());
        let mut words: Vec<&str> = ends.map(|end| &longest[..end]).collect();
        words.extend([
            "a",
            "abcdefghijklmnop",
            "abcdefghijklmnopq",
            "abcdefghijklmnoq",
            "z",
        ]);
        let top = table(&words).top(usize::MAX);
        words.sort_unstable();
        assert_eq!(top.len(), words.len());
        assert!(top.iter().map(|(word, _)| word.as_str()).eq(words));
    }

    #[test]
    fn changed_words_may_become_one() {
        let table = table(&["Ab", "aB", "c", "ABCDEFGHIJKLMNOPQ", "abcdefghijklmnopq"]);
        let table = table.map_words(str::to_lowercase);
        let expected = [("ab", 2), ("abcdefghijklmnopq", 2), ("c", 1)];
        assert_eq!(table.top(9), expected.map(|(word, n)| (word.to_owned(), n)));
        assert_eq!((table.words(), table.distinct()), (5, 3));
    }

    proptest! {
        #[test]
        fn merged_tables_count_as_one(
            a in prop::collection::vec("[ab]{1,3}|é{7,9}", 0..30),
            b in prop::collection::vec("[ab]{1,3}|é{7,9}", 0..30),
        ) {
            let [mut left, right] =
                [&a, &b].map(|words| table(&words.iter().map(String::as_str).collect::<Vec<_>>()));
            left.merge(right);
            let mut expected = BTreeMap::new();
            for word in a.iter().chain(&b) {
                *expected.entry(word.clone()).or_insert(0) += 1;
            }
            let counted: BTreeMap<_, _> = left.top(usize::MAX).into_iter().collect();
            prop_assert_eq!(&counted, &expected);
            prop_assert_eq!(left.distinct(), expected.len());
            prop_assert_eq!(left.words(), expected.values().sum::<u64>());
        }
    }
}
