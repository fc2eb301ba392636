//! The table of the waiters of a channel, lock or room, and the lists through it.
//!
//! **Problem.** A waiter leaves from the middle of a list by its number, without a search. A wait
//! should allocate nothing, and a burst of waiters should leave no memory behind.
//!
//! **Rejected.**
//! - *A list through the waiters*: a waiter in several lists needs as many links, and unsafe code.
//! - *A `VecDeque`*: leaving from the middle is O(n).
//!
//! **Protocol.** The owner guards the table and its lists by a single lock. An entry is in a list
//! or in none, and its number stays the same: a server takes an entry out of its list, and leaves
//! the outcome in the entry until the waiter removes it.

use crate::table::Table;

/// No entry.
const NONE: u32 = u32::MAX;

/// Entries of waiters, by numbers. Each entry is in a [`WaitList`] of this table, or in none.
///
/// ```
/// use ganger_sync::{WaitList, WaitTable};
///
/// let (mut table, mut list) = (WaitTable::new(), WaitList::new());
/// let [a, b, c] = ["a", "b", "c"].map(|it| table.push_back(&mut list, it));
/// assert_eq!(table.remove(&mut list, b), Some("b"));
/// assert!(table.unlink(&mut list, a) && list.first() == Some(c));
/// assert_eq!(table.get(a), Some(&"a"));
/// ```
#[derive(Debug)]
pub struct WaitTable<E> {
    entries: Table<Linked<E>>,
}

/// An entry between its neighbours. Outside of all lists it is its own neighbour.
#[derive(Debug)]
struct Linked<E> {
    before: u32,
    after: u32,
    entry: E,
}

/// The ends of a list through the entries of a [`WaitTable`].
#[derive(Debug)]
pub struct WaitList {
    first: u32,
    last: u32,
    len: u32,
}

impl Default for WaitList {
    fn default() -> Self {
        Self::new()
    }
}

impl WaitList {
    /// Creates an empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            first: NONE,
            last: NONE,
            len: 0,
        }
    }

    /// Returns whether the list has no entry. O(1).
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.first == NONE
    }

    /// Returns the number of entries in the list. O(1).
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Returns the first entry's number. O(1).
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<u32> {
        some(self.first)
    }

    /// Returns the last entry's number. O(1).
    #[must_use]
    pub fn last(&self) -> Option<u32> {
        some(self.last)
    }
}

#[inline]
fn some(number: u32) -> Option<u32> {
    (number != NONE).then_some(number)
}

impl<E> Default for WaitTable<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> WaitTable<E> {
    /// Creates an empty table, without memory.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            entries: Table::new(),
        }
    }

    /// Returns the number of entries, in lists or not. O(1).
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether the table has no entry. O(1).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns for how many entries the table has memory. O(1).
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.entries.capacity()
    }

    /// Returns the entry with a number, in a list or not. O(1).
    #[inline]
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&E> {
        Some(&self.entries.get(number)?.entry)
    }

    /// Returns the entry as [`get`](Self::get) does, to change the entry.
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, number: u32) -> Option<&mut E> {
        Some(&mut self.entries.get_mut(number)?.entry)
    }

    /// Returns the number of the entry behind an entry of a list. O(1).
    #[inline]
    #[must_use]
    pub fn after(&self, number: u32) -> Option<u32> {
        some(self.entries.get(number)?.after)
    }

    /// Adds an entry at the end of a list. Returns its number. O(1), amortised.
    #[inline(always)]
    pub fn push_back(&mut self, list: &mut WaitList, entry: E) -> u32 {
        self.push(list, list.last, NONE, entry)
    }

    /// Adds an entry at the front of a list. Returns its number. O(1), amortised.
    pub fn push_front(&mut self, list: &mut WaitList, entry: E) -> u32 {
        self.push(list, NONE, list.first, entry)
    }

    #[inline(always)]
    fn push(&mut self, list: &mut WaitList, before: u32, after: u32, entry: E) -> u32 {
        let number = self.entries.insert(Linked {
            before,
            after,
            entry,
        });
        self.set_after(list, before, number);
        self.set_before(list, after, number);
        list.len += 1;
        number
    }

    /// Takes an entry out of its list, and leaves it in the table. Returns `false` if it was in no
    /// list. O(1).
    #[inline]
    pub fn unlink(&mut self, list: &mut WaitList, number: u32) -> bool {
        let Some(linked) = self.entries.get_mut(number) else {
            return false;
        };
        let (before, after) = (linked.before, linked.after);
        if before == number {
            return false;
        }
        (linked.before, linked.after) = (number, number);
        self.set_after(list, before, after);
        self.set_before(list, after, before);
        list.len -= 1;
        true
    }

    /// Takes an entry out of its list, if any, and out of the table. O(1), amortised.
    #[inline]
    pub fn remove(&mut self, list: &mut WaitList, number: u32) -> Option<E> {
        self.unlink(list, number);
        Some(self.entries.remove(number)?.entry)
    }

    /// Removes as [`remove`](Self::remove) does, but drops the entry in its place, which is faster.
    /// Returns `false` without such an entry.
    #[inline]
    pub fn discard(&mut self, list: &mut WaitList, number: u32) -> bool {
        self.unlink(list, number);
        self.entries.discard(number)
    }

    /// Calls `f` with the entries of a list in their order, until it returns a result. O(n).
    pub fn find_map<R>(
        &mut self,
        list: &WaitList,
        mut f: impl FnMut(&mut E) -> Option<R>,
    ) -> Option<R> {
        let mut number = list.first;
        loop {
            let linked = self.entries.get_mut(number)?;
            number = linked.after;
            if let Some(found) = f(&mut linked.entry) {
                return Some(found);
            }
        }
    }

    /// Sets the neighbour behind an entry. `NONE` is the list's end before its first entry.
    #[inline]
    fn set_after(&mut self, list: &mut WaitList, number: u32, after: u32) {
        match self.entries.get_mut(number) {
            Some(linked) => linked.after = after,
            None => list.first = after,
        }
    }

    /// Sets the neighbour before an entry. `NONE` is the list's end behind its last entry.
    #[inline]
    fn set_before(&mut self, list: &mut WaitList, number: u32, before: u32) {
        match self.entries.get_mut(number) {
            Some(linked) => linked.before = before,
            None => list.last = before,
        }
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, VecDeque};

    /// Returns the entries of a list from the front, and checks the links back.
    fn entries(table: &mut WaitTable<u32>, list: &WaitList) -> VecDeque<u32> {
        let mut found = VecDeque::new();
        table.find_map(list, |it| -> Option<()> {
            found.push_back(*it);
            None
        });
        let (mut before, mut at) = (NONE, list.first);
        while let Some(linked) = table.entries.get(at) {
            assert_eq!(linked.before, before);
            (before, at) = (at, linked.after);
        }
        assert_eq!(list.last, before);
        found
    }

    /// Compares two lists of a table with two `VecDeque`s. Operations are drawn by a linear
    /// congruential generator.
    #[test]
    fn two_lists_of_a_table_are_two_deques_whatever_leaves_them() {
        let mut table = WaitTable::new();
        let mut lists = [WaitList::new(), WaitList::new()];
        let mut deques = [VecDeque::<u32>::new(), VecDeque::new()];
        // By entry: its number, and its list.
        let mut known = BTreeMap::<u32, (u32, usize)>::new();
        let mut random = 7_u64;
        let mut draw = |of: u32| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            u32::try_from(random >> 33).unwrap() % of
        };
        for entry in 0..20_000_u32 {
            let grows = (entry / 2_500).is_multiple_of(2);
            let which = draw(2) as usize;
            let picked = known.range(draw(entry + 1)..).next();
            let picked = picked.map(|(&entry, &(number, which))| (entry, number, which));
            match (draw(if grows { 8 } else { 4 }), picked) {
                (0, Some((entry, number, which))) => {
                    let is_linked = deques[which].contains(&entry);
                    assert_eq!(table.unlink(&mut lists[which], number), is_linked);
                    assert!(!table.unlink(&mut lists[which], number));
                    deques[which].retain(|it| *it != entry);
                    assert_eq!(table.get_mut(number), Some(&mut entry.clone()));
                }
                (1 | 2, Some((entry, number, which))) => {
                    if entry.is_multiple_of(3) {
                        assert!(table.discard(&mut lists[which], number));
                    } else {
                        assert_eq!(table.remove(&mut lists[which], number), Some(entry));
                    }
                    assert_eq!(table.remove(&mut lists[which], number), None);
                    assert!(!table.discard(&mut lists[which], number));
                    assert!(!table.unlink(&mut lists[which], number));
                    deques[which].retain(|it| *it != entry);
                    known.remove(&entry);
                }
                (3, _) => {
                    deques[which].push_front(entry);
                    known.insert(entry, (table.push_front(&mut lists[which], entry), which));
                }
                _ => {
                    deques[which].push_back(entry);
                    known.insert(entry, (table.push_back(&mut lists[which], entry), which));
                }
            }
            assert_eq!(
                (table.len(), table.is_empty()),
                (known.len(), known.is_empty())
            );
            for (list, deque) in lists.iter().zip(&deques) {
                let value = |number: Option<u32>| number.and_then(|it| table.get(it));
                assert_eq!(
                    (list.len(), list.is_empty()),
                    (deque.len(), deque.is_empty())
                );
                assert_eq!(value(list.first()), deque.front());
                assert_eq!(value(list.last()), deque.back());
                let second = list.first().and_then(|it| table.after(it));
                assert_eq!(value(second), deque.get(1));
                if entry.is_multiple_of(100) {
                    assert_eq!(&entries(&mut table, list), deque);
                }
            }
        }
    }

    #[test]
    fn a_search_ends_at_the_first_entry_found() {
        let (mut table, mut list) = (WaitTable::new(), WaitList::default());
        for entry in [1, 3, 4, 6] {
            table.push_back(&mut list, entry);
        }
        let even = |it: &mut u32| it.is_multiple_of(2).then(|| std::mem::replace(it, 1));
        assert_eq!(table.find_map(&list, even), Some(4));
        assert_eq!(entries(&mut table, &list), [1, 3, 1, 6]);
        assert_eq!(table.find_map(&WaitList::new(), even), None);
    }

    #[test]
    fn a_burst_of_waiters_leaves_no_memory() {
        let (mut table, mut list) = (WaitTable::default(), WaitList::new());
        let numbers = [(); 1_000].map(|()| table.push_back(&mut list, ()));
        assert!(table.capacity() >= numbers.len());
        for number in numbers {
            assert!(table.remove(&mut list, number).is_some());
        }
        assert!(table.is_empty() && table.capacity() <= 256);
    }
}
