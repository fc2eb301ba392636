//! A table of entries with numbers, for lines of waiters.
//!
//! **Problem.** The number of an entry is its place, so an entry can't move. A burst leaves a long
//! table with a few remaining entries.
//!
//! **Rejected.** Giving memory back only when the table is empty: a single entry that stays for
//! long would keep the room of the burst.
//!
//! **Rule.** Vacant places below a limit form a list, from which new entries take their places.
//! When the entries number less than a quarter of the limit, the limit falls to twice their number.
//! The part above it becomes vacant as its entries leave, and the table drops it from the end. The
//! limit rises when all places below it are used.
//!
//! **Cost.** Between two falls of the limit half of the entries leave, and a fall costs as many
//! steps as the table has entries. Each place is added once and dropped once. So all operations are
//! O(1) for each inserted entry, amortised.

use crate::burst::shrink_after_burst;
use std::mem;

/// No place.
const NONE: u32 = u32::MAX;

/// A table of at most this length never shrinks.
const KEPT: usize = 64;

/// Entries with numbers. A number belongs to a single entry at a time, and is reused. The memory of
/// a burst is given back automatically.
///
/// ```
/// let mut table = ganger_sync::Table::new();
/// let one = table.insert("one");
/// assert_eq!(table.get(one), Some(&"one"));
/// assert_eq!(table.remove(one), Some("one"));
/// assert_eq!(table.get(one), None);
/// ```
#[derive(Debug)]
pub struct Table<E> {
    places: Vec<Place<E>>,
    /// The first vacant place of the list.
    vacant: u32,
    /// The list has all vacant places below the limit.
    limit: usize,
    len: usize,
}

#[derive(Debug)]
enum Place<E> {
    Used(E),
    /// With the next place of the list, if this place is in the list.
    Vacant(u32),
}

impl<E> Default for Table<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> Table<E> {
    /// Creates an empty table, without memory.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            places: Vec::new(),
            vacant: NONE,
            limit: 0,
            len: 0,
        }
    }

    /// Returns the number of entries. O(1).
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the table has no entry. O(1).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns for how many entries the table has memory. O(1).
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.places.capacity()
    }

    /// Adds an entry and returns its number. O(1), amortised.
    ///
    /// # Panics
    /// With 2^32 - 1 entries.
    // A call would build the entry twice, with a stall between.
    #[inline(always)]
    pub fn insert(&mut self, entry: E) -> u32 {
        if self.vacant == NONE && self.limit < self.places.len() {
            self.raise();
        }
        self.len += 1;
        let number = self.vacant;
        if let Some(place) = self.places.get_mut(number as usize) {
            if let Place::Vacant(next) = *place {
                self.vacant = next;
            }
            *place = Place::Used(entry);
            return number;
        }
        self.append(entry)
    }

    #[cold]
    fn append(&mut self, entry: E) -> u32 {
        let number = u32::try_from(self.places.len()).unwrap_or(NONE);
        assert!(number < NONE, "a table has at most 2^32 - 1 entries");
        self.places.push(Place::Used(entry));
        self.limit = self.places.len();
        number
    }

    /// Returns the entry with a number. O(1).
    #[inline]
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&E> {
        match self.places.get(number as usize) {
            Some(Place::Used(entry)) => Some(entry),
            _ => None,
        }
    }

    /// Returns the entry with a number. O(1).
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, number: u32) -> Option<&mut E> {
        match self.places.get_mut(number as usize) {
            Some(Place::Used(entry)) => Some(entry),
            _ => None,
        }
    }

    /// Takes the entry with a number out. O(1), amortised.
    #[inline]
    pub fn remove(&mut self, number: u32) -> Option<E> {
        let place = self.places.get_mut(number as usize)?;
        if matches!(place, Place::Vacant(_)) {
            return None;
        }
        let Place::Used(entry) = mem::replace(place, Place::Vacant(self.vacant)) else {
            return None;
        };
        self.has_left(number);
        Some(entry)
    }

    /// Drops the entry with a number in its place, which is faster than to take it out. Returns
    /// `false` without such an entry. O(1), amortised.
    #[inline]
    pub fn discard(&mut self, number: u32) -> bool {
        match self.places.get_mut(number as usize) {
            Some(place @ Place::Used(_)) => *place = Place::Vacant(self.vacant),
            _ => return false,
        }
        self.has_left(number);
        true
    }

    /// Makes the place vacant that an entry has left.
    #[inline]
    fn has_left(&mut self, number: u32) {
        self.len -= 1;
        let is_below = (number as usize) < self.limit;
        if is_below {
            self.vacant = number;
        }
        if self.limit > KEPT && self.len < self.limit / 4 {
            self.lower();
        } else if !is_below {
            self.cut();
        }
    }

    /// Lowers the limit. O(n) in the entries.
    #[cold]
    fn lower(&mut self) {
        self.limit = KEPT.max(2 * self.len);
        self.vacant = NONE;
        self.list(0);
        self.cut();
    }

    /// Raises the limit until the list has a vacant place, or to the end.
    #[cold]
    fn raise(&mut self) {
        while self.vacant == NONE && self.limit < self.places.len() {
            let from = self.limit;
            self.limit = (2 * from).max(KEPT).min(self.places.len());
            self.list(from);
        }
    }

    /// Adds the vacant places from `from` to the limit to the list, the lowest first.
    fn list(&mut self, from: usize) {
        for at in (from..self.limit).rev() {
            if let Place::Vacant(next) = &mut self.places[at] {
                let number = u32::try_from(at).unwrap_or(NONE);
                *next = mem::replace(&mut self.vacant, number);
            }
        }
    }

    /// Drops vacant places at the end, down to the limit.
    #[cold]
    fn cut(&mut self) {
        while self.places.len() > self.limit && matches!(self.places.last(), Some(Place::Vacant(_)))
        {
            self.places.pop();
        }
        shrink_after_burst(&mut self.places, KEPT);
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    const BURST: u32 = 10_000;

    fn burst() -> (Table<u32>, Vec<u32>) {
        let mut table = Table::new();
        let numbers = (0..BURST).map(|it| table.insert(it)).collect();
        (table, numbers)
    }

    #[test]
    fn a_number_finds_its_entry_and_no_other() {
        let (mut table, numbers) = burst();
        for &number in numbers.iter().filter(|it| *it % 3 == 0) {
            assert_eq!(table.remove(number), Some(number));
            assert_eq!(table.remove(number), None);
        }
        for &number in &numbers {
            let found = (number % 3 != 0).then_some(number);
            assert_eq!(table.get(number), found.as_ref());
            assert_eq!(table.get_mut(number).copied(), found);
        }
        assert_eq!(
            table.len(),
            numbers.iter().filter(|it| *it % 3 != 0).count()
        );
        assert_eq!(table.get(BURST), None);
        assert_eq!(table.remove(BURST), None);
    }

    #[test]
    fn a_burst_leaves_little_room_in_whatever_order_it_goes() {
        type Sort = fn(&mut Vec<u32>);
        let orders: [Sort; 3] = [
            |_| {},
            |numbers| numbers.reverse(),
            |numbers| numbers.sort_by_key(|it| it.wrapping_mul(0x9e37_79b9)),
        ];
        for sort in orders {
            let (mut table, mut numbers) = burst();
            sort(&mut numbers);
            for number in numbers {
                assert!(table.remove(number).is_some());
            }
            assert!(table.is_empty());
            assert!(table.capacity() <= 4 * KEPT, "{}", table.capacity());
        }
    }

    #[test]
    fn the_last_of_a_burst_keeps_its_room_no_longer_than_it_stays() {
        let (mut table, numbers) = burst();
        for &number in &numbers[..numbers.len() - 1] {
            assert!(table.remove(number).is_some());
        }
        // A few come and go, and the table is never empty.
        let mut before = table.insert(0);
        assert!(table.remove(BURST - 1).is_some());
        for turn in 0..BURST {
            let next = table.insert(turn);
            assert!(table.remove(before).is_some());
            before = next;
        }
        assert_eq!(table.len(), 1);
        assert!(table.capacity() <= 4 * KEPT, "{}", table.capacity());
    }

    #[test]
    fn what_is_above_the_limit_is_used_again_when_all_below_is() {
        let (mut table, numbers) = burst();
        // The last entry keeps the table long.
        for &number in &numbers[..numbers.len() - 1] {
            assert!(table.remove(number).is_some());
        }
        let room = table.capacity();
        let mut again: Vec<_> = (1..BURST).map(|it| table.insert(it)).collect();
        assert_eq!((table.len(), table.capacity()), (numbers.len(), room));
        again.push(BURST - 1);
        again.sort_unstable();
        assert_eq!(again, numbers, "each place once");
    }

    #[test]
    fn any_operations_leave_each_entry_in_its_place() {
        let mut table = Table::new();
        let mut known = std::collections::BTreeMap::new();
        let mut random = 7_u64;
        for turn in 0..40 * BURST {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let chance = u32::try_from(random >> 33).unwrap();
            // The table grows for some time, then falls for some time.
            let grows = (turn / BURST).is_multiple_of(2);
            if chance % 8 < if grows { 6 } else { 1 } {
                let number = table.insert(turn);
                assert_eq!(known.insert(number, turn), None);
            } else if let Some((&number, _)) = known.range(chance % BURST..).next() {
                assert_eq!(table.remove(number), known.remove(&number));
            }
            assert_eq!(table.len(), known.len());
        }
        for (number, turn) in known {
            assert_eq!(table.remove(number), Some(turn));
        }
        assert!(table.is_empty());
        assert!(table.capacity() <= 4 * KEPT, "{}", table.capacity());
    }
}
