//! A frame of messages as it is filled. A message is encoded where it is sent from: no copy.

use super::header::{Acks, HEADER, Header};
use super::message::{LENGTH, Messages};
use super::routes::Route;
use super::symbols::{DEFINITION, FIRST, INLINE, Mark, Spelling, SymbolKind, Symbols};
use super::varint;
use crate::id::{Half, Lane};
use bytes::Bytes;
use ganger_proc_api::HostName;

/// The least capacity of a frame's buffer.
const CAPACITY: usize = 512;

/// Room for the header, then messages.
#[derive(Debug)]
pub(crate) struct Packer {
    buffer: Vec<u8>,
    count: u32,
}

impl Packer {
    /// Creates an empty frame with memory for this number of bytes, or for a few.
    pub(crate) fn new(length: usize) -> Self {
        let mut buffer = Vec::with_capacity(length.max(CAPACITY));
        buffer.resize(HEADER, 0);
        Self { buffer, count: 0 }
    }

    /// Returns the length of the frame.
    pub(crate) fn len(&self) -> usize {
        self.buffer.len()
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Returns the credit for the frame.
    pub(crate) fn cost(&self) -> usize {
        self.buffer.len() - HEADER
    }

    /// Adds a message. Returns its length, or the length of its frame if that is more than `most`.
    /// Then frame and symbols are as before, also when `write` panics.
    pub(crate) fn add(
        &mut self,
        op: u8,
        most: usize,
        symbols: &mut Symbols,
        write: impl FnOnce(&mut Writer<'_>),
    ) -> Result<usize, usize> {
        let unfinished = Unfinished {
            begin: self.buffer.len(),
            mark: Some(symbols.mark()),
            buffer: &mut self.buffer,
            symbols,
        };
        let size = unfinished.finish(op, most, write)?;
        self.count += 1;
        Ok(size)
    }

    /// Moves the last message, of this length, into a frame of its own.
    pub(crate) fn split_last(&mut self, length: usize) -> Self {
        let mut last = Self::new(self.buffer.len());
        let at = self.buffer.len() - length;
        last.buffer.extend_from_slice(&self.buffer[at..]);
        last.count = 1;
        self.buffer.truncate(at);
        self.count -= 1;
        last
    }

    /// Returns the frame, with its header.
    pub(crate) fn seal(mut self, to: Half, from: Half, lane: Lane, seq: u64, acks: Acks) -> Bytes {
        let header = Header::data((to, from), lane, seq, acks, self.count);
        self.buffer[..HEADER].copy_from_slice(&header.encode());
        self.buffer.into()
    }

    /// Returns the messages of an unsent frame.
    pub(crate) fn into_messages(self) -> Messages {
        let count = self.count;
        Messages::packed(Bytes::from(self.buffer).slice(HEADER..), count)
    }
}

/// A message that is taken back by the drop, unless it is finished.
struct Unfinished<'a> {
    begin: usize,
    buffer: &'a mut Vec<u8>,
    symbols: &'a mut Symbols,
    mark: Option<Mark>,
}

impl Unfinished<'_> {
    /// Returns the length of the message, or the length of its frame if that is too long.
    fn finish(
        mut self,
        op: u8,
        most: usize,
        write: impl FnOnce(&mut Writer<'_>),
    ) -> Result<usize, usize> {
        let begin = self.begin;
        self.buffer.extend_from_slice(&[0; LENGTH]);
        self.buffer.push(op);
        let mut writer = Writer {
            end: begin + (most - HEADER),
            buffer: self.buffer,
            symbols: self.symbols,
            left_out: 0,
        };
        write(&mut writer);
        let left_out = writer.left_out;
        let size = self.buffer.len() - begin + left_out;
        let length = u16::try_from(size - LENGTH).ok().filter(|_| left_out == 0);
        let length = length.ok_or(HEADER + size)?;
        self.buffer[begin..begin + LENGTH].copy_from_slice(&length.to_le_bytes());
        self.mark = None;
        Ok(size)
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(mark) = self.mark.take() {
            self.buffer.truncate(self.begin);
            self.symbols.forget(mark);
        }
    }
}

/// Writes the body of a message into a frame. The receiver's [`Reader`](crate::Reader) reads the
/// fields in the same order.
#[derive(Debug)]
pub struct Writer<'a> {
    buffer: &'a mut Vec<u8>,
    symbols: &'a mut Symbols,
    /// The buffer's length must not pass it.
    end: usize,
    /// Bytes beyond the end, only counted.
    left_out: usize,
}

impl Writer<'_> {
    fn has_room(&mut self, length: usize) -> bool {
        let fits = self.left_out == 0 && self.buffer.len() + length <= self.end;
        if !fits {
            self.left_out += length;
        }
        fits
    }

    /// Appends a byte.
    pub fn u8(&mut self, byte: u8) {
        self.raw(&[byte]);
    }

    /// Appends a number, in up to ten bytes.
    pub fn varint(&mut self, number: u64) {
        if self.has_room(varint::length(number)) {
            varint::put(self.buffer, number);
        }
    }

    /// Appends bytes behind their length.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.varint(bytes.len() as u64);
        self.raw(bytes);
    }

    /// Appends bytes without a length, for the end of a message.
    pub fn raw(&mut self, bytes: &[u8]) {
        if self.has_room(bytes.len()) {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// Appends a text of several messages: its number, if sent before.
    pub fn symbol(&mut self, kind: SymbolKind, text: &str) {
        let spelling = self.symbols.spell(kind, text);
        self.spelled(spelling, || text);
    }

    /// Appends a host: its number, if sent before.
    pub(crate) fn host(&mut self, host: HostName) {
        let spelling = self.symbols.spell_host(host);
        self.spelled(spelling, || host.as_str());
    }

    /// Appends a route: its place, if sent before.
    pub(crate) fn route(&mut self, route: Route, write: impl FnOnce(&mut Self)) {
        let (place, number) = self.symbols.routes.say(route);
        let place = place as u64;
        let Some(number) = number else {
            return self.varint(place + FIRST);
        };
        self.varint(DEFINITION);
        self.varint(number);
        self.varint(place);
        write(self);
    }

    fn spelled<'t>(&mut self, spelling: Spelling, text: impl FnOnce() -> &'t str) {
        match spelling {
            Spelling::Number(number) => return self.varint(number + FIRST),
            Spelling::Inline => self.varint(INLINE),
            Spelling::Definition(number) => {
                self.varint(DEFINITION);
                self.varint(number);
            }
        }
        self.bytes(text().as_bytes());
    }
}
