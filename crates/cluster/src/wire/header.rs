//! The first 60 bytes of each frame: fixed, little-endian.
//!
//! | bytes | what |
//! |---|---|
//! | 0 | version |
//! | 1 | kind |
//! | 2 | lane |
//! | 3 | flags |
//! | 4 to 7 | number of messages |
//! | 8 to 19 | the receiver's half, or zeros |
//! | 20 to 31 | the sender's half, or zeros |
//! | 32 to 39 | number of the frame in its lane, or of a probe |
//! | 40 to 55 | the next expected frame of each lane |
//! | 56 to 59 | credit |

use crate::id::{Half, Incarnation, Lane};
use thiserror::Error;

/// The length of a header.
pub const HEADER: usize = 60;

/// The most bytes in a frame.
pub const MAX_FRAME: usize = 64 << 10;

/// The version of this protocol.
pub(super) const VERSION: u8 = 1;

pub(super) const NACK_CONTROL: u8 = 1;
pub(super) const NACK_DATA: u8 = 2;
pub(super) const PROBE: u8 = 4;
pub(super) const ANSWER: u8 = 8;
const FLAGS: u8 = NACK_CONTROL | NACK_DATA | PROBE | ANSWER;

/// Bytes are not a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The length is not between [`HEADER`] and [`MAX_FRAME`].
    #[error("a frame of {0} bytes; it must have {HEADER} to {MAX_FRAME}")]
    Size(usize),
    /// The peer speaks another version of the protocol.
    #[error("version {0} of the protocol; this node speaks version {VERSION}")]
    Version(u8),
    /// The kind of the frame is unknown.
    #[error("unknown kind of frame: {0}")]
    Kind(u8),
    /// The lane is unknown.
    #[error("unknown lane: {0}")]
    Lane(u8),
    /// The flags are unknown, or not for this kind of frame.
    #[error("unexpected flags: {0:#x}")]
    Flags(u8),
    /// A half is missing, or must not be there.
    #[error("unexpected or missing half of a session")]
    Half,
    /// The body does not have the messages of the header's count.
    #[error("the messages do not fill the frame")]
    Messages,
    /// The body of a frame without messages is not as its kind has it.
    #[error("malformed body")]
    Body,
    /// A name is empty, too long or not a text.
    #[error("malformed name")]
    Name,
    /// The credit of a Hello is less than a frame, so the largest frame could never be sent.
    #[error("a credit of {0} bytes, less than a frame")]
    Credit(u32),
}

/// The frames received by a side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Acks {
    /// The number of the next expected frame, by lane.
    pub next: [u64; 2],
    /// How many more bytes of data the side takes behind `next`.
    pub credit: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Hello = 1,
    Data,
    Ack,
    Reset,
    Bye,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) lane: Lane,
    pub(super) flags: u8,
    pub(super) count: u32,
    pub(super) to: Option<Half>,
    pub(super) from: Option<Half>,
    pub(super) seq: u64,
    pub(super) ack: [u64; 2],
    pub(super) credit: u32,
}

impl Header {
    pub(super) fn new(kind: Kind) -> Self {
        Self {
            kind,
            lane: Lane::Control,
            flags: 0,
            count: 0,
            to: None,
            from: None,
            seq: 0,
            ack: [0; 2],
            credit: 0,
        }
    }

    pub(super) fn data(
        (to, from): (Half, Half),
        lane: Lane,
        seq: u64,
        acks: Acks,
        count: u32,
    ) -> Self {
        Self {
            lane,
            count,
            to: Some(to),
            from: Some(from),
            seq,
            ack: acks.next,
            credit: acks.credit,
            ..Self::new(Kind::Data)
        }
    }

    pub(super) fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[0] = VERSION;
        bytes[1] = self.kind as u8;
        bytes[2] = self.lane as u8;
        bytes[3] = self.flags;
        bytes[4..8].copy_from_slice(&self.count.to_le_bytes());
        put_half(&mut bytes[8..20], self.to);
        put_half(&mut bytes[20..32], self.from);
        bytes[32..40].copy_from_slice(&self.seq.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.ack[0].to_le_bytes());
        bytes[48..56].copy_from_slice(&self.ack[1].to_le_bytes());
        bytes[56..60].copy_from_slice(&self.credit.to_le_bytes());
        bytes
    }

    pub(super) fn parse(frame: &[u8]) -> Result<Self, FrameError> {
        let length = frame.len();
        let bytes = frame
            .first_chunk::<HEADER>()
            .filter(|_| length <= MAX_FRAME)
            .ok_or(FrameError::Size(length))?;
        if bytes[0] != VERSION {
            return Err(FrameError::Version(bytes[0]));
        }
        let kind = match bytes[1] {
            1 => Kind::Hello,
            2 => Kind::Data,
            3 => Kind::Ack,
            4 => Kind::Reset,
            5 => Kind::Bye,
            other => return Err(FrameError::Kind(other)),
        };
        let lane = match bytes[2] {
            0 => Lane::Control,
            1 => Lane::Data,
            other => return Err(FrameError::Lane(other)),
        };
        let flags = bytes[3];
        if flags & !FLAGS != 0 || flags != 0 && kind != Kind::Ack {
            return Err(FrameError::Flags(flags));
        }
        Ok(Self {
            kind,
            lane,
            flags,
            count: u32_at(bytes, 4),
            to: half_at(bytes, 8)?,
            from: half_at(bytes, 20)?,
            seq: u64_at(bytes, 32),
            ack: [u64_at(bytes, 40), u64_at(bytes, 48)],
            credit: u32_at(bytes, 56),
        })
    }
}

fn put_half(bytes: &mut [u8], half: Option<Half>) {
    if let Some(half) = half {
        bytes[..8].copy_from_slice(&half.incarnation.to_bits().to_le_bytes());
        bytes[8..].copy_from_slice(&half.number.to_le_bytes());
    }
}

/// Reads a half, which begins with number 1; number 0 stands for none, and has no incarnation.
fn half_at(bytes: &[u8; HEADER], at: usize) -> Result<Option<Half>, FrameError> {
    let incarnation = Incarnation::from_bits(u64_at(bytes, at));
    match (u32_at(bytes, at + 8), incarnation.to_bits()) {
        (0, 0) => Ok(None),
        (0, _) => Err(FrameError::Half),
        (number, _) => Ok(Some(Half {
            incarnation,
            number,
        })),
    }
}

fn u32_at(bytes: &[u8; HEADER], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|place| bytes[at + place]))
}

fn u64_at(bytes: &[u8; HEADER], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|place| bytes[at + place]))
}
