//! A check with any bytes as the input of a connection: values read and written again stay the
//! same.
//!
//! The fuzzer includes this file.

use crate::wire::{
    CODE, Codes, Frames, HEAD, Packet, PacketHead, Seal, encode_nodes, parse_nodes, put_frame,
};

/// Codes without a secret, which a fuzzer can make.
#[derive(Default)]
pub(crate) struct Sums(u64);

impl Codes for Sums {
    fn seal(&mut self, frame: &mut [u8]) -> [u8; CODE] {
        let mut code = [0; CODE];
        code[..4].copy_from_slice(&crc32fast::hash(frame).to_le_bytes());
        code[8..].copy_from_slice(&self.0.to_le_bytes());
        self.0 += 1;
        code
    }

    fn open<'f>(&mut self, sealed: &'f mut [u8]) -> Option<&'f mut [u8]> {
        let (frame, code) = sealed.split_last_chunk_mut::<CODE>()?;
        let is_right = self.seal(frame) == *code;
        is_right.then_some(frame)
    }
}

/// Fails if a parser takes what no writer writes, or panics.
pub(crate) fn check(bytes: &[u8]) {
    packets(bytes);
    for seal in [Seal::absent, || Seal::by(Sums::default())] {
        frames(bytes, seal);
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

fn frames(bytes: &[u8], seal: fn() -> Seal) {
    let mut frames = Frames::new(seal());
    let mut own = seal();
    let mut written = Vec::new();
    for part in [&bytes[..bytes.len() / 2], &bytes[bytes.len() / 2..]] {
        frames.push(part);
        loop {
            match frames.next() {
                Ok(Some((kind, body))) => put_frame(&mut written, &mut own, kind, &body),
                Ok(None) => break,
                Err(_) => return assert_eq!(written, bytes[..written.len()]),
            }
        }
    }
    assert_eq!(written, bytes[..written.len()]);
}
