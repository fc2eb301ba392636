//! Names of nodes and hosts.

use super::interner::{Interner, MAX_INTERNED, MAX_PARSED, Origin, TableFull};
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

/// The most bytes in the name of a node or a host.
pub const MAX_NAME_BYTES: usize = 255;

/// The default names of schedulers and runtimes always have a place.
static NAMES: Interner = Interner::new(&["main", "outside", "local"]);

/// The problem of a name, and the byte where it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem} (at byte {at})")]
pub struct NameError {
    /// What is wrong.
    pub problem: NameProblem,
    /// The byte at which the problem begins.
    pub at: usize,
}

/// A problem of a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameProblem {
    /// The name has no characters.
    #[error("the name must not be empty")]
    Empty,
    /// The name has more than [`MAX_NAME_BYTES`] bytes.
    #[error("the name has {0} bytes; it must have at most {MAX_NAME_BYTES}")]
    TooLong(usize),
    /// The name has white space, a control character, or a character with a meaning in PID text.
    #[error(
        "invalid character {0:?}: a name must not contain white space, control characters, or \
         any of {{ }} | @"
    )]
    Forbidden(char),
    /// [`MAX_INTERNED`] other names exist, made or parsed by the program.
    #[error(
        "too many names: {MAX_INTERNED} exist, and names are never freed; create fewer, and look \
         text from outside up with `known`"
    )]
    TableFull,
    /// [`MAX_PARSED`] other names have been parsed.
    #[error(
        "too many parsed names: {MAX_PARSED} exist, and names are never freed; create the \
         expected names with `HostName::new` and `NodeName::new`, and parse others with \
         `Pid::parse_known`"
    )]
    TooManyParsed,
    /// The program has no such name, and none was to be added.
    #[error("unknown name; create it with `new`")]
    Unknown,
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
            // The character that crosses the limit begins here, so a caller can cut the text here.
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

/// How a name is found by its text.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Find {
    /// The table adds a missing text.
    OrAdd(Origin),
    /// The text must be in the table.
    Known,
}

fn number(text: &str, find: Find) -> Result<NonZeroU32, NameError> {
    check(text)?;
    let found = match find {
        Find::Known => NAMES.known(text).ok_or(NameProblem::Unknown),
        Find::OrAdd(origin) => {
            let full = match origin {
                Origin::Program => NameProblem::TableFull,
                Origin::Parsed => NameProblem::TooManyParsed,
            };
            NAMES.intern(text, origin).map_err(|TableFull| full)
        }
    };
    match found {
        Ok((number, _)) => Ok(number),
        Err(problem) => Err(NameError { problem, at: 0 }),
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
            /// Returns the name with this text, for names of the program's own. O(length). Takes a
            /// lock, and allocates when the text is new.
            ///
            /// For a text from a stranger, call [`known`](Self::known), or parse it. Parsed texts
            /// take at most half of the places.
            ///
            /// # Errors
            /// [`NameError`] when the text is not a valid name, or the table of names is full.
            pub fn new(text: &str) -> Result<Self, NameError> {
                Self::find(text, Find::OrAdd(Origin::Program))
            }

            /// Returns the name with this text, if the program has it. Adds nothing. O(length).
            /// Takes a lock for reading.
            #[must_use]
            pub fn known(text: &str) -> Option<Self> {
                Self::find(text, Find::Known).ok()
            }

            pub(crate) fn find(text: &str, find: Find) -> Result<Self, NameError> {
                number(text, find).map(Self)
            }

            /// Returns the name's text. Takes a lock for reading.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                NAMES.text(self.0)
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            /// Finds or adds a name as [`new`](Self::new) does, but parsed names take at most
            /// [`MAX_PARSED`] places.
            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::find(text, Find::OrAdd(Origin::Parsed))
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
    /// The name of a host: a part of a node in which PIDs live, such as a scheduler.
    HostName
}

name_type! {
    /// The name of a node: usually an operating-system process.
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
    fn a_look_up_adds_no_name() {
        assert_eq!(HostName::known("looked up"), None);
        assert_eq!(HostName::known("looked-up"), None);
        assert_eq!(HostName::known("looked-up"), None);
        let name = HostName::new("looked-up").unwrap();
        assert_eq!(HostName::known("looked-up"), Some(name));
        assert_eq!(NodeName::known("local").unwrap().as_str(), "local");
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
