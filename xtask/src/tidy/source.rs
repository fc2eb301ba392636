//! A Rust file, line by line, with code and comments in two texts and nothing in its strings.

use crate::rust::{is_word, items, pieces, tokens};

/// A file.
pub(super) struct Source {
    /// Relative to the project, with `/` on every system.
    pub(super) path: String,
    pub(super) text: String,
    pub(super) lines: Vec<Line>,
}

/// A line.
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
                match is_comment {
                    true => line.comment.push_str(part),
                    false => line.code.push_str(part),
                }
            }
        };
        let mut end = 0;
        for piece in pieces(text) {
            add(&text[end..piece.range.start], false);
            end = piece.range.end;
            match piece.is_comment() {
                true => add(piece.text.trim_start_matches(['/', '!', '*']), true),
                false => add(&emptied(piece.text), false),
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

    /// Returns the lines with their numbers, from 1.
    pub(super) fn numbered(&self) -> impl Iterator<Item = (usize, &Line)> {
        (1..).zip(&self.lines)
    }

    /// Returns the tokens outside of tests, with their lines.
    pub(super) fn tokens(&self) -> Vec<(usize, &str)> {
        let tokens = tokens(&self.text);
        let mut tests = items(&tokens, "");
        tests.retain(|item| item.is_test);
        let (mut line, mut end) = (1, 0);
        let mut numbered = Vec::new();
        for (at, token) in tokens.iter().enumerate() {
            line += self.text[end..token.range.start].matches('\n').count();
            end = token.range.start;
            if !tests.iter().any(|test| test.tokens.contains(&at)) {
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

/// Counts how often a text has words, not as parts of longer words.
pub(super) fn count(text: &str, words: &str) -> usize {
    let whole = text.match_indices(words).filter(|(at, _)| {
        let before = text[..*at].chars().next_back();
        let after = text[at + words.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    });
    whole.count()
}

/// Returns a token; a string or a character without its content but its line breaks.
fn emptied(token: &str) -> String {
    let quote = token.find(['"', '\'']);
    let last = quote.and_then(|quote| token.rfind(token[quote..].chars().next()?));
    match (quote, last) {
        (Some(first), Some(last)) if first < last => {
            let breaks = "\n".repeat(token.matches('\n').count());
            format!("{}{breaks}{}", &token[..=first], &token[last..])
        }
        _ => token.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_not_code_and_strings_are_empty() {
        let text = "a(\"b // \\\" c\"); // b\n/* c\n */ f\n//! g\nr#\"a \"\n// \"# '\"'\n";
        let source = Source::parse("x.rs", text);
        let lines = source.lines.iter();
        let lines: Vec<_> = lines
            .map(|it| it.code.clone() + "|" + it.comment.trim())
            .collect();
        let expected = ["a(\"\"); |b", "|c", " f|*/", "|g", "r#\"|", "\"# ''|"];
        assert_eq!(lines, expected);
        assert_eq!((count("a_b a, ba", "a"), count("x", "y")), (1, 0));
    }

    #[test]
    fn tokens_of_tests_are_left_out() {
        let source = Source::parse("x.rs", "a;\n/* \n */ b;\n#[cfg(test)]\nmod tests { c }\nd");
        let expected = [(1, "a"), (1, ";"), (3, "b"), (3, ";"), (6, "d")];
        assert_eq!(source.tokens(), expected);
    }
}
