//! A secret that all nodes of a cluster have.

use crate::session::Proof;
use bytes::Bytes;
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// Proves that a node has the cookie, by HMAC with SHA-256 over its Hello. The Hello has the halves
/// of both sides, which are used once, so an old proof fits no other session.
pub(crate) struct Cookie(Hmac<Sha256>);

impl Cookie {
    pub(crate) fn new(secret: &[u8]) -> Self {
        let mac = Hmac::new_from_slice(secret);
        Self(mac.unwrap_or_else(|_| unreachable!("HMAC takes keys of any length")))
    }
}

impl Proof for Cookie {
    fn make(&self, said: &[u8]) -> Bytes {
        let mac = self.0.clone().chain_update(said);
        Bytes::copy_from_slice(&mac.finalize().into_bytes())
    }

    fn check(&self, said: &[u8], proof: &[u8]) -> bool {
        let mac = self.0.clone().chain_update(said);
        mac.verify_slice(proof).is_ok()
    }

    fn key(&self) -> u64 {
        // No Hello is as short.
        let made = self.make(b"key");
        made.first_chunk().map_or(0, |it| u64::from_le_bytes(*it))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_of_its_cookie_and_of_what_was_said() {
        let (ours, theirs) = (Cookie::new(b"ours"), Cookie::new(b"theirs"));
        let proof = ours.make(b"hello");
        assert!(ours.check(b"hello", &proof));
        assert!(!ours.check(b"hallo", &proof));
        assert!(!theirs.check(b"hello", &proof));
        assert!(!ours.check(b"hello", &proof[1..]));
    }
}
