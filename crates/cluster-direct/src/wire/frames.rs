//! Frames between two nodes that know each other: length, kind, body, code.
//!
//! Kind and body are encrypted. The code is over both and the frame's number on the connection,
//! with a key of the connection and of the direction. So no frame can be made, changed, left out or
//! repeated on the way. Over TLS encryption and code are left out, because each record has both.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use ganger_cluster::MAX_FRAME;
use std::fmt;
use thiserror::Error;

const LENGTH: usize = 4;
/// The length of a code.
pub(crate) const CODE: usize = 16;

/// Seals and opens the frames of a direction, in their order.
pub(crate) trait Codes: Send {
    /// Encrypts the next frame in its place, and returns its code.
    fn seal(&mut self, frame: &mut [u8]) -> [u8; CODE];

    /// Decrypts the next frame, which its code follows, in its place. `None`: the code is wrong.
    fn open<'f>(&mut self, sealed: &'f mut [u8]) -> Option<&'f mut [u8]>;
}

/// The codes of a direction. None over TLS.
pub(crate) struct Seal(Option<Box<dyn Codes>>);

impl Seal {
    pub(crate) fn absent() -> Self {
        Self(None)
    }

    pub(crate) fn by(codes: impl Codes + 'static) -> Self {
        Self(Some(Box::new(codes)))
    }

    fn length(&self) -> usize {
        if self.0.is_some() { CODE } else { 0 }
    }
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Seal").field(&self.0.is_some()).finish()
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
    #[error("a frame with a wrong code")]
    Code,
}

/// Appends the next frame to `out`.
pub(crate) fn put_frame(out: &mut Vec<u8>, seal: &mut Seal, kind: Kind, body: &[u8]) {
    debug_assert!(body.len() <= MAX_FRAME);
    let length = u32::try_from(body.len() + 1).unwrap_or(u32::MAX);
    let begin = out.len();
    out.put_u32_le(length);
    out.put_u8(kind as u8);
    out.put_slice(body);
    if let Some(codes) = &mut seal.0 {
        let code = codes.seal(&mut out[begin + LENGTH..]);
        out.put_slice(&code);
    }
}

/// Finds the frames in received bytes.
#[derive(Debug)]
pub(crate) struct Frames {
    seal: Seal,
    bytes: BytesMut,
}

impl Frames {
    pub(crate) fn new(seal: Seal) -> Self {
        let bytes = BytesMut::new();
        Self { seal, bytes }
    }

    /// Adds received bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next frame, if all of its bytes have come.
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
        let whole = LENGTH + length + self.seal.length();
        if self.bytes.len() < whole {
            self.bytes.reserve(whole - self.bytes.len());
            return Ok(None);
        }
        let mut frame = self.bytes.split_to(whole);
        frame.advance(LENGTH);
        if let Some(codes) = &mut self.seal.0 {
            codes.open(&mut frame).ok_or(FrameError::Code)?;
            frame.truncate(length);
        }
        let mut frame = frame.freeze();
        let kind = frame.get_u8();
        let kind = Kind::of(kind).ok_or(FrameError::Kind(kind))?;
        Ok(Some((kind, frame)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::checker::Sums;
    use super::*;

    fn all(seal: Seal, bytes: &[u8], step: usize) -> Result<Vec<(Kind, Bytes)>, FrameError> {
        let mut frames = Frames::new(seal);
        let mut found = Vec::new();
        for part in bytes.chunks(step) {
            frames.push(part);
            while let Some(frame) = frames.next()? {
                found.push(frame);
            }
        }
        Ok(found)
    }

    fn sums() -> Seal {
        Seal::by(Sums::default())
    }

    #[test]
    fn frames_come_back_in_any_pieces() {
        for seal in [sums, Seal::absent] {
            let mut bytes = Vec::new();
            let mut own = seal();
            put_frame(&mut bytes, &mut own, Kind::Session, b"one");
            put_frame(&mut bytes, &mut own, Kind::Alive, b"");
            put_frame(&mut bytes, &mut own, Kind::Session, &[7; MAX_FRAME]);
            for step in [1, 7, 4096, bytes.len()] {
                let found = all(seal(), &bytes, step).unwrap();
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
        put_frame(&mut bytes, &mut sums(), Kind::Session, b"some bytes");
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            if bit < 8 * LENGTH {
                // A longer length waits for more bytes, and finds another frame in them.
                flipped.extend_from_slice(&[0; MAX_FRAME + CODE]);
            }
            all(sums(), &flipped, flipped.len()).unwrap_err();
        }
    }

    #[test]
    fn an_over_long_frame_is_refused_by_its_length() {
        let mut frames = Frames::new(sums());
        frames.push(&u32::MAX.to_le_bytes());
        let error = frames.next().unwrap_err();
        assert_eq!(error, FrameError::TooLong(u32::MAX as usize - 1));
        assert!(frames.bytes.capacity() < MAX_FRAME);
    }
}
