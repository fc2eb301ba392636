//! The packets of a handshake: `GNGR`, version, kind, length, body.
//!
//! Their form is the same in all versions, so that a node of another version gets its answer.

use bytes::{Buf, BufMut};
use ganger_cluster::{MAX_NAME, NodeId};
use thiserror::Error;

/// The version of the protocol between engines.
pub(crate) const VERSION: u8 = 1;
/// The length of a packet's head.
pub(crate) const HEAD: usize = 8;
/// The length of a proof.
pub(crate) const PROOF: usize = 32;
const MAGIC: [u8; 4] = *b"GNGR";
/// The longest body.
const MAX_BODY: usize = 1024;

const GREETING: u8 = 0;
const PROVEN: u8 = 1;
const REFUSED: u8 = 2;

/// A packet can't be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum PacketError {
    /// No node of a cluster, or not over the same kind of connection.
    #[error("the peer does not speak the protocol of nodes")]
    Foreign,
    /// The first bytes are of TLS.
    #[error("the peer speaks TLS")]
    Tls,
    #[error("the packet has {0} bytes, and {MAX_BODY} are the most")]
    TooLong(usize),
    #[error("the packet has an unknown kind or a malformed body")]
    Body,
}

/// The words of a side about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Greeting {
    /// Used once.
    pub(crate) nonce: [u8; 16],
    /// The run of the node's engine.
    pub(crate) run: [u8; 16],
    pub(crate) cluster: Box<str>,
    pub(crate) name: NodeId,
    /// Where other nodes reach the node: a host may be left out, as in `:7447`.
    pub(crate) address: Box<str>,
}

impl Greeting {
    /// Encodes the whole packet.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(128);
        body.put_slice(&self.nonce);
        body.put_slice(&self.run);
        for text in [&self.cluster, self.name.as_str(), &self.address] {
            put_text(&mut body, text);
        }
        packet(GREETING, &body)
    }

    fn parse(mut body: &[u8]) -> Option<Self> {
        let body = &mut body;
        let greeting = Self {
            nonce: take_array(body)?,
            run: take_array(body)?,
            cluster: take_text(body)?.into(),
            name: NodeId::new(take_text(body)?).ok()?,
            address: take_text(body)?.into(),
        };
        // A later minor revision may add fields behind.
        Some(greeting)
    }
}

/// Returns the packet of a proof.
pub(crate) fn proof(proof: &[u8; PROOF]) -> Vec<u8> {
    packet(PROVEN, proof)
}

/// Returns the packet of a refusal.
pub(crate) fn refusal(code: u8) -> Vec<u8> {
    packet(REFUSED, &[code])
}

fn packet(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD + body.len());
    bytes.put_slice(&MAGIC);
    bytes.put_u8(VERSION);
    bytes.put_u8(kind);
    // A greeting has at most 32 bytes and three texts of 256.
    bytes.put_u16_le(u16::try_from(body.len()).unwrap_or(u16::MAX));
    bytes.put_slice(body);
    bytes
}

/// The head of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PacketHead {
    pub(crate) version: u8,
    kind: u8,
    /// The length of the body.
    pub(crate) length: usize,
}

impl PacketHead {
    pub(crate) fn parse(head: [u8; HEAD]) -> Result<Self, PacketError> {
        // A record of a handshake, or an alert.
        if matches!(head, [0x15 | 0x16, 0x03, ..]) {
            return Err(PacketError::Tls);
        }
        let mut rest = head.strip_prefix(&MAGIC).ok_or(PacketError::Foreign)?;
        let (version, kind) = (rest.get_u8(), rest.get_u8());
        let length = usize::from(rest.get_u16_le());
        if length > MAX_BODY {
            return Err(PacketError::TooLong(length));
        }
        Ok(Self {
            version,
            kind,
            length,
        })
    }

    /// Parses the packet with this body. Only refusals of other versions are read.
    pub(crate) fn packet(self, body: &[u8]) -> Result<Packet, PacketError> {
        let packet = match self.kind {
            GREETING => Greeting::parse(body).map(Packet::Greeting),
            PROVEN => body.try_into().ok().map(Packet::Proof),
            REFUSED => body.first().map(|code| Packet::Refused(*code)),
            _ => None,
        };
        packet.ok_or(PacketError::Body)
    }

    /// Returns whether the packet is a refusal, of any version.
    pub(crate) fn is_refusal(self) -> bool {
        self.kind == REFUSED
    }
}

/// A packet of a handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Packet {
    Greeting(Greeting),
    Proof([u8; PROOF]),
    /// The code of a reason.
    Refused(u8),
}

/// Appends a text of up to 255 bytes; a longer text is cut.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    let end = text.floor_char_boundary(MAX_NAME);
    out.put_u8(u8::try_from(end).unwrap_or(u8::MAX));
    out.put_slice(&text.as_bytes()[..end]);
}

pub(super) fn take_text<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let (length, after) = rest.split_first()?;
    let (text, after) = after.split_at_checked(usize::from(*length))?;
    *rest = after;
    std::str::from_utf8(text).ok()
}

fn take_array<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (array, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*array)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeting() -> Greeting {
        Greeting {
            nonce: [1; 16],
            run: [2; 16],
            cluster: "shop".into(),
            name: NodeId::new("alpha").unwrap(),
            address: ":7447".into(),
        }
    }

    fn parse(bytes: &[u8]) -> Result<Packet, PacketError> {
        let (head, body) = bytes.split_first_chunk().unwrap();
        let head = PacketHead::parse(*head)?;
        assert_eq!(head.length, body.len());
        head.packet(body)
    }

    #[test]
    fn packets_come_back() {
        let greeting = greeting();
        assert_eq!(parse(&greeting.encode()), Ok(Packet::Greeting(greeting)));
        assert_eq!(parse(&proof(&[7; PROOF])), Ok(Packet::Proof([7; PROOF])));
        assert_eq!(parse(&refusal(3)), Ok(Packet::Refused(3)));
    }

    #[test]
    fn a_cut_greeting_is_malformed() {
        let whole = greeting().encode();
        let head = PacketHead::parse(*whole.first_chunk().unwrap()).unwrap();
        for end in HEAD..whole.len() {
            assert_eq!(head.packet(&whole[HEAD..end]), Err(PacketError::Body));
        }
    }

    #[test]
    fn strangers_are_told_from_tls() {
        let of = |bytes: &[u8; HEAD]| PacketHead::parse(*bytes);
        assert_eq!(of(b"GET / HT"), Err(PacketError::Foreign));
        assert_eq!(of(b"\x16\x03\x01\0\x01\0\0\0"), Err(PacketError::Tls));
        assert_eq!(of(b"GNGR\x01\0\xff\xff"), Err(PacketError::TooLong(65535)));
    }
}
