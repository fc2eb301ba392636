//! Text, stored once and never freed: a small number or a `'static` reference names it.
//!
//! **Problem.** A program gives names, and reads names from strangers. The names of strangers must
//! neither exhaust memory nor take the room of the program's own names.
//!
//! **Rejected.** Freeing unused text: a name is `Copy`, and nothing knows its copies.
//!
//! A table holds a bounded number of texts, each of bounded length. Parsed texts have at most half
//! of the places. So the program has the other half for its own texts, even if strangers have
//! filled theirs. The names of the defaults are present from the beginning.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

/// The most different texts in a table. Host and node names share a table; dynamic symbols have
/// another. A stored text is never freed.
pub const MAX_INTERNED: usize = 65_536;

/// How many of the [`MAX_INTERNED`] texts of a table may come from parsing.
pub const MAX_PARSED: usize = MAX_INTERNED / 2;

/// How a text comes into a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The program makes it.
    Program,
    /// The program parses it, so a stranger may have sent it.
    Parsed,
}

/// The table has no room for texts of this origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableFull;

pub(crate) struct Interner {
    /// The texts of every new table.
    first: &'static [&'static str],
    table: RwLock<Option<Table>>,
}

#[derive(Default)]
struct Table {
    by_text: HashMap<&'static str, NonZeroU32>,
    by_number: Vec<&'static str>,
    /// How many of these have been parsed.
    parsed: usize,
}

impl Interner {
    pub(crate) const fn new(first: &'static [&'static str]) -> Self {
        Self {
            first,
            table: RwLock::new(None),
        }
    }

    /// Stores `text`, and returns its number and the stored copy. O(length). Takes a lock, and
    /// allocates when the text is new.
    pub(crate) fn intern(
        &self,
        text: &str,
        origin: Origin,
    ) -> Result<(NonZeroU32, &'static str), TableFull> {
        if let Some(found) = self.known(text) {
            return Ok(found);
        }
        let mut guard = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let table = guard.get_or_insert_with(|| Table::new(self.first));
        // Another thread may have added it meanwhile.
        match table.find(text) {
            Some(found) => Ok(found),
            None => table.add(text, origin),
        }
    }

    /// Returns the number and the stored copy of `text`, if it is stored. Adds nothing. O(length).
    pub(crate) fn known(&self, text: &str) -> Option<(NonZeroU32, &'static str)> {
        let guard = self.read();
        match guard.as_ref() {
            Some(table) => table.find(text),
            None => {
                let index = self.first.iter().position(|&first| first == text)?;
                Some((number_at(index)?, self.first[index]))
            }
        }
    }

    /// Returns the text with this number. Only the table gives numbers, so each number has a text.
    pub(crate) fn text(&self, number: NonZeroU32) -> &'static str {
        let index = number.get() as usize - 1;
        let guard = self.read();
        let texts = guard
            .as_ref()
            .map_or(self.first, |table| table.by_number.as_slice());
        texts.get(index).copied().unwrap_or_default()
    }

    fn read(&self) -> RwLockReadGuard<'_, Option<Table>> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn new(first: &[&'static str]) -> Self {
        let mut table = Self::default();
        for &text in first {
            let _within_bounds = table.insert(text);
        }
        table
    }

    fn find(&self, text: &str) -> Option<(NonZeroU32, &'static str)> {
        let (&stored, &number) = self.by_text.get_key_value(text)?;
        Some((number, stored))
    }

    fn add(&mut self, text: &str, origin: Origin) -> Result<(NonZeroU32, &'static str), TableFull> {
        let is_full = match origin {
            Origin::Program => false,
            Origin::Parsed => self.parsed >= MAX_PARSED,
        };
        if is_full || self.by_number.len() >= MAX_INTERNED {
            return Err(TableFull);
        }
        let stored = Box::leak(text.into());
        let number = self.insert(stored)?;
        self.parsed += usize::from(origin == Origin::Parsed);
        Ok((number, stored))
    }

    fn insert(&mut self, stored: &'static str) -> Result<NonZeroU32, TableFull> {
        let number = number_at(self.by_number.len()).ok_or(TableFull)?;
        self.by_number.push(stored);
        self.by_text.insert(stored, number);
        Ok(number)
    }
}

/// Returns the number of the text at `index`.
fn number_at(index: usize) -> Option<NonZeroU32> {
    NonZeroU32::new(u32::try_from(index + 1).ok()?)
}

#[cfg(test)]
mod tests {
    use super::Origin::{Parsed, Program};
    use super::*;

    #[test]
    fn the_same_text_has_one_number() {
        let interner = Interner::new(&[]);
        let (a, text) = interner.intern("a", Program).unwrap();
        let (b, _) = interner.intern("b", Parsed).unwrap();
        assert_ne!(a, b);
        assert_eq!(interner.intern("a", Parsed).unwrap(), (a, text));
        assert_eq!((interner.text(a), interner.text(b)), ("a", "b"));
    }

    #[test]
    fn the_first_texts_are_known_before_and_after_the_first_addition() {
        let interner = Interner::new(&["x", "y"]);
        let (y, _) = interner.known("y").unwrap();
        assert_eq!((y.get(), interner.text(y)), (2, "y"));
        assert_eq!(interner.known("z"), None);
        assert!(interner.read().is_none(), "a look-up makes no table");
        let (z, _) = interner.intern("z", Parsed).unwrap();
        assert_eq!((z.get(), interner.text(z)), (3, "z"));
        assert_eq!(interner.intern("y", Program), Ok((y, "y")));
    }

    #[test]
    fn a_full_table_refuses_new_text_and_knows_the_old() {
        let interner = Interner::new(&["first"]);
        for n in 1..MAX_INTERNED {
            interner.intern(&n.to_string(), Program).unwrap();
        }
        assert_eq!(interner.intern("one more", Program), Err(TableFull));
        assert_eq!(interner.intern("one more", Parsed), Err(TableFull));
        assert_eq!(interner.known("one more"), None);
        for text in ["first", "17"] {
            let stored = interner.intern(text, Parsed).map(|(_, text)| text);
            assert_eq!(stored, Ok(text));
        }
    }

    #[test]
    fn what_is_parsed_has_half_of_the_table_and_the_program_the_rest() {
        let interner = Interner::new(&["first"]);
        for n in 0..MAX_PARSED {
            interner.intern(&format!("parsed {n}"), Parsed).unwrap();
        }
        assert_eq!(interner.intern("one more", Parsed), Err(TableFull));
        assert!(interner.intern("parsed 0", Parsed).is_ok());
        for n in 1..MAX_INTERNED - MAX_PARSED {
            interner.intern(&format!("own {n}"), Program).unwrap();
        }
        assert_eq!(interner.intern("one more", Program), Err(TableFull));
    }
}
