//! The timers by their keys: their values, and their places in the wheel.

use crate::blocks::{Blocks, NONE};
use crate::slots::Place;
use core::num::NonZeroU32;

/// Names a timer of a wheel while the timer waits. Eight bytes; an `Option` of a key has eight,
/// too.
///
/// A wheel never uses a key twice. In another wheel a key finds nothing, or an unrelated timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    index: u32,
    generation: NonZeroU32,
}

impl Key {
    /// Returns the key as a number, for [`from_bits`](Self::from_bits).
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        (self.generation.get() as u64) << 32 | self.index as u64
    }

    /// Returns the key of a number from [`to_bits`](Self::to_bits); `None` if no key has the
    /// number.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "the halves of the number")]
    pub const fn from_bits(bits: u64) -> Option<Self> {
        match NonZeroU32::new((bits >> 32) as u32) {
            Some(generation) => Some(Self {
                index: bits as u32,
                generation,
            }),
            None => None,
        }
    }
}

/// An entry in use has a value and the generation of its key. A vacant entry has the generation of
/// its next key, which no caller has seen. A retired entry has used all generations.
struct Entry<T> {
    value: Option<T>,
    /// The place of the timer; in a vacant entry, the index of the next vacant entry.
    place: u32,
    /// Zero: retired.
    generation: u32,
}

/// How many entries a block has.
const BLOCK: usize = 512;

/// A block with generations above this bound is never freed: the entries of new blocks begin above
/// the generations of all freed blocks, and each new entry should serve many timers.
const HALF: u32 = u32::MAX / 2;

/// The values, with their keys and places.
pub(crate) struct Entries<T> {
    blocks: Blocks<Entry<T>, BLOCK>,
    /// The first vacant entry: the entry that was freed last.
    vacant: u32,
    /// The first generation of the entries of new blocks.
    first: u32,
    len: usize,
    /// How many of the values are in the last block.
    in_last: u32,
    /// True if the last block stays until another block is added.
    keeps_last: bool,
}

impl<T> Entries<T> {
    pub(crate) const fn new() -> Self {
        Self {
            blocks: Blocks::new(),
            vacant: NONE,
            first: 1,
            len: 0,
            in_last: 0,
            keeps_last: false,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns for how many timers blocks are allocated.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.blocks.len() as usize
    }

    /// Adds the value that `make` makes of its key. The caller sets the place next.
    pub(crate) fn insert(&mut self, make: impl FnOnce(Key) -> T) -> Key {
        if self.vacant == NONE {
            self.grow();
        }
        let index = self.vacant;
        let entry = &mut self.blocks[index];
        let generation = NonZeroU32::new(entry.generation).expect("vacant, not retired");
        let key = Key { index, generation };
        // `make` may panic: no field has changed yet.
        entry.value = Some(make(key));
        self.vacant = entry.place;
        self.len += 1;
        self.in_last += u32::from(self.is_in_last(index));
        key
    }

    /// Removes a timer and returns its value. The key becomes stale, and the entry vacant.
    pub(crate) fn remove(&mut self, index: u32) -> Option<T> {
        let is_in_last = self.is_in_last(index);
        let entry = &mut self.blocks[index];
        let value = entry.value.take()?;
        self.len -= 1;
        self.in_last -= u32::from(is_in_last);
        entry.generation = entry.generation.wrapping_add(1);
        if entry.generation != 0 {
            entry.place = self.vacant;
            self.vacant = index;
        }
        Some(value)
    }

    /// Returns the place of a key's timer, if the timer waits.
    pub(crate) fn find(&self, key: Key) -> Option<Place> {
        let entry = self.blocks.get(key.index)?;
        let is_live = entry.generation == key.generation.get() && entry.value.is_some();
        is_live.then_some(Place(entry.place))
    }

    /// Returns the value of a key's timer, if the timer waits.
    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        let entry = self.blocks.get(key.index)?;
        let value = entry.value.as_ref();
        value.filter(|_| entry.generation == key.generation.get())
    }

    pub(crate) fn generation(&self, index: u32) -> u32 {
        self.blocks[index].generation
    }

    pub(crate) fn set_place(&mut self, index: u32, place: Place) {
        self.blocks[index].place = place.0;
    }

    /// Returns whether a shrink may free a block.
    pub(crate) fn may_shrink(&self) -> bool {
        self.in_last == 0 && !self.keeps_last
    }

    /// Marks the last block as kept: a shrink freed nothing, as the block has high generations.
    pub(crate) fn keep_last(&mut self) {
        self.keeps_last = true;
    }

    fn is_in_last(&self, index: u32) -> bool {
        index as usize + BLOCK >= self.room()
    }

    /// Returns whether all entries are vacant and have generations up to `HALF`.
    fn is_idle(block: &[Entry<T>; BLOCK]) -> bool {
        let is_idle =
            |entry: &Entry<T>| entry.value.is_none() && (1..=HALF).contains(&entry.generation);
        block.iter().all(is_idle)
    }

    /// Frees the idle blocks at the end, and links the remaining vacant entries anew.
    pub(crate) fn shrink(&mut self) {
        let first = &mut self.first;
        self.blocks.shrink(|block| {
            let all = Self::is_idle(block);
            if all {
                let highest = block.iter().map(|entry| entry.generation).max();
                *first = (*first).max(highest.unwrap_or(1));
            }
            all
        });
        let count =
            |block: &[Entry<T>; BLOCK]| block.iter().filter(|it| it.value.is_some()).count();
        self.in_last = u32::try_from(self.blocks.last().map_or(0, count)).unwrap_or(0);
        self.vacant = NONE;
        for index in (0..self.blocks.len()).rev() {
            let entry = &mut self.blocks[index];
            if entry.value.is_none() && entry.generation != 0 {
                entry.place = self.vacant;
                self.vacant = index;
            }
        }
    }

    #[cold]
    fn grow(&mut self) {
        let generation = self.first;
        let range = self.blocks.grow(NONE, |index| Entry {
            value: None,
            place: index + 1,
            generation,
        });
        self.blocks[range.end - 1].place = NONE;
        self.vacant = range.start;
        self.in_last = 0;
        self.keeps_last = false;
    }
}

impl Key {
    #[inline]
    pub(crate) fn index(self) -> u32 {
        self.index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates entries with a single value, whose entry has two generations left.
    fn nearly_used_up() -> (Entries<u8>, Key) {
        let mut entries = Entries::new();
        let index = entries.insert(|_| 1).index;
        let generation = NonZeroU32::new(u32::MAX - 1).unwrap();
        entries.blocks[index].generation = generation.get();
        (entries, Key { index, generation })
    }

    #[test]
    fn an_entry_whose_generations_are_used_up_is_never_used_again() {
        let (mut entries, key) = nearly_used_up();
        assert_eq!(entries.get(key), Some(&1));
        assert_eq!(entries.remove(key.index), Some(1));
        let last = entries.insert(|_| 2);
        assert_eq!((last.index, last.generation), (key.index, NonZeroU32::MAX));
        assert_eq!(entries.remove(last.index), Some(2));
        for _ in 0..2 {
            assert_ne!(entries.insert(|_| 3).index, last.index);
            assert!(entries.get(key).is_none() && entries.get(last).is_none());
            // The retired entry stays in its block and outside the list of vacant entries.
            entries.shrink();
        }
    }

    #[test]
    fn a_block_whose_generations_are_high_stays() {
        let (mut entries, key) = nearly_used_up();
        assert_eq!(entries.remove(key.index), Some(1));
        entries.shrink();
        assert_eq!(entries.blocks.len() as usize, BLOCK);
        assert_eq!(entries.insert(|_| 2).index, key.index);
    }

    #[test]
    fn a_key_of_another_wheel_finds_no_vacant_entry() {
        let mut entries = Entries::new();
        let key = entries.insert(|_| 1);
        assert!(Entries::<u8>::new().find(key).is_none());
        assert_eq!(entries.remove(key.index), Some(1));
        let generation = key.generation.checked_add(1).unwrap();
        let next = Key { generation, ..key };
        assert!(entries.find(next).is_none() && entries.get(next).is_none());
    }
}
