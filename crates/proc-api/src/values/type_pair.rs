//! Two names of types in two bytes.
//!
//! **Problem.** The error of a send names the type that a process takes and the type of the
//! message. Two names are four words, and each successful send would pay for so large a result.
//!
//! **Protocol.** The first refusal of a pair puts its names into a table, and the error carries the
//! pair's place in the table. The table is bounded, and nothing leaves it. The highest bit of the
//! place says that the process restarts.

use crate::raw::Kind;
use std::fmt;
use std::sync::{PoisonError, RwLock};

/// The most pairs with names. A program that refuses more pairs has a defect.
const MAX: usize = 1_024;

/// The process restarts.
const RESTARTS: u16 = 1 << 15;

type Names = (&'static str, &'static str);

static PAIRS: RwLock<Vec<Names>> = RwLock::new(Vec::new());

/// The addition to the error of a process that restarts.
const RESTARTING: &str = "; it restarts at the moment";

/// The type that a process takes, and the type of a refused message.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TypePair(u16);

impl TypePair {
    /// Creates the pair of a process that takes messages of the kind `expected`, and a message of a
    /// type named `got`. Takes a lock.
    #[must_use]
    #[cold]
    pub fn new(expected: Kind, got: &'static str) -> Self {
        let names = (expected.name(), got);
        let mut pairs = PAIRS.write().unwrap_or_else(PoisonError::into_inner);
        let place = pairs.iter().position(|it| *it == names);
        let place = place.unwrap_or_else(|| {
            if pairs.len() < MAX {
                pairs.push(names);
                pairs.len() - 1
            } else {
                MAX
            }
        });
        Self(u16::try_from(place).unwrap_or(!RESTARTS))
    }

    /// Returns the same pair, for a process that restarts in place: until its next incarnation has
    /// begun, it takes the same type as before.
    #[must_use]
    pub fn restarting(self) -> Self {
        Self(self.0 | RESTARTS)
    }

    /// Returns whether the process restarts in place at the moment of the send.
    #[must_use]
    pub fn is_restarting(self) -> bool {
        self.0 & RESTARTS != 0
    }

    /// Returns the addition to the error's text for a restarting process.
    pub(crate) fn note(self) -> &'static str {
        if self.is_restarting() { RESTARTING } else { "" }
    }

    /// Returns the name of the process's message type, with its path.
    #[must_use]
    pub fn expected(self) -> &'static str {
        self.names().0
    }

    /// Returns the name of the type of the message, with its path.
    #[must_use]
    pub fn got(self) -> &'static str {
        self.names().1
    }

    fn names(self) -> Names {
        let pairs = PAIRS.read().unwrap_or_else(PoisonError::into_inner);
        let names = pairs.get(usize::from(self.0 & !RESTARTS)).copied();
        // The table is full.
        names.unwrap_or(("its own", "another"))
    }
}

impl fmt::Debug for TypePair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypePair")
            .field("expected", &self.expected())
            .field("got", &self.got())
            .field("is_restarting", &self.is_restarting())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_keeps_its_names() {
        let pair = TypePair::new(Kind::of::<u64>(), "a text");
        let other = TypePair::new(Kind::of::<u64>(), "a number");
        assert_ne!(pair, other);
        assert_eq!(TypePair::new(Kind::of::<u64>(), "a text"), pair);
        assert_eq!((pair.expected(), pair.got()), ("u64", "a text"));
        assert_eq!(other.got(), "a number");
        assert_eq!(TypePair(u16::MAX).got(), "another");
        let restarting = pair.restarting();
        assert_eq!((restarting.expected(), restarting.got()), ("u64", "a text"));
        assert!(restarting.is_restarting() && !pair.is_restarting() && restarting != pair);
    }
}
