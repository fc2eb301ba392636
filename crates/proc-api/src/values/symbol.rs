//! Short texts, compared often and made rarely: topics, methods, names of factories.

use super::interner::{Interner, MAX_INTERNED, MAX_PARSED, Origin, TableFull};
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

/// The most bytes of a symbol, except of a `'static` text.
pub const MAX_SYMBOL_BYTES: usize = 255;

static SYMBOLS: Interner = Interner::new(&[]);

/// A text, never freed: `Copy`, sixteen bytes, free to make from a literal.
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

/// No symbol was made of a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InternError {
    /// The text has more than [`MAX_SYMBOL_BYTES`] bytes.
    #[error("the text has {0} bytes; a symbol must have at most {MAX_SYMBOL_BYTES}")]
    TooLong(usize),
    /// [`MAX_INTERNED`] other symbols exist, made or parsed by the program.
    #[error(
        "can't add the symbol {0:?}: {MAX_INTERNED} exist, and symbols are never freed; create \
         fewer, and look text from outside up with `known`"
    )]
    TableFull(String),
    /// [`MAX_PARSED`] other symbols have been parsed.
    #[error(
        "can't add the symbol {0:?}: {MAX_PARSED} have been parsed, and symbols are never freed; \
         create the expected symbols with `intern`, and look others up with `known`"
    )]
    TooManyParsed(String),
}

impl Symbol {
    /// Creates the symbol of a `'static` text. Free.
    #[must_use]
    pub const fn new(text: &'static str) -> Self {
        Self(text)
    }

    /// Returns the symbol of any text of the program's own. The text is stored once and never
    /// freed. O(length). Takes a lock.
    ///
    /// For a text from a stranger, call [`known`](Self::known), or parse it. Parsed texts take at
    /// most half of the places.
    ///
    /// # Errors
    /// [`InternError`], when the text is too long, or the table holds [`MAX_INTERNED`] other texts.
    pub fn intern(text: &str) -> Result<Self, InternError> {
        store(text, Origin::Program, InternError::TableFull)
    }

    /// Returns the symbol of a stored text. Adds nothing. O(length). Takes a lock for reading.
    ///
    /// A symbol of a literal is not stored. So a program with topics from strangers stores its
    /// known topics at its start.
    ///
    /// ```
    /// use ganger_proc_api::Symbol;
    /// assert_eq!(Symbol::known("order"), None);
    /// let order = Symbol::intern("order")?;
    /// let from_outside = String::from("order");
    /// assert_eq!(Symbol::known(&from_outside), Some(order));
    /// # Ok::<(), ganger_proc_api::InternError>(())
    /// ```
    #[must_use]
    pub fn known(text: &str) -> Option<Self> {
        SYMBOLS.known(text).map(|(_, stored)| Self(stored))
    }

    /// Returns the text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

fn store(
    text: &str,
    origin: Origin,
    full: fn(String) -> InternError,
) -> Result<Symbol, InternError> {
    if text.len() > MAX_SYMBOL_BYTES {
        return Err(InternError::TooLong(text.len()));
    }
    match SYMBOLS.intern(text, origin) {
        Ok((_, stored)) => Ok(Symbol(stored)),
        Err(TableFull) => Err(full(text.to_owned())),
    }
}

impl FromStr for Symbol {
    type Err = InternError;

    /// Interns a text as [`intern`](Self::intern) does, but parsed texts take at most
    /// [`MAX_PARSED`] places.
    fn from_str(text: &str) -> Result<Self, InternError> {
        store(text, Origin::Parsed, InternError::TooManyParsed)
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
