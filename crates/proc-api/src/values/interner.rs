//! Text that is stored once and never freed, so that a small number or a `'static` reference can
//! name it.
//!
//! A table holds a bounded number of entries. Names are bounded in length as well, so PIDs from
//! outside cannot exhaust memory.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{PoisonError, RwLock};

/// How many different texts a table holds: host and node names share one table, dynamic symbols
/// have another.
pub const MAX_INTERNED: usize = 65_536;

/// The table is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableFull;

pub(crate) struct Interner {
    table: RwLock<Option<Table>>,
}

#[derive(Default)]
struct Table {
    by_text: HashMap<&'static str, NonZeroU32>,
    by_number: Vec<&'static str>,
}

impl Interner {
    pub(crate) const fn new() -> Self {
        Self {
            table: RwLock::new(None),
        }
    }

    /// The number and the stored copy of `text`. O(length). Takes a lock, and allocates when the
    /// text is new.
    pub(crate) fn intern(&self, text: &str) -> Result<(NonZeroU32, &'static str), TableFull> {
        if let Some(found) = self.find(text) {
            return Ok(found);
        }
        let mut guard = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let table = guard.get_or_insert_default();
        if let Some((&stored, &number)) = table.by_text.get_key_value(text) {
            return Ok((number, stored));
        }
        if table.by_number.len() >= MAX_INTERNED {
            return Err(TableFull);
        }
        let stored: &'static str = Box::leak(text.into());
        table.by_number.push(stored);
        let number = u32::try_from(table.by_number.len())
            .ok()
            .and_then(NonZeroU32::new);
        let number = number.ok_or(TableFull)?;
        table.by_text.insert(stored, number);
        Ok((number, stored))
    }

    /// The text with that number. Numbers come from `intern` alone, so there is always one.
    pub(crate) fn text(&self, number: NonZeroU32) -> &'static str {
        let guard = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let index = number.get() as usize - 1;
        guard
            .as_ref()
            .and_then(|table| table.by_number.get(index))
            .copied()
            .unwrap_or_default()
    }

    fn find(&self, text: &str) -> Option<(NonZeroU32, &'static str)> {
        let guard = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let (&stored, &number) = guard.as_ref()?.by_text.get_key_value(text)?;
        Some((number, stored))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_text_has_one_number() {
        let interner = Interner::new();
        let (a, text) = interner.intern("a").unwrap();
        let (b, _) = interner.intern("b").unwrap();
        assert_ne!(a, b);
        assert_eq!(interner.intern("a").unwrap(), (a, text));
        assert_eq!((interner.text(a), interner.text(b)), ("a", "b"));
    }

    #[test]
    fn a_full_table_refuses_new_text_and_knows_the_old() {
        let interner = Interner::new();
        for n in 0..MAX_INTERNED {
            interner.intern(&n.to_string()).unwrap();
        }
        assert_eq!(interner.intern("one more"), Err(TableFull));
        assert_eq!(interner.intern("17").map(|(_, text)| text), Ok("17"));
    }
}
