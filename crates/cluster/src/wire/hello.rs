//! The body of a Hello: the sender's name, its cluster, its credit, and a proof over all before it.

use super::header::{FrameError, HEADER, Header, Kind, MAX_FRAME};
use super::varint;
use crate::id::{Half, MAX_NAME, NodeId};
use bytes::Bytes;

/// The most bytes in a proof.
const MAX_PROOF: usize = 1024;

/// Opens a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The sender's half.
    pub half: Half,
    /// The receiver's half, if the sender knows it.
    pub view: Option<Half>,
    /// The sender's name.
    pub name: NodeId,
    /// The name of the sender's cluster.
    pub cluster: Box<str>,
    /// How many bytes of data the sender takes before its mailboxes have taken any.
    pub credit: u32,
    /// The frame up to the proof, as covered by the proof.
    pub said: Bytes,
    /// The proof.
    pub proof: Bytes,
}

impl Hello {
    /// Encodes the frame of a Hello, with a proof over its other fields. `said` and `proof` are
    /// set.
    pub(crate) fn encode(&self, prove: impl FnOnce(&[u8]) -> Bytes) -> Bytes {
        let header = Header {
            to: self.view,
            from: Some(self.half),
            credit: self.credit,
            ..Header::new(Kind::Hello)
        };
        let mut frame = Vec::with_capacity(HEADER + 64);
        frame.extend_from_slice(&header.encode());
        put_text(&mut frame, self.name.as_str());
        put_text(&mut frame, &self.cluster);
        let mut proof = prove(&frame);
        proof.truncate(MAX_PROOF);
        varint::put(&mut frame, proof.len() as u64);
        frame.extend_from_slice(&proof);
        frame.into()
    }

    pub(super) fn parse(header: &Header, frame: &Bytes) -> Result<Self, FrameError> {
        if header.count != 0 {
            return Err(FrameError::Messages);
        }
        let credit = header.credit;
        if (credit as usize) < MAX_FRAME {
            return Err(FrameError::Credit(credit));
        }
        let mut rest = &frame[HEADER..];
        let name = take_text(&mut rest)?;
        let cluster = take_text(&mut rest)?.into();
        let said = frame.slice(..frame.len() - rest.len());
        let length = varint::take(&mut rest).ok_or(FrameError::Body)?;
        let length = usize::try_from(length).map_err(|_| FrameError::Body)?;
        if length > MAX_PROOF.min(rest.len()) {
            return Err(FrameError::Body);
        }
        let begin = frame.len() - rest.len();
        // A later version may add fields behind the proof.
        Ok(Self {
            half: header.from.ok_or(FrameError::Half)?,
            view: header.to,
            name: NodeId::new(name).map_err(|_| FrameError::Name)?,
            cluster,
            credit,
            said,
            proof: frame.slice(begin..begin + length),
        })
    }
}

fn put_text(frame: &mut Vec<u8>, text: &str) {
    varint::put(frame, text.len() as u64);
    frame.extend_from_slice(text.as_bytes());
}

fn take_text<'a>(rest: &mut &'a [u8]) -> Result<&'a str, FrameError> {
    let length = varint::take(rest).ok_or(FrameError::Name)?;
    let length = usize::try_from(length).map_err(|_| FrameError::Name)?;
    if length > MAX_NAME {
        return Err(FrameError::Name);
    }
    let (text, after) = rest.split_at_checked(length).ok_or(FrameError::Name)?;
    *rest = after;
    std::str::from_utf8(text).map_err(|_| FrameError::Name)
}
