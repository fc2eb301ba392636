//! The queue's word: a copy of its value, and the meaning of the values.

use crate::list::Node;
use std::fmt;
use std::ptr;

/// Set in every value of a closed queue.
const CLOSED: usize = 0b01;
/// The consumer sleeps. Never set together with another bit.
const PARKED: usize = 0b10;
/// The bits of an address that a node leaves free.
const TAGS: usize = CLOSED | PARKED;

/// A value of a queue's word.
///
/// The table shows the new value and the result of each operation on each value. A dash: the value
/// stays. Only the consumer parks and takes a park back; any thread may call the other operations.
///
/// | | `EMPTY` (0) | `PARKED` (2) | node | node+1 | `CLOSED` (1) |
/// |---|---|---|---|---|---|
/// | queue | open, empty | open, empty, asleep | open, items | closed, items | closed, empty |
/// | `push` | node, `First` | node, `Unparked` | node, `Queued` | -, refused | -, refused |
/// | `drain` | -, nothing | -, nothing | `EMPTY`, chain | `CLOSED`, chain | -, nothing |
/// | `park` | `PARKED`, `Parked` | -, `Parked` | -, `NotEmpty` | -, `NotEmpty` | -, `Closed` |
/// | `cancel_park` | -, `false` | `EMPTY`, `true` | -, `false` | -, `false` | -, `false` |
/// | `seal` | `CLOSED`, `Awake` | `CLOSED`, `Unparked` | node+1, `Awake` | -, `Awake` | the same |
/// | `close` | `CLOSED`, nothing | `CLOSED`, `parked` | `CLOSED`, chain | the same | -, nothing |
///
/// `CLOSED` is final.
pub(super) struct Word<T>(*mut Node<T>);

impl<T> Clone for Word<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Word<T> {}

impl<T> PartialEq for Word<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0.addr() == other.0.addr()
    }
}

impl<T> Word<T> {
    /// The word keeps its tags in the low bits of a node's address.
    pub(super) const TAGS_FIT: () = assert!(align_of::<Node<T>>() > TAGS);

    pub(super) const EMPTY: Self = Self(ptr::null_mut());
    pub(super) const PARKED: Self = Self(ptr::without_provenance_mut(PARKED));
    pub(super) const CLOSED: Self = Self(ptr::without_provenance_mut(CLOSED));

    #[inline(always)]
    pub(super) fn from_raw(raw: *mut Node<T>) -> Self {
        Self(raw)
    }

    #[inline(always)]
    pub(super) const fn raw(self) -> *mut Node<T> {
        self.0
    }

    /// Returns whether the queue is closed: every push is refused.
    #[inline(always)]
    pub(super) fn is_closed(self) -> bool {
        self.0.addr() & CLOSED != 0
    }

    /// Returns whether the queue has items.
    #[inline(always)]
    pub(super) fn has_items(self) -> bool {
        self.0.addr() & !TAGS != 0
    }

    /// Returns the newest node, or null. Only its address counts: see `list/node.rs`.
    #[inline(always)]
    pub(super) fn newest(self) -> *mut Node<T> {
        self.0.map_addr(|addr| addr & !TAGS)
    }

    /// Returns this value without its items, as after a drain.
    #[inline(always)]
    pub(super) fn drained(self) -> Self {
        if self.is_closed() {
            Self::CLOSED
        } else {
            Self::EMPTY
        }
    }

    /// Returns this value closed, with its items, as after a seal.
    #[inline(always)]
    pub(super) fn sealed(self) -> Self {
        if self.has_items() {
            Self(self.0.map_addr(|addr| addr | CLOSED))
        } else {
            Self::CLOSED
        }
    }
}

impl<T> fmt::Debug for Word<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.is_closed(), self.has_items()) {
            (false, true) => "Items",
            (true, true) => "Sealed",
            (true, false) => "Closed",
            (false, false) if *self == Self::PARKED => "Parked",
            (false, false) => "Empty",
        })
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    /// Returns a value with a node, which is only an address.
    fn node() -> Word<u8> {
        Word(ptr::without_provenance_mut(64))
    }

    #[test]
    fn draining_keeps_whether_it_is_closed() {
        assert_eq!(node().drained(), Word::EMPTY);
        assert_eq!(node().sealed().drained(), Word::CLOSED);
    }

    #[test]
    fn sealing_keeps_the_items() {
        assert_eq!(node().sealed().newest().addr(), 64);
        assert_eq!(node().sealed().sealed(), node().sealed());
        for empty in [Word::<u8>::EMPTY, Word::PARKED, Word::CLOSED] {
            assert_eq!(empty.sealed(), Word::CLOSED);
        }
    }

    #[test]
    fn a_tag_is_not_an_item() {
        for empty in [Word::<u8>::EMPTY, Word::PARKED, Word::CLOSED] {
            assert!(!empty.has_items());
            assert!(empty.newest().is_null());
        }
    }

    #[test]
    fn every_value_has_a_name() {
        let names = [
            Word::EMPTY,
            Word::PARKED,
            Word::CLOSED,
            node(),
            node().sealed(),
        ]
        .map(|word| format!("{word:?}"));
        assert_eq!(names, ["Empty", "Parked", "Closed", "Items", "Sealed"]);
    }
}
