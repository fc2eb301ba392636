//! Numbers in up to ten bytes, seven bits a byte, the lowest first. A number has a single form.

/// The longest form of a `u64`.
const MAX_LENGTH: usize = 10;

/// Returns the length of a number's form.
pub(crate) fn length(number: u64) -> usize {
    let bits = u64::BITS - (number | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

pub(crate) fn put(buffer: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        let [lowest, ..] = number.to_le_bytes();
        buffer.push(lowest | 0x80);
        number >>= 7;
    }
    let [last, ..] = number.to_le_bytes();
    buffer.push(last);
}

/// Takes a number from the front, or nothing if the bytes are not a number in its form.
#[inline]
pub(super) fn take(bytes: &mut &[u8]) -> Option<u64> {
    // Most numbers.
    if let [byte @ ..0x80, rest @ ..] = *bytes {
        *bytes = rest;
        return Some(u64::from(*byte));
    }
    let mut number = 0;
    for (place, &byte) in bytes.iter().enumerate().take(MAX_LENGTH) {
        let bits = u64::from(byte & 0x7f);
        let shift = 7 * u32::try_from(place).ok()?;
        if bits.leading_zeros() < shift {
            return None;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            let is_longer_than_needed = byte == 0 && place > 0;
            *bytes = &bytes[place + 1..];
            return (!is_longer_than_needed).then_some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_were_written() {
        for number in [
            0,
            1,
            127,
            128,
            300,
            u64::from(u32::MAX),
            u64::MAX - 1,
            u64::MAX,
        ] {
            let mut buffer = Vec::new();
            put(&mut buffer, number);
            assert_eq!(buffer.len(), length(number));
            buffer.push(7);
            let mut bytes = &buffer[..];
            assert_eq!(take(&mut bytes), Some(number));
            assert_eq!(bytes, [7]);
        }
    }

    #[test]
    fn other_bytes_are_no_numbers() {
        let too_large = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2];
        let too_long = [0x80; 11];
        for bytes in [&[][..], &[0x80], &[0x80, 0], &too_large, &too_long] {
            assert_eq!(take(&mut &bytes[..]), None, "{bytes:?}");
        }
    }
}
