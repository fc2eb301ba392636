//! Frames between two nodes that know each other: length, checksum, kind, body.
//!
//! The checksum is over length, kind and body. Over TLS it is left out, because each record has a
//! proof.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use crc32fast::Hasher;
use ganger_cluster::MAX_FRAME;
use thiserror::Error;

const LENGTH: usize = 4;
const CHECKSUM: usize = 4;

/// Whether frames have a checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checksum {
    Crc32,
    /// Over TLS.
    Absent,
}

impl Checksum {
    fn length(self) -> usize {
        match self {
            Self::Crc32 => CHECKSUM,
            Self::Absent => 0,
        }
    }
}

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A frame of a session.
    Session = 0,
    /// A list of nodes.
    Nodes = 1,
    /// The sender lives.
    Alive = 2,
    /// The sender asks for an [`Kind::Alive`].
    Ask = 3,
    /// The sender leaves the connection: the body has the code of the reason.
    Refused = 4,
}

impl Kind {
    fn of(byte: u8) -> Option<Self> {
        let all = [
            Self::Session,
            Self::Nodes,
            Self::Alive,
            Self::Ask,
            Self::Refused,
        ];
        all.get(usize::from(byte)).copied()
    }
}

/// The bytes are not frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum FrameError {
    #[error("a frame says that it has {0} bytes, and {MAX_FRAME} are the most")]
    TooLong(usize),
    #[error("a frame without a kind")]
    Empty,
    #[error("a frame of the unknown kind {0}")]
    Kind(u8),
    #[error("a frame with a wrong checksum")]
    Checksum,
}

/// Appends a frame to `out`.
pub(crate) fn put_frame(out: &mut Vec<u8>, checksum: Checksum, kind: Kind, body: &[u8]) {
    debug_assert!(body.len() <= MAX_FRAME);
    let length = u32::try_from(body.len() + 1)
        .unwrap_or(u32::MAX)
        .to_le_bytes();
    let kind = [kind as u8];
    out.put_slice(&length);
    if checksum == Checksum::Crc32 {
        out.put_u32_le(crc(&length, &kind, body));
    }
    out.put_slice(&kind);
    out.put_slice(body);
}

fn crc(length: &[u8], kind: &[u8], body: &[u8]) -> u32 {
    let mut hasher = Hasher::new();
    for part in [length, kind, body] {
        hasher.update(part);
    }
    hasher.finalize()
}

/// Finds the frames in received bytes.
#[derive(Debug)]
pub(crate) struct Frames {
    checksum: Checksum,
    bytes: BytesMut,
}

impl Frames {
    pub(crate) fn new(checksum: Checksum) -> Self {
        let bytes = BytesMut::new();
        Self { checksum, bytes }
    }

    /// Adds received bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next frame, if all of its bytes have come.
    pub(crate) fn next(&mut self) -> Result<Option<(Kind, Bytes)>, FrameError> {
        let Some(prefix) = self.bytes.first_chunk::<LENGTH>().copied() else {
            return Ok(None);
        };
        let length = usize::try_from(u32::from_le_bytes(prefix)).unwrap_or(usize::MAX);
        if length == 0 {
            return Err(FrameError::Empty);
        }
        if length > MAX_FRAME + 1 {
            return Err(FrameError::TooLong(length - 1));
        }
        let head = LENGTH + self.checksum.length();
        if self.bytes.len() < head + length {
            self.bytes.reserve(head + length - self.bytes.len());
            return Ok(None);
        }
        let mut frame = self.bytes.split_to(head + length).freeze();
        frame.advance(LENGTH);
        if self.checksum == Checksum::Crc32 {
            let expected = frame.get_u32_le();
            if crc(&prefix, &frame[..1], &frame[1..]) != expected {
                return Err(FrameError::Checksum);
            }
        }
        let kind = frame.get_u8();
        let kind = Kind::of(kind).ok_or(FrameError::Kind(kind))?;
        Ok(Some((kind, frame)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(
        checksum: Checksum,
        bytes: &[u8],
        step: usize,
    ) -> Result<Vec<(Kind, Bytes)>, FrameError> {
        let mut frames = Frames::new(checksum);
        let mut found = Vec::new();
        for part in bytes.chunks(step) {
            frames.push(part);
            while let Some(frame) = frames.next()? {
                found.push(frame);
            }
        }
        Ok(found)
    }

    #[test]
    fn frames_come_back_in_any_pieces() {
        for checksum in [Checksum::Crc32, Checksum::Absent] {
            let mut bytes = Vec::new();
            put_frame(&mut bytes, checksum, Kind::Session, b"one");
            put_frame(&mut bytes, checksum, Kind::Alive, b"");
            put_frame(&mut bytes, checksum, Kind::Session, &[7; MAX_FRAME]);
            for step in [1, 7, 4096, bytes.len()] {
                let found = all(checksum, &bytes, step).unwrap();
                let kinds: Vec<_> = found
                    .iter()
                    .map(|(kind, body)| (*kind, body.len()))
                    .collect();
                let expected = [
                    (Kind::Session, 3),
                    (Kind::Alive, 0),
                    (Kind::Session, MAX_FRAME),
                ];
                assert_eq!(kinds, expected);
            }
        }
    }

    #[test]
    fn each_flipped_bit_is_found() {
        let mut bytes = Vec::new();
        put_frame(&mut bytes, Checksum::Crc32, Kind::Session, b"some bytes");
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            if bit < 8 * LENGTH {
                // A longer length waits for more bytes, and finds another frame in them.
                flipped.extend_from_slice(&[0; MAX_FRAME + 1]);
            }
            all(Checksum::Crc32, &flipped, flipped.len()).unwrap_err();
        }
    }

    #[test]
    fn an_over_long_frame_is_refused_by_its_length() {
        let mut frames = Frames::new(Checksum::Crc32);
        frames.push(&u32::MAX.to_le_bytes());
        let error = frames.next().unwrap_err();
        assert_eq!(error, FrameError::TooLong(u32::MAX as usize - 1));
        assert!(frames.bytes.capacity() < MAX_FRAME);
    }
}
