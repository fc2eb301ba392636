//! Names of nodes and hosts.

use super::interner::{Interner, MAX_INTERNED, TableFull};
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

/// The most bytes that a node's or a host's name may have.
pub const MAX_NAME_BYTES: usize = 255;

static NAMES: Interner = Interner::new();

/// What is wrong with a name, and at which byte of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem} (at byte {at})")]
pub struct NameError {
    /// What is wrong.
    pub problem: NameProblem,
    /// The byte at which it is wrong.
    pub at: usize,
}

/// What can be wrong with a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameProblem {
    /// It has no characters.
    #[error("the name is empty")]
    Empty,
    /// It has more than [`MAX_NAME_BYTES`] bytes.
    #[error("the name has {0} bytes; the most is {MAX_NAME_BYTES}")]
    TooLong(usize),
    /// It has white space, a control character, or a character that PID text gives a meaning to.
    #[error(
        "{0:?} can't stand in a name: no white space, no control characters, none of {{ }} | @"
    )]
    Forbidden(char),
    /// [`MAX_INTERNED`] other names are in use.
    #[error("there are {MAX_INTERNED} names already; no new one can be added")]
    TableFull,
}

/// Checks `text` against the rules for names, without storing it.
pub(crate) fn check(text: &str) -> Result<(), NameError> {
    if text.is_empty() {
        return Err(NameError {
            problem: NameProblem::Empty,
            at: 0,
        });
    }
    if text.len() > MAX_NAME_BYTES {
        return Err(NameError {
            problem: NameProblem::TooLong(text.len()),
            // The character that crosses the limit begins here, so the text can be cut here.
            at: text.floor_char_boundary(MAX_NAME_BYTES),
        });
    }
    let forbidden = |c: char| c.is_whitespace() || c.is_control() || "{}|@".contains(c);
    match text.char_indices().find(|&(_, c)| forbidden(c)) {
        Some((at, c)) => Err(NameError {
            problem: NameProblem::Forbidden(c),
            at,
        }),
        None => Ok(()),
    }
}

fn store(text: &str) -> Result<NonZeroU32, NameError> {
    check(text)?;
    match NAMES.intern(text) {
        Ok((number, _)) => Ok(number),
        Err(TableFull) => Err(NameError {
            problem: NameProblem::TableFull,
            at: 0,
        }),
    }
}

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        ///
        /// Four bytes and `Copy`: the text is stored once and never freed. Two names are equal when
        /// their texts are. Names are ordered by their first use, not by their texts.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(NonZeroU32);

        impl $name {
            /// The name with that text. O(length). Takes a lock, and allocates when the text is
            /// new.
            ///
            /// # Errors
            /// [`NameError`] when the text is not a valid name, or the table of names is full.
            pub fn new(text: &str) -> Result<Self, NameError> {
                store(text).map(Self)
            }

            /// The name's text. Takes a lock for reading.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                NAMES.text(self.0)
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::new(text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", self.as_str())
            }
        }
    };
}

name_type! {
    /// The name of a host: a place on a node that PIDs live in, such as a scheduler.
    HostName
}

name_type! {
    /// The name of a node: usually one operating-system process.
    NodeName
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_equal_when_their_texts_are() {
        let a = HostName::new("alpha").unwrap();
        assert_eq!(a, "alpha".parse().unwrap());
        assert_ne!(a, HostName::new("beta").unwrap());
        assert_eq!(a.to_string(), "alpha");
    }

    #[test]
    fn errors_say_what_and_where() {
        let error = NodeName::new("a b").unwrap_err();
        assert_eq!(
            error,
            NameError {
                problem: NameProblem::Forbidden(' '),
                at: 1
            }
        );
        assert!(error.to_string().contains("at byte 1"), "{error}");
        assert_eq!(HostName::new("").unwrap_err().problem, NameProblem::Empty);
        let long = "x".repeat(MAX_NAME_BYTES + 1);
        assert_eq!(
            HostName::new(&long).unwrap_err().problem,
            NameProblem::TooLong(256)
        );
        assert!(HostName::new(&long[1..]).is_ok());
    }
}
