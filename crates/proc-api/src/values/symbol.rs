//! Short texts that are compared often and made rarely: topics, methods, names of factories.

use super::interner::{Interner, MAX_INTERNED, TableFull};
use std::fmt;
use std::ops::Deref;

static SYMBOLS: Interner = Interner::new();

/// A text that is never freed: `Copy`, sixteen bytes, free to make from a literal.
///
/// ```
/// use ganger_proc_api::Symbol;
/// let topic: Symbol = "greeting".into();
/// assert_eq!(topic, Symbol::intern(&["greet", "ing"].concat())?);
/// assert_eq!(topic, "greeting");
/// # Ok::<(), ganger_proc_api::InternError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Symbol(&'static str);

/// No symbol was made of a text, because the table of symbols is full.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there are {MAX_INTERNED} symbols already; {text:?} can't be added")]
pub struct InternError {
    /// The text that was refused.
    pub text: String,
}

impl Symbol {
    /// The symbol of a `'static` text. Free.
    #[must_use]
    pub const fn new(text: &'static str) -> Self {
        Self(text)
    }

    /// The symbol of any text, which is stored once and never freed. O(length). Takes a lock.
    ///
    /// # Errors
    /// [`InternError`], with the text, when the table holds [`MAX_INTERNED`] others.
    pub fn intern(text: &str) -> Result<Self, InternError> {
        match SYMBOLS.intern(text) {
            Ok((_, stored)) => Ok(Self(stored)),
            Err(TableFull) => Err(InternError {
                text: text.to_owned(),
            }),
        }
    }

    /// The text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl From<&'static str> for Symbol {
    fn from(text: &'static str) -> Self {
        Self(text)
    }
}

impl Deref for Symbol {
    type Target = str;

    fn deref(&self) -> &str {
        self.0
    }
}

impl PartialEq<str> for Symbol {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for Symbol {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}
