//! Counting the words of a file, chunk by chunk.
//!
//! Text is mostly short ASCII words. The counter recognises them sixteen bytes at a time and counts
//! them without a look at each letter and without a copy. It splits words with other letters
//! character by character and counts them as they are written: each different word is lower-cased
//! once, at the end.

use super::decode::{Decoder, Piece};
use super::table::{PACKED_BYTES, Table, pack};
use std::sync::LazyLock;

/// Counts words in a stream of bytes.
#[derive(Debug, Default)]
pub(crate) struct WordCounter {
    decoder: Decoder,
    splitter: Splitter,
}

impl WordCounter {
    /// Counts the next chunk, of any length.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        let Self { decoder, splitter } = self;
        decoder.feed(bytes, |piece| splitter.take(piece));
    }

    /// Ends the input: a word at its very end is complete.
    pub(crate) fn finish(mut self) -> Table {
        let Self { decoder, splitter } = &mut self;
        decoder.finish(|piece| splitter.take(piece));
        splitter.end_word();
        self.abandon()
    }

    /// Stops before the end of the input: an unfinished word is not counted.
    pub(crate) fn abandon(self) -> Table {
        let mut table = self.splitter.table;
        // Of whole words: the lower case of a sigma depends on its neighbours.
        table.merge(self.splitter.as_written.map_words(str::to_lowercase));
        table
    }
}

/// Splits text into words and counts them.
#[derive(Debug, Default)]
struct Splitter {
    /// The start of a word that goes up to the end of the text so far, as it is written.
    unfinished: String,
    /// ASCII words, lower-cased.
    table: Table,
    /// The other words.
    as_written: Table,
}

impl Splitter {
    fn take(&mut self, piece: Piece<'_>) {
        match piece {
            Piece::Text(text) => self.split(text),
            // U+FFFD is not alphabetic.
            Piece::Invalid => self.end_word(),
        }
    }

    fn split(&mut self, text: &str) {
        let mut at = 0;
        if !self.unfinished.is_empty() {
            at = word_end(text, 0);
            self.unfinished.push_str(&text[..at]);
            if at == text.len() {
                return;
            }
            self.end_word();
        }
        while let Some(start) = next_word(text, at) {
            if let Some((word, length)) = short_ascii_word(&text.as_bytes()[start..]) {
                self.table.add_packed(word, 1);
                at = start + length;
                continue;
            }
            at = word_end(text, start);
            if at == text.len() {
                self.unfinished.push_str(&text[start..]);
                return;
            }
            self.add(&text[start..at]);
        }
    }

    fn end_word(&mut self) {
        if !self.unfinished.is_empty() {
            let word = std::mem::take(&mut self.unfinished);
            self.add(&word);
        }
    }

    fn add(&mut self, word: &str) {
        if !word.is_ascii() {
            self.as_written.add(word.as_bytes(), 1);
        } else if word.len() <= PACKED_BYTES {
            self.table.add_packed(lower_case(pack(word.as_bytes())), 1);
        } else {
            self.table.add(word.to_ascii_lowercase().as_bytes(), 1);
        }
    }
}

/// Returns a number with this byte at each place.
const fn each(byte: u8) -> u128 {
    u128::from_be_bytes([byte; PACKED_BYTES])
}

/// Reads the ASCII word at the start of `bytes`, packed and lower-cased, and its length. `None`
/// unless the word ends, with ASCII, within the first sixteen bytes. The first byte is a letter.
#[inline]
fn short_ascii_word(bytes: &[u8]) -> Option<(u128, usize)> {
    let text = u128::from_be_bytes(*bytes.first_chunk()?);
    let seven_bits = text & each(0x7f);
    let lower_case_letters = seven_bits | each(0x20);
    // At each place, seven bits can't overflow: the eighth says whether the letter is large enough.
    let from_a = lower_case_letters + each(0x80 - b'a');
    let beyond_z = lower_case_letters + each(0x7f - b'z');
    let ascii = !text;
    let others = !(from_a & !beyond_z & ascii) & each(0x80);
    let length = others.leading_zeros() as usize / 8;
    if length == PACKED_BYTES || !bytes[length].is_ascii() {
        return None;
    }
    let word = text & !(u128::MAX >> (8 * length));
    Some((lower_case(word), length))
}

/// Makes a packed word of ASCII letters lower-case: sets the bit 0x20 wherever 0x40 is set. All
/// letters have 0x40, and padding does not.
#[inline]
fn lower_case(word: u128) -> u128 {
    word | (word & each(0x40)) >> 1
}

/// Finds the start of the next word, from `at` on.
#[inline]
fn next_word(text: &str, mut at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    loop {
        let byte = *bytes.get(at)?;
        if byte.is_ascii_alphabetic() {
            return Some(at);
        }
        at += match byte.is_ascii() {
            true => 1,
            false => match next_char(text, at)? {
                character if is_alphabetic(character) => return Some(at),
                character => character.len_utf8(),
            },
        };
    }
}

/// Finds the end of the word around `at`.
fn word_end(text: &str, mut at: usize) -> usize {
    let bytes = text.as_bytes();
    while let Some(&byte) = bytes.get(at) {
        if byte.is_ascii_alphabetic() {
            at += 1;
            continue;
        }
        match next_char(text, at) {
            Some(character) if !byte.is_ascii() && is_alphabetic(character) => {
                at += character.len_utf8();
            }
            _ => break,
        }
    }
    at
}

fn next_char(text: &str, at: usize) -> Option<char> {
    text[at..].chars().next()
}

/// The characters of one and two bytes: most of the letters in most alphabets.
const SHORT_CHARS: u32 = 0x800;

/// `char::is_alphabetic`, which searches, as a table of the short characters.
static ALPHABETIC: LazyLock<Box<[bool]>> = LazyLock::new(|| {
    let chars = (0..SHORT_CHARS).map(char::from_u32);
    chars.map(|c| c.is_some_and(char::is_alphabetic)).collect()
});

fn is_alphabetic(character: char) -> bool {
    match ALPHABETIC.get(character as usize) {
        Some(&alphabetic) => alphabetic,
        None => character.is_alphabetic(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// Counts words by the definition, word for word.
    fn plain(bytes: &[u8]) -> Vec<(String, u64)> {
        let mut counts = HashMap::new();
        let text = String::from_utf8_lossy(bytes);
        for word in text.split(|c: char| !c.is_alphabetic()) {
            if !word.is_empty() {
                *counts.entry(word.to_lowercase()).or_insert(0) += 1;
            }
        }
        let mut ranked: Vec<_> = counts.into_iter().collect();
        ranked.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        ranked
    }

    fn count(bytes: &[u8], chunk: usize) -> Table {
        let mut counter = WordCounter::default();
        for chunk in bytes.chunks(chunk) {
            counter.feed(chunk);
        }
        counter.finish()
    }

    fn check(bytes: &[u8]) {
        let expected = plain(bytes);
        for chunk in 1..=bytes.len() + 1 {
            let table = count(bytes, chunk);
            assert_eq!(
                table.top(usize::MAX),
                expected,
                "{bytes:x?} in chunks of {chunk}"
            );
            assert_eq!(table.words(), expected.iter().map(|(_, n)| n).sum::<u64>());
            assert_eq!(table.distinct(), expected.len());
        }
    }

    #[test]
    fn words_are_maximal_alphabetic_runs_lower_cased() {
        let cases = [
            "",
            "The the THE tHe",
            "don't 2nd x86_64 naïve—Ünïcödé",
            "ΟΔΥΣΣΕΥΣ ΣΑΣ Σ İstanbul ẞ ǅ",
            "漢字。かな ﬁn ª ⅷ ª٣",
            "straße\u{301}s e\u{301}a",
            "@AZ[ `az{ \u{7f} internationalization uncharacteristically x",
        ];
        for case in cases {
            check(case.as_bytes());
        }
        check(b"a\xffb \xe2\x82c \xf0\x9f\xa6");
    }

    #[test]
    fn every_character_separates_or_not_as_the_standard_library_says() {
        let text: String = ('\0'..=char::MAX)
            .flat_map(|c| ['x', c, 'y', ' '])
            .collect();
        assert_eq!(
            count(text.as_bytes(), 4099).top(usize::MAX),
            plain(text.as_bytes())
        );
    }

    #[test]
    fn words_of_all_lengths_around_the_packed_one_are_counted() {
        for length in 1..2 * PACKED_BYTES + 2 {
            let word = "aZ".repeat(length);
            let word = &word[..length];
            let text = format!("{word} {word}. {word}é {word}—{word}");
            check(text.as_bytes());
        }
    }

    #[test]
    fn an_abandoned_count_leaves_out_the_word_that_has_not_ended() {
        let mut counter = WordCounter::default();
        counter.feed(b"one two thr");
        assert_eq!(
            counter.abandon().top(9),
            [("one".into(), 1), ("two".into(), 1)]
        );
    }

    proptest! {
        #[test]
        fn any_text_in_any_chunks_counts_as_the_whole(
            text in "[a-cA-C éÉΣσß漢\u{301}0-9'—\n]{0,40}",
        ) {
            check(text.as_bytes());
        }

        #[test]
        fn any_bytes_in_any_chunks_count_as_the_whole(
            bytes in prop::collection::vec(
                prop_oneof![any::<u8>(), b'@'..=b'{', Just(b' '), Just(0xc3), Just(0xa9)], 0..60,
            ),
        ) {
            check(&bytes);
        }
    }
}
