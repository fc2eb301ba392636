//! Splits Rust text into tokens, so that neither comments nor the layout matter to a comparison.
//!
//! A parser such as `syn` reads whole items only, and a mutant may look for half of an item: the
//! head of an `if`, or a closing brace with the tokens behind. So this module knows only where
//! tokens begin and end.

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

/// Returns the tokens and the comments of a text. An unfinished token extends to the end.
pub(crate) fn pieces(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut start = 0;
    while let Some(first) = text[start..].chars().next() {
        let rest = &text[start..];
        let length = if first.is_whitespace() {
            first.len_utf8()
        } else if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment(rest)
        } else {
            token(rest, first)
        };
        let range = start..start + length;
        start = range.end;
        if !first.is_whitespace() {
            let text = &text[range.clone()];
            tokens.push(Token { text, range });
        }
    }
    tokens
}

/// Returns the length of the comment at the start of a text; comments nest.
fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    at
}

/// Returns the length of the token at the start of a text.
fn token(text: &str, first: char) -> usize {
    match first {
        '"' => string(text),
        '\'' => character(text).unwrap_or_else(|| 1 + word(&text[1..])),
        '0'..='9' => number(text),
        _ if is_word(first) => {
            let length = word(text);
            let (prefix, rest) = text.split_at(length);
            match prefix {
                "b" | "c" if rest.starts_with('"') => length + string(rest),
                "b" if rest.starts_with('\'') => length + character(rest).unwrap_or(rest.len()),
                "r" | "br" | "cr" => length + raw(rest),
                _ => length,
            }
        }
        _ => {
            let sign = SIGNS.iter().find(|&sign| text.starts_with(sign));
            sign.map_or(first.len_utf8(), |sign| sign.len())
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn word(text: &str) -> usize {
    text.find(|c| !is_word(c)).unwrap_or(text.len())
}

/// Returns the length of a number: `1.5` is a single token; `0..2` and `1.max(2)` start with a
/// number.
fn number(text: &str) -> usize {
    let whole = word(text);
    let fraction = text[whole..].strip_prefix('.');
    match fraction {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => whole + 1 + word(rest),
        _ => whole,
    }
}

fn string(text: &str) -> usize {
    let mut escaped = false;
    let end = text[1..].find(|c| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 2)
}

/// Returns the length of the rest of a raw string or of a raw name after the `r`; 0 for neither.
fn raw(text: &str) -> usize {
    let hashes = text.len() - text.trim_start_matches('#').len();
    let rest = &text[hashes..];
    if let Some(inner) = rest.strip_prefix('"') {
        let close = format!("\"{}", "#".repeat(hashes));
        let end = inner.find(&close);
        end.map_or(text.len(), |end| hashes + 1 + end + close.len())
    } else if hashes == 1 {
        1 + word(rest)
    } else {
        0
    }
}

/// How long the character is; none if it is a lifetime or a label.
fn character(text: &str) -> Option<usize> {
    let mut chars = text.char_indices().skip(1);
    let (_, first) = chars.next()?;
    let (second_at, second) = chars.next()?;
    if first == '\\' {
        let after = second_at + second.len_utf8();
        return Some(
            text[after..]
                .find('\'')
                .map_or(text.len(), |end| after + end + 1),
        );
    }
    (second == '\'').then_some(second_at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        tokens(text).into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn comments_and_layout_are_no_tokens() {
        let text = "/// a\nfn /* b /* c */ d */ e(\n) { // f\n\t}\n//! g";
        assert_eq!(texts(text), ["fn", "e", "(", ")", "{", "}"]);
        assert_eq!(texts("a\n  .b( c )"), texts("a.b(c)"));
    }

    #[test]
    fn strings_and_characters_are_one_token() {
        for text in [
            r#""a // \" b""#,
            r##"r#"a " /* "#"##,
            r#"br"\""#,
            r#"b"a""#,
            r#"c"a""#,
            "'\"'",
            r"'\''",
            r"b'\\'",
            r"'\u{1F}'",
            "'ä'",
        ] {
            assert_eq!(texts(&format!("({text})")), ["(", text, ")"]);
        }
    }

    #[test]
    fn lifetimes_and_names_are_one_token() {
        let text = "&'a str, 'b: loop r#move r r_b x1";
        let expected = [
            "&", "'a", "str", ",", "'b", ":", "loop", "r#move", "r", "r_b", "x1",
        ];
        assert_eq!(texts(text), expected);
        assert_eq!(texts("<'_>"), ["<", "'_", ">"]);
    }

    #[test]
    fn signs_are_whole_and_generics_close_one_by_one() {
        let text = "a==b=!c::<d<e>>()..=0..1.5..x.0.max(1_u8)&&&f";
        let expected = [
            "a", "==", "b", "=", "!", "c", "::", "<", "d", "<", "e", ">", ">", "(", ")", "..=",
            "0", "..", "1.5", "..", "x", ".", "0", ".", "max", "(", "1_u8", ")", "&&", "&", "f",
        ];
        assert_eq!(texts(text), expected);
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
