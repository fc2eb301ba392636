//! The messages in a frame, and their fields. All share the frame's bytes.

use super::header::FrameError;
use super::routes::{ROUTES, Route};
use super::symbols::{DEFINITION, FIRST, Found, INLINE, Known, SymbolKind};
use super::varint;
use bytes::{Buf, Bytes};
use std::sync::Arc;
use thiserror::Error;

/// The bytes before each message: its length.
pub(super) const LENGTH: usize = 2;

/// A message as the peer has sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The kind of message, by the protocol above sessions.
    pub op: u8,
    /// The body.
    pub body: Bytes,
    /// How much credit the message has taken: see [`Session::consumed`](crate::Session::consumed).
    pub cost: usize,
}

/// The messages of a frame, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Messages {
    body: Bytes,
    left: u32,
}

impl Messages {
    /// Checks all lengths.
    pub(super) fn parse(body: Bytes, count: u32) -> Result<Self, FrameError> {
        let mut rest = &body[..];
        for _ in 0..count {
            let message = length(rest).and_then(|length| rest.get(LENGTH..LENGTH + length));
            let message = message.filter(|it| !it.is_empty());
            let message = message.ok_or(FrameError::Messages)?;
            rest = &rest[LENGTH + message.len()..];
        }
        let has_all = rest.is_empty() && count > 0;
        has_all
            .then_some(Self { body, left: count })
            .ok_or(FrameError::Messages)
    }

    /// Returns messages from the own packer, whose lengths are known to be right.
    pub(super) fn packed(body: Bytes, count: u32) -> Self {
        Self { body, left: count }
    }

    /// Returns the bytes of the messages, and how many these are.
    pub(super) fn as_bytes(&self) -> (&[u8], u32) {
        (&self.body, self.left)
    }

    /// Returns the credit that the messages not yet taken from this iterator have taken.
    #[must_use]
    pub fn cost(&self) -> usize {
        self.body.len()
    }
}

/// Returns the length that a row of messages begins with.
fn length(rest: &[u8]) -> Option<usize> {
    let length = rest.first_chunk::<LENGTH>()?;
    Some(usize::from(u16::from_le_bytes(*length)))
}

impl Iterator for Messages {
    type Item = Message;

    fn next(&mut self) -> Option<Message> {
        self.left = self.left.checked_sub(1)?;
        let length = length(&self.body)?;
        let mut body = self.body.split_to(LENGTH + length);
        let cost = body.len();
        body.advance(LENGTH);
        let op = body.get_u8();
        Some(Message { op, body, cost })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.left as usize;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Messages {}

/// A message's body is not as its receiver expects it. The session must end: see
/// [`Session::fail`](crate::Session::fail).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The body ends too early, or a number has a wrong form.
    #[error("a message ends too early")]
    Short,
    /// A text is not UTF-8.
    #[error("a text in a message is not UTF-8")]
    Text,
    /// A symbol's number is unknown, or not the next, or the table is full.
    #[error("a message has an unknown symbol, or a definition out of turn")]
    Symbol,
}

/// A symbol as it has come: its text, or its number in the table.
pub(crate) enum Spelled {
    Inline(Arc<str>),
    Number(u64),
}

impl Spelled {
    pub(crate) fn text(self, known: &Known, kind: SymbolKind) -> Result<Arc<str>, ReadError> {
        match self {
            Self::Inline(text) => Ok(text),
            Self::Number(number) => known.text(kind, number).cloned().ok_or(ReadError::Symbol),
        }
    }
}

/// Reads the fields of a message, in the order of the [`Writer`](crate::Writer).
#[derive(Debug)]
pub struct Reader {
    body: Bytes,
}

impl Reader {
    /// Starts at the begin of a body.
    #[must_use]
    pub fn new(body: Bytes) -> Self {
        Self { body }
    }

    /// Reads a byte.
    ///
    /// # Errors
    ///
    /// Nothing is left.
    pub fn u8(&mut self) -> Result<u8, ReadError> {
        self.body.try_get_u8().map_err(|_| ReadError::Short)
    }

    /// Reads a number.
    ///
    /// # Errors
    ///
    /// The next bytes are not a number in its form.
    pub fn varint(&mut self) -> Result<u64, ReadError> {
        let mut rest = &self.body[..];
        let number = varint::take(&mut rest).ok_or(ReadError::Short)?;
        let left = rest.len();
        self.body.advance(self.body.len() - left);
        Ok(number)
    }

    /// Reads bytes behind their length, shared with the frame.
    ///
    /// # Errors
    ///
    /// Less is left than the length says.
    pub fn bytes(&mut self) -> Result<Bytes, ReadError> {
        let length = self.length()?;
        Ok(self.body.split_to(length))
    }

    /// Reads bytes behind their length in their place; returns the bytes, where `read` fails.
    pub(crate) fn bytes_in_place<R>(
        &mut self,
        read: impl FnOnce(&[u8]) -> Option<R>,
    ) -> Result<Result<R, Bytes>, ReadError> {
        let length = self.length()?;
        Ok(match read(&self.body[..length]) {
            Some(read) => {
                self.body.advance(length);
                Ok(read)
            }
            None => Err(self.body.split_to(length)),
        })
    }

    fn length(&mut self) -> Result<usize, ReadError> {
        let length = usize::try_from(self.varint()?).map_err(|_| ReadError::Short)?;
        let is_there = length <= self.body.len();
        is_there.then_some(length).ok_or(ReadError::Short)
    }

    /// Reads a symbol, by the table of the message's session and lane.
    ///
    /// # Errors
    ///
    /// The table and the message do not fit.
    pub fn symbol(&mut self, known: &mut Known, kind: SymbolKind) -> Result<Arc<str>, ReadError> {
        self.spelled(known, kind)?.text(known, kind)
    }

    /// Returns the value found by a symbol, kept in the table.
    pub(crate) fn find<T: Copy>(
        &mut self,
        known: &mut Known,
        kind: SymbolKind,
        found: fn(&mut Known) -> &mut Found<T>,
        look: impl FnOnce(&str) -> Result<T, ReadError>,
    ) -> Result<(T, Spelled), ReadError> {
        let spelled = self.spelled(known, kind)?;
        let value = match &spelled {
            Spelled::Inline(text) => look(text)?,
            Spelled::Number(number) => match found(known).get(*number) {
                Some(value) => value,
                None => {
                    let text = known.text(kind, *number).ok_or(ReadError::Symbol)?;
                    let value = look(text)?;
                    found(known).keep(*number, value);
                    value
                }
            },
        };
        Ok((value, spelled))
    }

    /// Reads a route, of which `read` reads the parts, by the table of the message's session and
    /// lane.
    pub(crate) fn route(
        &mut self,
        known: &mut Known,
        read: impl FnOnce(&mut Self, &mut Known) -> Result<Route, ReadError>,
    ) -> Result<Route, ReadError> {
        let place = |number: u64| {
            let place = usize::try_from(number).ok();
            place.filter(|it| *it < ROUTES).ok_or(ReadError::Symbol)
        };
        match self.varint()? {
            INLINE => read(self, known),
            DEFINITION => {
                if self.varint()? != known.routes.said() {
                    return Err(ReadError::Symbol);
                }
                let place = place(self.varint()?)?;
                let route = read(self, known)?;
                known.routes.keep(place, route);
                Ok(route)
            }
            number => {
                let place = place(number - FIRST)?;
                known.routes.get(place).ok_or(ReadError::Symbol)
            }
        }
    }

    fn spelled(&mut self, known: &mut Known, kind: SymbolKind) -> Result<Spelled, ReadError> {
        Ok(match self.varint()? {
            INLINE => Spelled::Inline(self.text()?),
            DEFINITION => {
                let number = self.varint()?;
                let text = self.text()?;
                let is_next = known.define(kind, number, &text);
                Spelled::Number(is_next.then_some(number).ok_or(ReadError::Symbol)?)
            }
            number => Spelled::Number(number - FIRST),
        })
    }

    fn text(&mut self) -> Result<Arc<str>, ReadError> {
        let bytes = self.bytes()?;
        let text = std::str::from_utf8(&bytes).map_err(|_| ReadError::Text)?;
        Ok(text.into())
    }

    /// Returns whether nothing is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.body.is_empty()
    }

    /// Returns the rest of the bytes.
    #[must_use]
    pub fn rest(self) -> Bytes {
        self.body
    }
}
