//! A Rust file, line by line, with code and comments in two texts and nothing in its strings.

use crate::rust::{Outline, pieces, tokens};

/// One file.
pub(super) struct Source {
    /// Relative to the project, with `/` on every system.
    pub(super) path: String,
    pub(super) text: String,
    pub(super) lines: Vec<Line>,
}

/// One line.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// The code, with strings and characters emptied and without comments.
    pub(super) code: String,
    /// The text of its comments, without their marks.
    pub(super) comment: String,
}

impl Source {
    pub(super) fn parse(path: &str, text: &str) -> Self {
        let mut lines = vec![Line::default()];
        let mut add = |text: &str, is_comment: bool| {
            for (number, part) in text.split('\n').enumerate() {
                if number > 0 {
                    lines.push(Line::default());
                }
                let line = lines.last_mut().expect("the first line is there");
                let place = match is_comment {
                    true => &mut line.comment,
                    false => &mut line.code,
                };
                place.push_str(part);
            }
        };
        let mut end = 0;
        for piece in pieces(text) {
            add(&text[end..piece.range.start], false);
            end = piece.range.end;
            if piece.text.starts_with("//") {
                add(piece.text.trim_start_matches(['/', '!']), true);
            } else if piece.is_comment() {
                add(&piece.text.replace("/*", "").replace("*/", ""), true);
            } else {
                add(&emptied(piece.text), false);
            }
        }
        add(&text[end..], false);
        lines.pop_if(|line| *line == Line::default());
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            lines,
        }
    }

    /// The lines with their numbers, from 1.
    pub(super) fn numbered(&self) -> impl Iterator<Item = (usize, &Line)> {
        (1..).zip(&self.lines)
    }

    /// Returns the tokens outside of tests, with their lines.
    pub(super) fn tokens(&self) -> Vec<(usize, &str)> {
        let tokens = tokens(&self.text);
        let tests = Outline::of(&tokens, &[]).for_tests;
        let (mut line, mut end) = (1, 0);
        let mut numbered = Vec::new();
        for (at, token) in tokens.iter().enumerate() {
            line += self.text[end..token.range.start].matches('\n').count();
            end = token.range.start;
            if !tests.iter().any(|test| test.contains(&at)) {
                numbered.push((line, token.text));
            }
        }
        numbered
    }

    /// Returns the file's folder in `crates`, if it is product code: below `src`.
    pub(super) fn product_crate(&self) -> Option<&str> {
        let (name, rest) = self.path.strip_prefix("crates/")?.split_once('/')?;
        rest.starts_with("src/").then_some(name)
    }
}

impl Line {
    /// Whether its code has `word`, not as a part of a longer word.
    pub(super) fn has(&self, word: &str) -> bool {
        let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        self.code.match_indices(word).any(|(at, _)| {
            let before = is_part(self.code[..at].chars().next_back());
            let after = is_part(self.code[at + word.len()..].chars().next());
            !before && !after
        })
    }
}

/// Returns a token; a string or a character without its content but its line breaks.
fn emptied(token: &str) -> String {
    for quote in ['"', '\''] {
        if let (Some(first), Some(last)) = (token.find(quote), token.rfind(quote))
            && first < last
        {
            let breaks = "\n".repeat(token.matches('\n').count());
            return format!("{}{breaks}{}", &token[..=first], &token[last..]);
        }
    }
    token.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_not_code_and_strings_are_empty() {
        let text =
            "a(\"b // \\\" c\"); // b\n/* c /* d */\n e */ f\n//! g\nr#\"a \"\n// \"# '\"'\n";
        let source = Source::parse("x.rs", text);
        let lines = source.lines.iter();
        let lines: Vec<_> = lines.map(|l| (&*l.code, l.comment.trim())).collect();
        let expected = [
            ("a(\"\"); ", "b"),
            ("", "c  d"),
            (" f", "e"),
            ("", "g"),
            ("r#\"", ""),
            ("\"# ''", ""),
        ];
        assert_eq!(lines, expected);
        assert!(source.lines[0].has("a") && !source.lines[0].has("b"));
    }

    #[test]
    fn tokens_of_tests_are_left_out() {
        let source = Source::parse("x.rs", "a;\n/* \n */ b;\n#[cfg(test)]\nmod tests { c }\nd");
        assert_eq!(
            source.tokens(),
            [(1, "a"), (1, ";"), (3, "b"), (3, ";"), (6, "d")]
        );
    }
}
