//! UTF-8 chunk by chunk, with the result of `String::from_utf8_lossy` on the whole.
//!
//! A chunk may end inside a character. The decoder keeps the bytes of the character, at most three,
//! and completes them from the next chunk. It reports invalid UTF-8 as such: the caller decides the
//! meaning of the replacement character.

use std::str;

/// A decoded piece of the bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// Valid text, never empty.
    Text(&'a str),
    /// A sequence that `from_utf8_lossy` replaces by a single U+FFFD.
    Invalid,
}

/// The longest incomplete start of a character.
const MAX_TAIL: usize = 3;

/// Carries an incomplete character to the next chunk.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    tail: [u8; MAX_TAIL],
    length: usize,
}

impl Decoder {
    /// Decodes the next chunk, of any length.
    pub(crate) fn feed(&mut self, bytes: &[u8], mut sink: impl FnMut(Piece<'_>)) {
        let mut rest = self.complete_tail(bytes, &mut sink);
        while !rest.is_empty() {
            let error = match str::from_utf8(rest) {
                Ok(text) => return sink(Piece::Text(text)),
                Err(error) => error,
            };
            let (valid, invalid) = rest.split_at(error.valid_up_to());
            if let Ok(text) = str::from_utf8(valid)
                && !text.is_empty()
            {
                sink(Piece::Text(text));
            }
            let Some(length) = error.error_len() else {
                self.tail[..invalid.len()].copy_from_slice(invalid);
                self.length = invalid.len();
                return;
            };
            sink(Piece::Invalid);
            rest = &invalid[length..];
        }
    }

    /// Ends the input: an incomplete character will not be completed.
    pub(crate) fn finish(&mut self, mut sink: impl FnMut(Piece<'_>)) {
        if std::mem::take(&mut self.length) > 0 {
            sink(Piece::Invalid);
        }
    }

    /// Adds bytes to the tail until it is a character or can't become one; returns the unused
    /// bytes.
    fn complete_tail<'a>(
        &mut self,
        mut bytes: &'a [u8],
        sink: &mut impl FnMut(Piece<'_>),
    ) -> &'a [u8] {
        while self.length > 0 {
            let Some((&next, rest)) = bytes.split_first() else {
                break;
            };
            let mut character = [0; MAX_TAIL + 1];
            character[..self.length].copy_from_slice(&self.tail[..self.length]);
            character[self.length] = next;
            match str::from_utf8(&character[..=self.length]) {
                Ok(text) => {
                    sink(Piece::Text(text));
                    self.length = 0;
                    bytes = rest;
                }
                Err(error) if error.error_len().is_none() => {
                    self.tail[self.length] = next;
                    self.length += 1;
                    bytes = rest;
                }
                // The tail was a valid start, so `next` does not belong to it.
                Err(_) => {
                    sink(Piece::Invalid);
                    self.length = 0;
                }
            }
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(bytes: &[u8], chunk: usize) -> String {
        let mut text = String::new();
        let mut sink = |piece: Piece<'_>| match piece {
            Piece::Text(valid) => text.push_str(valid),
            Piece::Invalid => text.push(char::REPLACEMENT_CHARACTER),
        };
        let mut decoder = Decoder::default();
        for chunk in bytes.chunks(chunk) {
            decoder.feed(chunk, &mut sink);
        }
        decoder.finish(&mut sink);
        text
    }

    fn check(bytes: &[u8]) {
        let expected = String::from_utf8_lossy(bytes);
        for chunk in 1..=bytes.len() + 1 {
            assert_eq!(
                decode(bytes, chunk),
                expected,
                "{bytes:x?} in chunks of {chunk}"
            );
        }
    }

    #[test]
    fn every_way_of_being_invalid_is_replaced_as_the_standard_library_does() {
        let cases: [&[u8]; 12] = [
            b"",
            "zażółć 漢字 🦀".as_bytes(),
            b"\xff\xfe",
            b"a\x80\x80b",
            b"\xe2\x82A",
            b"\xf0\x9f\xa6",
            b"\xf0\xc3\xa9",
            b"\xed\xa0\x80\xed",
            b"\xe0\x80\x80",
            b"\xf4\x90\x80\x80",
            b"\xf0\x9f\xe2\x82\xac",
            b"\xc3",
        ];
        for case in cases {
            check(case);
        }
    }

    /// Draws bytes that start, continue, complete and break characters more often than random bytes
    /// do.
    fn tricky_byte() -> impl Strategy<Value = u8> {
        prop_oneof![
            any::<u8>(),
            0x80_u8..=0xbf,
            prop::sample::select(vec![b'a', 0xc3, 0xe0, 0xe2, 0xed, 0xf0, 0xf4, 0x9f, 0xa6]),
        ]
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_chunks_decode_as_the_whole(
            bytes in prop::collection::vec(tricky_byte(), 0..40),
        ) {
            check(&bytes);
        }
    }
}
