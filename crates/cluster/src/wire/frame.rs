//! All kinds of frames, as the parser gives them.

use super::header::{
    ANSWER, Acks, FrameError, HEADER, Header, Kind, NACK_CONTROL, NACK_DATA, PROBE,
};
use super::hello::Hello;
use super::message::Messages;
use crate::id::{Half, Incarnation, Lane};
use bytes::{BufMut, Bytes, BytesMut};

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
        /// The frames received by the sender.
        acks: Acks,
        /// The messages.
        messages: Messages,
    },
    /// Acknowledges frames, and is a sign of life.
    Ack {
        /// The receiver's half.
        to: Half,
        /// The sender's half.
        from: Half,
        /// The frames received by the sender.
        acks: Acks,
        /// The lanes with a missing frame.
        nack: [bool; 2],
        /// A number for the receiver to answer with.
        probe: Option<u64>,
        /// The number of an answered probe.
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

impl Frame {
    /// Encodes the bytes of the frame.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        match self {
            Self::Hello(hello) => hello.encode(|_| hello.proof.clone()),
            Self::Data {
                to,
                from,
                lane,
                seq,
                acks,
                messages,
            } => {
                let (body, count) = messages.as_bytes();
                let header = Header::data((*to, *from), *lane, *seq, *acks, count);
                with_body(&header, body)
            }
            Self::Ack {
                to,
                from,
                acks,
                nack,
                probe,
                answer,
            } => {
                let flags = [
                    (nack[0], NACK_CONTROL),
                    (nack[1], NACK_DATA),
                    (probe.is_some(), PROBE),
                    (answer.is_some(), ANSWER),
                ];
                let flags = flags.into_iter().filter(|(is_set, _)| *is_set);
                let header = Header {
                    flags: flags.fold(0, |all, (_, flag)| all | flag),
                    to: Some(*to),
                    from: Some(*from),
                    seq: probe.or(*answer).unwrap_or(0),
                    ack: acks.next,
                    credit: acks.credit,
                    ..Header::new(Kind::Ack)
                };
                with_body(&header, &[])
            }
            Self::Reset { to, notice } => {
                let header = Header {
                    to: Some(*to),
                    ..Header::new(Kind::Reset)
                };
                with_body(&header, &notice.encode())
            }
            Self::Bye { to, from } => {
                let header = Header {
                    to: Some(*to),
                    from: Some(*from),
                    ..Header::new(Kind::Bye)
                };
                with_body(&header, &[])
            }
        }
    }
}

fn with_body(header: &Header, body: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(HEADER + body.len());
    frame.put_slice(&header.encode());
    frame.put_slice(body);
    frame.freeze()
}

impl Notice {
    fn encode(self) -> Vec<u8> {
        let (which, incarnation) = match self {
            Self::Unknown => return vec![0],
            Self::NameTaken => return vec![1],
            Self::Outdated(newest) => (2, newest),
            Self::Restarted(present) => (3, present),
        };
        let mut body = vec![which];
        body.extend(incarnation.to_bits().to_le_bytes());
        body
    }

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
