//! Splits Rust text into tokens, so that neither comments nor the layout matter to a comparison.
//!
//! A parser such as `syn` reads whole items only, and a mutant may look for half of an item: the
//! head of an `if`, or a closing brace with the tokens behind. So this module knows only where
//! tokens begin and end. Comments in comments are not read.

use std::ops::Range;

/// A token, and its place in its text, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    pub(crate) range: Range<usize>,
}

/// Signs of several characters. `<<` and `>>` are not among them: they also close generics.
const SIGNS: [&str; 20] = [
    "..=", "...", "::", "->", "=>", "==", "!=", "<=", ">=", "&&", "||", "..", "+=", "-=", "*=",
    "/=", "%=", "^=", "&=", "|=",
];

impl Token<'_> {
    pub(crate) fn is_comment(&self) -> bool {
        self.text.starts_with("//") || self.text.starts_with("/*")
    }
}

/// Returns the tokens of a text, in order, without comments.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = pieces(text);
    tokens.retain(|token| !token.is_comment());
    tokens
}

/// Returns the texts of the tokens of a text.
pub(crate) fn texts(text: &str) -> Vec<&str> {
    tokens(text).into_iter().map(|token| token.text).collect()
}

/// Returns the tokens and the comments of a text. An unfinished token extends to the end.
pub(crate) fn pieces(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut start = 0;
    while let Some(first) = text[start..].chars().next() {
        let range = start..start + length(&text[start..], first);
        start = range.end;
        if !first.is_whitespace() {
            let text = &text[range.clone()];
            tokens.push(Token { text, range });
        }
    }
    tokens
}

/// Returns the length of the token, comment or blank at the start of a text.
fn length(text: &str, first: char) -> usize {
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    } else if text.starts_with("/*") {
        return text.find("*/").map_or(text.len(), |end| end + 2);
    }
    match first {
        '"' => string(text),
        '\'' => character(text),
        _ if is_word(first) => {
            let length = word(text);
            let (prefix, rest) = text.split_at(length);
            let digit = rest.strip_prefix('.').and_then(|rest| rest.chars().next());
            length
                + match prefix {
                    "b" | "c" if rest.starts_with('"') => string(rest),
                    "b" if rest.starts_with('\'') => character(rest),
                    "r" | "br" | "cr" => raw(rest),
                    // `1.5` is a single token; `0..2` and `1.max(2)` start with a number.
                    _ if first.is_ascii_digit() && digit.is_some_and(|c| c.is_ascii_digit()) => {
                        1 + word(&rest[1..])
                    }
                    _ => 0,
                }
        }
        _ => {
            let sign = SIGNS.iter().find(|&sign| text.starts_with(sign));
            sign.map_or(first.len_utf8(), |sign| sign.len())
        }
    }
}

pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn word(text: &str) -> usize {
    text.find(|c| !is_word(c)).unwrap_or(text.len())
}

fn string(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => _ = chars.next(),
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the length of the rest of a raw string or of a raw name after the `r`; 0 for neither.
fn raw(text: &str) -> usize {
    let hashes = text.len() - text.trim_start_matches('#').len();
    let (marks, rest) = text.split_at(hashes);
    match rest.strip_prefix('"') {
        Some(inner) => {
            let close = format!("\"{marks}");
            let end = inner.find(&close).map(|end| hashes + 1 + end + close.len());
            end.unwrap_or(text.len())
        }
        None if hashes == 1 => 1 + word(rest),
        None => 0,
    }
}

/// Returns the length of a character, a lifetime or a label.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((at, _))) => {
            let end = text.get(at + 1..).and_then(|rest| rest.find('\''));
            end.map_or(text.len(), |end| at + end + 2)
        }
        (_, Some((at, '\''))) => at + 1,
        _ => 1 + word(&text[1..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_layout_are_no_tokens() {
        let text = "/// a\nfn /* b */ e(\n) { // f\n\t}\n//! g";
        assert_eq!(texts(text), ["fn", "e", "(", ")", "{", "}"]);
    }

    #[test]
    fn strings_characters_names_and_numbers_are_one_token() {
        let text = r####""a // \" b" r#"a " /* "# br"\" b"a" '"' '\'' b'\\' '\u{1F}' 'ä' 'a 'static
            r#move r r_b x1 1.5 1_u8"####;
        let blanks = |text: &str| text.replace([' ', '\n'], "");
        let tokens = texts(text);
        assert_eq!(tokens.len(), 17, "{tokens:?}");
        assert_eq!(blanks(&tokens.concat()), blanks(text));
    }

    #[test]
    fn signs_are_whole_and_generics_close_one_by_one() {
        let text = "a==b=!c::<d<e>>()..=0..1.x.0.max(1)&&&f";
        let expected = "a == b = ! c :: < d < e > > ( ) ..= 0 .. 1 . x . 0 . max ( 1 ) && & f";
        assert_eq!(texts(text).join(" "), expected);
    }

    #[test]
    fn unfinished_text_ends() {
        for text in [
            "\"a", "/* a", "r#\"a", "'", "'\\", "'\\x", "//", "r#", "b'", "1.",
        ] {
            assert!(texts(text).len() <= 2, "{text}");
        }
    }
}
