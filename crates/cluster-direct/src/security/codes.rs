//! The codes of frames on a connection without TLS.
//!
//! AES-256-GCM encrypts the frame, and its tag is the code; the frame's number is the nonce. The
//! key is used for a direction of a connection alone, so no number is used twice. The tag alone,
//! GMAC, would take three times the instructions: `ring` reads all but the text block by block.

use crate::wire::{CODE, Codes};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

/// The codes of a direction.
pub(crate) struct FrameCodes {
    key: LessSafeKey,
    next: u64,
}

impl FrameCodes {
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        let key = UnboundKey::new(&AES_256_GCM, key);
        let key = key.unwrap_or_else(|_| unreachable!("a key of AES-256 has 32 bytes"));
        Self {
            key: LessSafeKey::new(key),
            next: 0,
        }
    }

    fn nonce(&mut self) -> Nonce {
        let mut nonce = [0; NONCE_LEN];
        nonce[NONCE_LEN - 8..].copy_from_slice(&self.next.to_be_bytes());
        self.next += 1;
        Nonce::assume_unique_for_key(nonce)
    }
}

impl Codes for FrameCodes {
    fn seal(&mut self, frame: &mut [u8]) -> [u8; CODE] {
        let nonce = self.nonce();
        let tag = (self.key).seal_in_place_separate_tag(nonce, Aad::empty(), frame);
        // Fails for texts of more than 64 GiB.
        let tag = tag.unwrap_or_else(|_| unreachable!("a frame is short"));
        let mut code = [0; CODE];
        code.copy_from_slice(tag.as_ref());
        code
    }

    /// Opens a frame, in constant time.
    fn open<'f>(&mut self, sealed: &'f mut [u8]) -> Option<&'f mut [u8]> {
        let nonce = self.nonce();
        (self.key).open_in_place(nonce, Aad::empty(), sealed).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::security::cookie::{Cookie, Role};
    use crate::wire::{FrameError, Frames, Kind, Seal, put_frame};

    fn seal(key: [u8; 32]) -> Seal {
        Seal::by(FrameCodes::new(&key))
    }

    /// Returns two frames, each with its bytes.
    fn frames(key: [u8; 32]) -> [Vec<u8>; 2] {
        let mut own = seal(key);
        [b"one", b"two"].map(|body| {
            let mut bytes = Vec::new();
            put_frame(&mut bytes, &mut own, Kind::Session, body);
            bytes
        })
    }

    fn read(key: [u8; 32], bytes: &[u8]) -> Result<usize, FrameError> {
        let mut frames = Frames::new(seal(key));
        frames.push(bytes);
        let mut count = 0;
        while frames.next()?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    // pins: H1
    #[test]
    fn frames_in_their_order_alone_are_right() {
        let key = [3; 32];
        let [one, two] = frames(key);
        assert_eq!(read(key, &[&one[..], &two].concat()), Ok(2));
        let wrong = Err(FrameError::Code);
        assert_eq!(read(key, &[&one[..], &one].concat()), wrong, "repeated");
        assert_eq!(read(key, &two), wrong, "the first is left out");
        assert_eq!(read([4; 32], &one), wrong, "another key");
    }

    // pins: H1
    #[test]
    fn nothing_of_a_frame_is_legible_without_the_key() {
        let mut own = seal([3; 32]);
        let mut sealed = Vec::new();
        for _ in 0..2 {
            put_frame(
                &mut sealed,
                &mut own,
                Kind::Session,
                b"a word that is repeated",
            );
        }
        let (one, two) = sealed.split_at(sealed.len() / 2);
        assert!(one.windows(4).all(|part| part != b"word"));
        assert_ne!(one[4..], two[4..], "alike frames differ");
        assert_eq!(read([3; 32], &sealed), Ok(2));
    }

    // pins: H1
    #[test]
    fn each_flipped_bit_of_a_frame_is_found() {
        let key = [3; 32];
        let [one, _] = frames(key);
        for bit in 8 * 4..8 * one.len() {
            let mut flipped = one.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read(key, &flipped), Err(FrameError::Code), "{bit}");
        }
    }

    // pins: H1, H2
    #[test]
    fn keys_fit_their_direction_both_greetings_and_the_cookie() {
        let cookie = Cookie::new(b"secret");
        let keys = [
            cookie.frames(Role::Dialer, b"one", b"two"),
            cookie.frames(Role::Acceptor, b"one", b"two"),
            cookie.frames(Role::Dialer, b"two", b"two"),
            cookie.frames(Role::Dialer, b"one", b"one"),
            Cookie::new(b"other").frames(Role::Dialer, b"one", b"two"),
            // Proofs are no secrets.
            cookie.prove(Role::Dialer, b"one", b"two"),
            cookie.prove(Role::Acceptor, b"one", b"two"),
        ];
        let different: std::collections::BTreeSet<_> = keys.iter().collect();
        assert_eq!(different.len(), keys.len());
    }
}
