//! The checksum of a frame.
//!
//! Without TLS a broken bit on the way to the broker or from it is found by TCP's checksum alone,
//! which misses some. So each frame is followed by its CRC-32, as with the direct engine. The
//! sender's name in the subject is not covered: a session takes no frame of another node's.

use bytes::Bytes;

/// The bytes of the checksum.
pub(crate) const CHECKSUM: usize = 4;

/// Returns the frame with its checksum. O(n): the sender keeps the frame to send it again.
pub(crate) fn seal(frame: &[u8]) -> Bytes {
    let mut sealed = Vec::with_capacity(frame.len() + CHECKSUM);
    sealed.extend_from_slice(frame);
    sealed.extend_from_slice(&crc32fast::hash(frame).to_le_bytes());
    sealed.into()
}

/// Returns the frame, if its checksum is right.
pub(crate) fn open(mut sealed: Bytes) -> Option<Bytes> {
    let length = sealed.len().checked_sub(CHECKSUM)?;
    let checksum = sealed.split_off(length);
    (checksum[..] == crc32fast::hash(&sealed).to_le_bytes()).then_some(sealed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_frame_opens_and_with_any_bit_flipped_does_not() {
        for frame in [&b""[..], b"a frame"] {
            let sealed = seal(frame);
            assert_eq!(open(sealed.clone()).as_deref(), Some(frame));
            for bit in 0..sealed.len() * 8 {
                let mut flipped = sealed.to_vec();
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(open(flipped.into()), None, "bit {bit}");
            }
            assert_eq!(open(sealed.slice(..sealed.len() - 1)), None);
        }
        assert_eq!(open(Bytes::new()), None);
    }
}
