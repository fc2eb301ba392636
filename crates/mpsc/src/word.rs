//! The queue's word: a copy of its value, and what the values mean.

use crate::node::Node;
use std::fmt;
use std::ptr;

/// Set in every value of a closed queue.
const CLOSED: usize = 0b01;
/// The consumer sleeps. Never together with anything else.
const PARKED: usize = 0b10;
/// The bits of an address that a node leaves free.
pub(crate) const TAGS: usize = CLOSED | PARKED;

/// One value of a queue's word.
///
/// What each operation turns each value into, and what it answers. `push` is a pusher's, anybody
/// may `drain`, `seal` and `close`, and only the consumer may `park` and `cancel_park`. A dash: the
/// value stays.
///
/// | value | queue | `push` | `drain` | `park` | `cancel_park` | `seal` | `close` |
/// |---|---|---|---|---|---|---|---|
/// | `EMPTY` (0) | open, nothing in it | node, `First` | -, nothing | `PARKED`, `Parked` | -, `false` | `CLOSED`, `Awake` | `CLOSED`, nothing |
/// | `PARKED` (2) | open, nothing in it, the consumer sleeps | node, `Unparked` | -, nothing | `PARKED`, `Parked` | `EMPTY`, `true` | `CLOSED`, `Unparked` | `CLOSED`, nothing, `parked` |
/// | node | open, a chain of items | node, `Queued` | `EMPTY`, the chain | -, `NotEmpty` | -, `false` | node + 1, `Awake` | `CLOSED`, the chain |
/// | node + 1 | closed, a chain of items | -, refused | `CLOSED`, the chain | -, `NotEmpty` | -, `false` | -, `Awake` | `CLOSED`, the chain |
/// | `CLOSED` (1) | closed, nothing in it: final | -, refused | -, nothing | -, `Closed` | -, `false` | -, `Awake` | -, nothing |
pub(crate) struct Word<T>(*mut Node<T>);

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
    pub(crate) const EMPTY: Self = Self(ptr::null_mut());
    pub(crate) const PARKED: Self = Self(ptr::without_provenance_mut(PARKED));
    pub(crate) const CLOSED: Self = Self(ptr::without_provenance_mut(CLOSED));

    #[inline(always)]
    pub(crate) fn from_raw(raw: *mut Node<T>) -> Self {
        Self(raw)
    }

    #[inline(always)]
    pub(crate) const fn raw(self) -> *mut Node<T> {
        self.0
    }

    /// No push gets in any more.
    #[inline(always)]
    pub(crate) fn is_closed(self) -> bool {
        self.0.addr() & CLOSED != 0
    }

    /// There are items.
    #[inline(always)]
    pub(crate) fn has_items(self) -> bool {
        self.0.addr() & !TAGS != 0
    }

    /// The newest node, or null. Only its address counts (see `node.rs`).
    #[inline(always)]
    pub(crate) fn newest(self) -> *mut Node<T> {
        self.0.map_addr(|addr| addr & !TAGS)
    }

    /// This value without its items: what a drain leaves.
    #[inline(always)]
    pub(crate) fn drained(self) -> Self {
        if self.is_closed() {
            Self::CLOSED
        } else {
            Self::EMPTY
        }
    }

    /// This value closed, with the items that it has.
    #[inline(always)]
    pub(crate) fn sealed(self) -> Self {
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A value that holds a node, which nobody looks at.
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
