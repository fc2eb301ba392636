//! Messages larger than a frame.
//!
//! **Problem.** A message of many frames must not hold up all others of its lane, and a later
//! message of the same sender must not overtake it.
//!
//! **Protocol.**
//! 1. *Sender*: cuts the message into chunks, and puts a few into the lane at a time, in turn with
//!    those of other large messages. Other messages go between them.
//! 2. *Sender*: later messages of the same source, large or small, wait behind it.
//! 3. *Receiver*: the first chunk says the whole length. The receiver checks it before it keeps
//!    anything, and grows its buffer with what has come.
//! 4. *Sender*: a message counts with its whole length until its last chunk has left, as at the
//!    receiver. So a sender holds no more than the receiver takes.
//!
//! A lane loses nothing and keeps the order, so a chunk needs no offset.

use crate::wire::{ReadError, Reader};
use bytes::{Buf, Bytes};
use ganger_proc_api::Pid;
use std::collections::{HashMap, VecDeque};

const FIRST: u8 = 1;
const LAST: u8 = 2;

/// The source of a message, which keeps the order of its messages.
pub(crate) type Key = Option<Pid>;

/// What leaves next.
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    /// A whole message.
    Whole(u8, Bytes),
    /// A part of a message.
    Chunk {
        stream: u64,
        flags: u8,
        total: usize,
        bytes: Bytes,
    },
}

impl Next {
    /// Returns the fields of a chunk.
    pub(crate) fn head(stream: u64, flags: u8, total: usize) -> (u64, u8, Option<u64>) {
        let total = (flags & FIRST != 0).then_some(total as u64);
        (stream, flags, total)
    }
}

#[derive(Debug)]
struct Stream {
    key: Key,
    /// Each with its kind of message.
    waiting: VecDeque<(u8, Bytes)>,
    /// The number, the whole length, and the rest of a message that is under way.
    current: Option<(u64, usize, Bytes)>,
}

/// The large messages of a lane at their sender.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    open: VecDeque<Stream>,
    last: u64,
    held: usize,
}

impl Streams {
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns the number of messages that have not left.
    pub(crate) fn len(&self) -> usize {
        let counts = self.open.iter();
        let counts = counts.map(|it| it.waiting.len() + usize::from(it.current.is_some()));
        counts.sum()
    }

    /// Returns the number of bytes of the messages with a chunk left.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// Returns whether a message of this length may wait, where all have at most `most` bytes. Any
    /// may wait alone.
    pub(crate) fn has_room_for(&self, length: usize, most: usize) -> bool {
        self.is_empty() || self.held + length <= most
    }

    /// Returns whether messages of this source wait here, so later messages go behind them.
    pub(crate) fn has(&self, key: Key) -> bool {
        self.open.iter().any(|it| it.key == key)
    }

    /// Adds a message, behind earlier messages of its source.
    pub(crate) fn push(&mut self, key: Key, op: u8, bytes: Bytes) {
        self.held += bytes.len();
        let same = self.open.iter_mut().find(|it| it.key == key);
        if let Some(stream) = same {
            return stream.waiting.push_back((op, bytes));
        }
        self.open.push_back(Stream {
            key,
            waiting: VecDeque::from([(op, bytes)]),
            current: None,
        });
    }

    /// Returns the next part to leave, of at most `most` bytes. The sources take turns.
    pub(crate) fn next(&mut self, most: usize) -> Option<Next> {
        let mut stream = self.open.pop_front()?;
        let next = match stream.current.take() {
            Some((number, total, rest)) => self.chunk(&mut stream, number, total, rest, most),
            None => {
                let (op, bytes) = stream.waiting.pop_front()?;
                if bytes.len() < most {
                    self.held -= bytes.len();
                    Next::Whole(op, bytes)
                } else {
                    // The kind of message is the first byte of the whole.
                    self.last += 1;
                    let mut whole = bytes::BytesMut::with_capacity(bytes.len() + 1);
                    whole.extend_from_slice(&[op]);
                    whole.extend_from_slice(&bytes);
                    self.held += 1;
                    let total = whole.len();
                    self.chunk(&mut stream, self.last, total, whole.freeze(), most)
                }
            }
        };
        if stream.current.is_some() || !stream.waiting.is_empty() {
            self.open.push_back(stream);
        }
        Some(next)
    }

    fn chunk(
        &mut self,
        stream: &mut Stream,
        number: u64,
        total: usize,
        mut rest: Bytes,
        most: usize,
    ) -> Next {
        let first = if rest.len() == total { FIRST } else { 0 };
        let bytes = rest.split_to(most.min(rest.len()));
        let last = if rest.is_empty() { LAST } else { 0 };
        if last == 0 {
            stream.current = Some((number, total, rest));
        } else {
            self.held -= total;
        }
        Next::Chunk {
            stream: number,
            flags: first | last,
            total,
            bytes,
        }
    }
}

/// The large messages of a lane at their receiver.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    open: HashMap<u64, (Vec<u8>, usize)>,
    /// The sum of the whole lengths of all open messages.
    claimed: usize,
}

impl Assembly {
    /// Takes a chunk. Returns the kind and the bytes of a message that is whole now. All open
    /// messages together have at most `most` bytes.
    pub(crate) fn take(
        &mut self,
        mut reader: Reader,
        most: usize,
    ) -> Result<Option<(u8, Bytes)>, ReadError> {
        let number = reader.varint()?;
        let flags = reader.u8()?;
        if flags & FIRST != 0 {
            let total = usize::try_from(reader.varint()?).map_err(|_| ReadError::Short)?;
            let is_known = self.open.contains_key(&number);
            if is_known || total == 0 || total > most - self.claimed {
                return Err(ReadError::Short);
            }
            self.claimed += total;
            self.open.insert(number, (Vec::new(), total));
        }
        let bytes = reader.rest();
        let (whole, total) = self.open.get_mut(&number).ok_or(ReadError::Short)?;
        if bytes.len() > *total - whole.len() {
            return Err(ReadError::Short);
        }
        whole.extend_from_slice(&bytes);
        if flags & LAST == 0 {
            return Ok(None);
        }
        let (whole, total) = self.open.remove(&number).ok_or(ReadError::Short)?;
        self.claimed -= total;
        if whole.len() != total {
            return Err(ReadError::Short);
        }
        let mut whole = Bytes::from(whole);
        let op = whole.try_get_u8().map_err(|_| ReadError::Short)?;
        Ok(Some((op, whole)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Apart, Fields as _};

    fn chunk(stream: u64, flags: u8, total: usize, bytes: &[u8]) -> Reader {
        let mut apart = Apart::default();
        let (stream, flags, total) = Next::head(stream, flags, total);
        apart.varint(stream);
        apart.u8(flags);
        if let Some(total) = total {
            apart.varint(total);
        }
        bytes.iter().for_each(|byte| apart.u8(*byte));
        Reader::new(apart.finish())
    }

    // pins: B22
    #[test]
    fn sources_take_turns_and_keep_their_order() {
        let pid = |id| Some(format!("{{main|{id}}}").parse().unwrap());
        let mut streams = Streams::default();
        let mut assembly = Assembly::default();
        let large = |byte| Bytes::from(vec![byte; 100]);
        streams.push(pid(1), 7, large(1));
        streams.push(pid(1), 8, Bytes::from_static(b"behind"));
        streams.push(pid(2), 7, large(2));
        assert!(streams.has(pid(1)) && !streams.has(None));
        assert_eq!(streams.held(), 206);
        let mut chunks = Vec::new();
        let mut whole = Vec::new();
        while let Some(next) = streams.next(40) {
            match next {
                Next::Whole(op, bytes) => whole.push((op, bytes)),
                Next::Chunk {
                    stream,
                    flags,
                    total,
                    bytes,
                } => {
                    chunks.push(stream);
                    let taken = assembly.take(chunk(stream, flags, total, &bytes), 300);
                    whole.extend(taken.unwrap());
                }
            }
        }
        assert_eq!(chunks, [1, 2, 1, 2, 1, 2]);
        let behind = (8, Bytes::from_static(b"behind"));
        assert_eq!(whole, [(7, large(1)), (7, large(2)), behind]);
        assert_eq!((streams.held(), assembly.claimed), (0, 0));
        assert!(streams.is_empty() && assembly.open.is_empty());
    }

    /// Sends up to `parts` waiting parts. True: the receiver has taken all of them.
    fn carry(streams: &mut Streams, assembly: &mut Assembly, parts: usize, most: usize) -> bool {
        for _ in 0..parts {
            if let Some(Next::Chunk {
                stream,
                flags,
                total,
                bytes,
            }) = streams.next(10)
                && assembly
                    .take(chunk(stream, flags, total, &bytes), most)
                    .is_err()
            {
                return false;
            }
        }
        true
    }

    // pins: B22
    #[test]
    fn what_a_sender_may_hold_is_within_the_bound_of_the_receiver() {
        const MOST: usize = 640;
        let mut random = fastrand::Rng::with_seed(7);
        for round in 0..200 {
            let (mut streams, mut assembly) = (Streams::default(), Assembly::default());
            let mut taken = 0;
            for source in 1..200 {
                let key = Some(format!("{{main|{source}}}").parse().unwrap());
                let length = random.usize(1..MOST);
                if streams.has_room_for(length, MOST) {
                    streams.push(key, 7, Bytes::from(vec![1; length]));
                    taken += 1;
                }
                let parts = random.usize(0..20);
                let fits = carry(&mut streams, &mut assembly, parts, 2 * MOST);
                assert!(fits, "round {round}, source {source}");
            }
            assert!(taken > 50, "{taken}");
            assert!(carry(&mut streams, &mut assembly, 20 * MOST, 2 * MOST));
            assert_eq!((streams.held(), assembly.claimed), (0, 0));
        }
    }

    // pins: B22
    #[test]
    fn lengths_are_checked_before_anything_is_kept() {
        let mut assembly = Assembly::default();
        assert!(assembly.take(chunk(1, FIRST, 301, b"a"), 300).is_err());
        assert_eq!(assembly.take(chunk(1, FIRST, 200, b"a"), 300), Ok(None));
        assert!(assembly.take(chunk(2, FIRST, 101, b"a"), 300).is_err());
        assert!(assembly.take(chunk(3, 0, 0, b"a"), 300).is_err());
        assert!(assembly.take(chunk(1, FIRST, 1, b"a"), 300).is_err());
        assert!(assembly.take(chunk(1, LAST, 0, b"b"), 300).is_err());
        assert_eq!(assembly.claimed, 0);
        assert_eq!(assembly.take(chunk(4, FIRST, 2, b"a"), 300), Ok(None));
        assert!(assembly.take(chunk(4, 0, 0, b"bc"), 300).is_err());
    }
}
