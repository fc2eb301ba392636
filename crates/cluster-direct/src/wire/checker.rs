//! Any bytes as what a connection may bring: what is read is what would be written.
//!
//! The fuzzer includes this file.

use crate::wire::{
    Checksum, Frames, HEAD, Packet, PacketHead, encode_nodes, parse_nodes, put_frame,
};

/// Fails if a parser takes what no writer writes, or panics.
pub(crate) fn check(bytes: &[u8]) {
    packets(bytes);
    for checksum in [Checksum::Absent, Checksum::Crc32] {
        frames(bytes, checksum);
    }
    if let Some(nodes) = parse_nodes(bytes) {
        assert_eq!(encode_nodes(&nodes), bytes);
    }
}

fn packets(bytes: &[u8]) {
    let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() else {
        return;
    };
    let Ok(head) = PacketHead::parse(*head) else {
        return;
    };
    let Some(body) = rest.get(..head.length) else {
        return;
    };
    if let Ok(Packet::Greeting(greeting)) = head.packet(body) {
        let written = greeting.encode();
        let again = PacketHead::parse(*written.first_chunk().expect("a head"));
        let again = again.and_then(|head| head.packet(&written[HEAD..]));
        assert_eq!(again, Ok(Packet::Greeting(greeting)));
    }
}

fn frames(bytes: &[u8], checksum: Checksum) {
    let mut frames = Frames::new(checksum);
    let mut written = Vec::new();
    for part in [&bytes[..bytes.len() / 2], &bytes[bytes.len() / 2..]] {
        frames.push(part);
        loop {
            match frames.next() {
                Ok(Some((kind, body))) => put_frame(&mut written, checksum, kind, &body),
                Ok(None) => break,
                Err(_) => return assert_eq!(written, bytes[..written.len()]),
            }
        }
    }
    assert_eq!(written, bytes[..written.len()]);
}
