//! Texts that most messages repeat: a sender says each once, and then its number.
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

use super::message::{ReadError, Reader};
use super::packer::Writer;
use std::collections::HashMap;
use std::sync::Arc;

/// The most symbols of each kind in a table.
pub const MAX_SYMBOLS: usize = 4096;

/// The most bytes of a text in a table.
pub const MAX_SYMBOL: usize = 255;

const INLINE: u64 = 0;
const DEFINITION: u64 = 1;
const FIRST: u64 = 2;

/// What a text is the name of. Each kind has numbers of its own.
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
}

/// How many symbols a table has had.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark([usize; KINDS]);

impl Symbols {
    pub(crate) fn mark(&self) -> Mark {
        Mark(std::array::from_fn(|kind| self.order[kind].len()))
    }

    /// Forgets the symbols of a message that is not sent.
    pub(crate) fn forget(&mut self, since: Mark) {
        for (kind, length) in since.0.into_iter().enumerate() {
            for text in self.order[kind].drain(length..) {
                self.numbers[kind].remove(&text);
            }
        }
    }

    pub(super) fn write(writer: &mut Writer<'_>, kind: SymbolKind, text: &str) {
        let table = &mut *writer.symbols;
        let (numbers, order) = (
            &mut table.numbers[kind as usize],
            &mut table.order[kind as usize],
        );
        if let Some(number) = numbers.get(text) {
            let number = *number;
            writer.varint(number + FIRST);
            return;
        }
        let next = order.len();
        let is_kept = next < MAX_SYMBOLS && text.len() <= MAX_SYMBOL;
        if is_kept {
            let text: Arc<str> = text.into();
            numbers.insert(text.clone(), next as u64);
            order.push(text);
            writer.varint(DEFINITION);
            writer.varint(next as u64);
        } else {
            writer.varint(INLINE);
        }
        writer.bytes(text.as_bytes());
    }
}

/// The receiver's table: of one session and lane. Dropped when the session ends.
#[derive(Debug, Default)]
pub struct Known {
    texts: [Vec<Arc<str>>; KINDS],
}

impl Known {
    pub(super) fn read(
        &mut self,
        reader: &mut Reader,
        kind: SymbolKind,
    ) -> Result<Arc<str>, ReadError> {
        let texts = &mut self.texts[kind as usize];
        match reader.varint()? {
            INLINE => text(reader),
            DEFINITION => {
                let is_next = reader.varint()? == texts.len() as u64;
                let text = text(reader)?;
                if !is_next || texts.len() >= MAX_SYMBOLS || text.len() > MAX_SYMBOL {
                    return Err(ReadError::Symbol);
                }
                texts.push(text.clone());
                Ok(text)
            }
            number => {
                let place = usize::try_from(number - FIRST).ok();
                let text = place.and_then(|place| texts.get(place));
                text.cloned().ok_or(ReadError::Symbol)
            }
        }
    }
}

fn text(reader: &mut Reader) -> Result<Arc<str>, ReadError> {
    let bytes = reader.bytes()?;
    let text = std::str::from_utf8(&bytes).map_err(|_| ReadError::Text)?;
    Ok(text.into())
}
