//! The messages of pairs, rings and fans: bare numbers, or values of a single type.

use crate::whole::bell::LAST;

/// A message with a number.
pub(super) trait Numbered: Send + 'static {
    fn new(number: u64) -> Self;

    /// Creates the last message, which has no number.
    fn last() -> Self;

    /// Returns its number; `None` for the last message.
    fn number(&self) -> Option<u64>;

    /// The same with another number.
    fn renumbered(self, number: u64) -> Self;
}

impl Numbered for u64 {
    fn new(number: u64) -> Self {
        number
    }

    fn last() -> Self {
        LAST
    }

    fn number(&self) -> Option<u64> {
        (*self != LAST).then_some(*self)
    }

    fn renumbered(self, number: u64) -> Self {
        number
    }
}

/// A message of a type of its own.
pub(super) enum Load {
    /// A number, and padding that makes the message large.
    Number([u64; 4]),
    /// The last one.
    End,
}

const _: () = assert!(size_of::<Load>() == 40);

impl Numbered for Load {
    fn new(number: u64) -> Self {
        Self::Number([number, 1, 2, 3])
    }

    fn last() -> Self {
        Self::End
    }

    fn number(&self) -> Option<u64> {
        match *self {
            Self::Number([number, ..]) => Some(number),
            Self::End => None,
        }
    }

    fn renumbered(self, number: u64) -> Self {
        match self {
            Self::Number([_, a, b, c]) => Self::Number([number, a, b, c]),
            Self::End => Self::new(number),
        }
    }
}
