//! All kinds of frames, as the parser gives them.

use super::header::{ANSWER, FrameError, HEADER, Header, Kind, NACK_CONTROL, NACK_DATA, PROBE};
use super::hello::Hello;
use super::message::Messages;
use crate::id::{Half, Incarnation, Lane};
use bytes::{BufMut, Bytes, BytesMut};

/// What a side has received: in frames of messages, and in those of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Acks {
    /// The number of the next expected frame, by lane.
    pub next: [u64; 2],
    /// How many more bytes of data the side takes behind `next`.
    pub credit: u32,
}

/// A frame between two nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// Opens a session.
    Hello(Hello),
    /// Messages.
    Data {
        /// The receiver's half.
        to: Half,
        /// The sender's half.
        from: Half,
        /// The lane.
        lane: Lane,
        /// The number of the frame in its lane, from 0.
        seq: u64,
        /// What the sender has received.
        acks: Acks,
        /// The messages, at least one.
        messages: Messages,
    },
    /// Says what has been received, and that the sender lives.
    Ack {
        /// The receiver's half.
        to: Half,
        /// The sender's half.
        from: Half,
        /// What the sender has received.
        acks: Acks,
        /// In which lanes a frame is missing.
        nack: [bool; 2],
        /// Whether the receiver is to answer with this number.
        probe: Option<u64>,
        /// The number of the probe that this answers.
        answer: Option<u64>,
    },
    /// Says that the receiver's half belongs to no session.
    Reset {
        /// The receiver's half.
        to: Half,
        /// Why.
        notice: Notice,
    },
    /// Ends the session.
    Bye {
        /// The receiver's half.
        to: Half,
        /// The sender's half.
        from: Half,
    },
}

/// Why a node refuses a half.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// The session has ended, or there was none.
    Unknown,
    /// Another node with the same name is alive.
    NameTaken,
    /// A later incarnation of the node is known.
    Outdated(Incarnation),
    /// The frame is for another incarnation of the node. This is its present.
    Restarted(Incarnation),
}

impl Frame {
    /// Reads a frame. Its messages share the bytes of the frame.
    ///
    /// # Errors
    ///
    /// The bytes are not a frame of this version of the protocol.
    pub fn parse(frame: &Bytes) -> Result<Self, FrameError> {
        let header = Header::parse(frame)?;
        let body = frame.slice(HEADER..);
        if header.kind == Kind::Hello {
            return Hello::parse(&header, frame).map(Self::Hello);
        }
        let to = header.to.ok_or(FrameError::Half)?;
        let acks = Acks {
            next: header.ack,
            credit: header.credit,
        };
        if header.kind == Kind::Data {
            return Ok(Self::Data {
                to,
                from: header.from.ok_or(FrameError::Half)?,
                lane: header.lane,
                seq: header.seq,
                acks,
                messages: Messages::parse(body, header.count)?,
            });
        }
        if header.count != 0 {
            return Err(FrameError::Messages);
        }
        if header.kind == Kind::Reset {
            let notice = Notice::parse(&body).ok_or(FrameError::Body)?;
            return Ok(Self::Reset { to, notice });
        }
        if !body.is_empty() {
            return Err(FrameError::Body);
        }
        let from = header.from.ok_or(FrameError::Half)?;
        if header.kind == Kind::Bye {
            return Ok(Self::Bye { to, from });
        }
        let has = |flag| header.flags & flag != 0;
        if has(PROBE) && has(ANSWER) {
            return Err(FrameError::Flags(header.flags));
        }
        Ok(Self::Ack {
            to,
            from,
            acks,
            nack: [has(NACK_CONTROL), has(NACK_DATA)],
            probe: has(PROBE).then_some(header.seq),
            answer: has(ANSWER).then_some(header.seq),
        })
    }
}

impl Notice {
    fn parse(body: &[u8]) -> Option<Self> {
        match body {
            [0] => Some(Self::Unknown),
            [1] => Some(Self::NameTaken),
            [which @ (2 | 3), bits @ ..] => {
                let bits = u64::from_le_bytes(bits.try_into().ok()?);
                let incarnation = Incarnation::from_bits(bits);
                Some(match which {
                    2 => Self::Outdated(incarnation),
                    _ => Self::Restarted(incarnation),
                })
            }
            _ => None,
        }
    }
}

/// An Ack, its nacks by lane, and the number of a probe, or of its answer.
pub(crate) fn ack(
    to: Half,
    from: Half,
    acks: Acks,
    nack: [bool; 2],
    probe: Option<u64>,
    answer: Option<u64>,
) -> Bytes {
    let flag = |is_set: bool, flag| if is_set { flag } else { 0 };
    let header = Header {
        flags: flag(nack[0], NACK_CONTROL)
            | flag(nack[1], NACK_DATA)
            | flag(probe.is_some(), PROBE)
            | flag(answer.is_some(), ANSWER),
        to: Some(to),
        from: Some(from),
        seq: probe.or(answer).unwrap_or(0),
        ack: acks.next,
        credit: acks.credit,
        ..Header::new(Kind::Ack)
    };
    Bytes::copy_from_slice(&header.encode())
}

pub(crate) fn reset(to: Half, notice: Notice) -> Bytes {
    let header = Header {
        to: Some(to),
        ..Header::new(Kind::Reset)
    };
    let mut frame = BytesMut::with_capacity(HEADER + 9);
    frame.put_slice(&header.encode());
    match notice {
        Notice::Unknown => frame.put_u8(0),
        Notice::NameTaken => frame.put_u8(1),
        Notice::Outdated(newest) => {
            frame.put_u8(2);
            frame.put_u64_le(newest.to_bits());
        }
        Notice::Restarted(present) => {
            frame.put_u8(3);
            frame.put_u64_le(present.to_bits());
        }
    }
    frame.freeze()
}

pub(crate) fn bye(to: Half, from: Half) -> Bytes {
    let header = Header {
        to: Some(to),
        from: Some(from),
        ..Header::new(Kind::Bye)
    };
    Bytes::copy_from_slice(&header.encode())
}
