//! Texts repeated by most messages: a sender says each once, and then its number.
//!
//! A session has tables for each lane and direction. A lane is FIFO and loses nothing, so the
//! receiver's table follows the sender's. Both are dropped with the session.
//!
//! 1. The sender writes 1, the next number and the text, and keeps the pair.
//! 2. Later it writes the number + 2.
//! 3. With a full table, or a long text, it writes 0 and the text.
//!
//! A receiver that skips a definition would read later symbols as wrong texts. So a definition has
//! its number, and the receiver refuses a number out of turn.

use super::routes::Routes;
use ganger_proc_api::{HostName, Symbol};
use std::collections::HashMap;
use std::sync::Arc;

/// The most symbols of each kind in a table.
pub const MAX_SYMBOLS: usize = 4096;

/// The most bytes of a text in a table.
pub const MAX_SYMBOL: usize = 255;

pub(super) const INLINE: u64 = 0;
pub(super) const DEFINITION: u64 = 1;
pub(super) const FIRST: u64 = 2;

/// The use of a text. Each kind has numbers of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolKind {
    /// A host of a node.
    Host,
    /// A topic of messages.
    Topic,
    /// A type of values.
    Type,
}

const KINDS: usize = 3;

/// The sender's table.
#[derive(Debug, Default)]
pub struct Symbols {
    numbers: [HashMap<Arc<str>, u64>; KINDS],
    order: [Vec<Arc<str>>; KINDS],
    /// The place of the last text in its order: most messages repeat the texts of the one before.
    last: [usize; KINDS],
    /// The last host, and its number: a host's text is behind a lock.
    host: Option<(HostName, u64)>,
    pub(super) routes: Routes,
}

/// How a text is written.
#[derive(Debug)]
pub(super) enum Spelling {
    Inline,
    Definition(u64),
    Number(u64),
}

/// How many symbols a table has had.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    of_kinds: [usize; KINDS],
    routes: u64,
}

impl Symbols {
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            of_kinds: std::array::from_fn(|kind| self.order[kind].len()),
            routes: self.routes.said(),
        }
    }

    /// Forgets the symbols of a refused message.
    pub(crate) fn forget(&mut self, since: Mark) {
        self.host = None;
        self.routes.forget(since.routes);
        for (kind, length) in since.of_kinds.into_iter().enumerate() {
            for text in self.order[kind].drain(length..) {
                self.numbers[kind].remove(&text);
            }
        }
    }

    /// Returns how to write a host now.
    pub(super) fn spell_host(&mut self, host: HostName) -> Spelling {
        if let Some((_, number)) = self.host.filter(|(last, _)| *last == host) {
            return Spelling::Number(number);
        }
        let spelling = self.spell(SymbolKind::Host, host.as_str());
        if let Spelling::Number(number) | Spelling::Definition(number) = spelling {
            self.host = Some((host, number));
        }
        spelling
    }

    /// Returns how to write a text now. A definition is kept.
    pub(super) fn spell(&mut self, kind: SymbolKind, text: &str) -> Spelling {
        let (numbers, order) = (
            &mut self.numbers[kind as usize],
            &mut self.order[kind as usize],
        );
        let last = &mut self.last[kind as usize];
        if order.get(*last).is_some_and(|known| **known == *text) {
            return Spelling::Number(*last as u64);
        }
        if let Some(number) = numbers.get(text) {
            *last = usize::try_from(*number).unwrap_or(0);
            return Spelling::Number(*number);
        }
        let next = order.len();
        if next >= MAX_SYMBOLS || text.len() > MAX_SYMBOL {
            return Spelling::Inline;
        }
        let text: Arc<str> = text.into();
        numbers.insert(text.clone(), next as u64);
        order.push(text);
        Spelling::Definition(next as u64)
    }
}

/// The receiver's table of a session and lane. Dropped when the session ends.
#[derive(Debug, Default)]
pub struct Known {
    texts: [Vec<Arc<str>>; KINDS],
    pub(crate) hosts: Found<HostName>,
    pub(crate) topics: Found<Symbol>,
    /// The places of codecs.
    pub(crate) types: Found<Option<usize>>,
    pub(super) routes: Routes,
}

/// Values found by the texts of a table: a text is looked up once in a session.
#[derive(Debug)]
pub(crate) struct Found<T>(Vec<Option<T>>);

impl<T> Default for Found<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Copy> Found<T> {
    pub(super) fn get(&self, number: u64) -> Option<T> {
        *self.0.get(usize::try_from(number).ok()?)?
    }

    /// Keeps a value found by a text of the table.
    pub(super) fn keep(&mut self, number: u64, found: T) {
        let place = usize::try_from(number).unwrap_or(MAX_SYMBOLS);
        if place < MAX_SYMBOLS {
            self.0.resize(self.0.len().max(place + 1), None);
            self.0[place] = Some(found);
        }
    }
}

impl Known {
    /// Keeps a definition. False: it is out of turn, or beyond the table.
    pub(super) fn define(&mut self, kind: SymbolKind, number: u64, text: &Arc<str>) -> bool {
        let texts = &mut self.texts[kind as usize];
        let is_next = number == texts.len() as u64;
        let fits = is_next && texts.len() < MAX_SYMBOLS && text.len() <= MAX_SYMBOL;
        if fits {
            texts.push(text.clone());
        }
        fits
    }

    pub(super) fn text(&self, kind: SymbolKind, number: u64) -> Option<&Arc<str>> {
        let place = usize::try_from(number).ok()?;
        self.texts[kind as usize].get(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_of_a_refused_message_is_defined_again() {
        let mut symbols = Symbols::default();
        let host = HostName::new("of-a-refused-message").unwrap();
        let mark = symbols.mark();
        for _ in 0..2 {
            let first = symbols.spell_host(host);
            assert!(matches!(first, Spelling::Definition(0)), "{first:?}");
            let second = symbols.spell_host(host);
            assert!(matches!(second, Spelling::Number(0)), "{second:?}");
            symbols.forget(mark);
        }
    }
}
