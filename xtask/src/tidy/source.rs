//! A Rust file, line by line, with code and comments in two texts and nothing in its strings.

/// One file.
pub(super) struct Source {
    /// Relative to the project, with `/` on every system.
    pub(super) path: String,
    pub(super) lines: Vec<Line>,
}

/// One line.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// The code, with strings and characters emptied and without comments.
    pub(super) code: String,
    /// The text of its comments, without their marks.
    pub(super) comment: String,
    /// The number of characters, with the content of strings.
    pub(super) columns: usize,
}

impl Source {
    pub(super) fn parse(path: &str, text: &str) -> Self {
        let mut lines = Lexer::new(text).lines();
        for (line, whole) in lines.iter_mut().zip(text.lines()) {
            line.columns = whole.chars().count();
        }
        Self {
            path: path.to_owned(),
            lines,
        }
    }

    /// The lines with their numbers, from 1.
    pub(super) fn numbered(&self) -> impl Iterator<Item = (usize, &Line)> {
        (1..).zip(&self.lines)
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
        let first_is_part = is_part(word.chars().next());
        let last_is_part = is_part(word.chars().next_back());
        self.code.match_indices(word).any(|(at, _)| {
            let before = is_part(self.code[..at].chars().next_back());
            let after = is_part(self.code[at + word.len()..].chars().next());
            !(before && first_is_part || after && last_is_part)
        })
    }
}

/// Splits a text without understanding more of Rust than where strings and comments end.
struct Lexer<'a> {
    rest: &'a str,
    lines: Vec<Line>,
    line: Line,
}

impl<'a> Lexer<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            rest: text,
            lines: Vec::new(),
            line: Line::default(),
        }
    }

    fn lines(mut self) -> Vec<Line> {
        while let Some(c) = self.rest.chars().next() {
            if self.rest.starts_with("//") {
                self.line_comment();
            } else if self.rest.starts_with("/*") {
                self.block_comment();
            } else if c == '"' {
                self.string();
            } else if c == '\'' {
                self.character_or_lifetime();
            } else if c.is_alphabetic() || c == '_' {
                self.word();
            } else {
                self.code(c.len_utf8());
            }
        }
        if self.line != Line::default() {
            self.lines.push(self.line);
        }
        self.lines
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    /// Takes `length` bytes as code.
    fn code(&mut self, length: usize) {
        for c in self.take(length).chars() {
            match c {
                '\n' => self.lines.push(std::mem::take(&mut self.line)),
                c => self.line.code.push(c),
            }
        }
    }

    /// Drops `length` bytes, and keeps the line breaks in them.
    fn skip(&mut self, length: usize) {
        let breaks = self.take(length).matches('\n').count();
        for _ in 0..breaks {
            self.lines.push(std::mem::take(&mut self.line));
        }
    }

    fn line_comment(&mut self) {
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        let comment = self.take(end);
        self.line
            .comment
            .push_str(comment.trim_start_matches(['/', '!']));
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        while !self.rest.is_empty() {
            if self.rest.starts_with("/*") {
                depth += 1;
                self.take(2);
            } else if self.rest.starts_with("*/") {
                depth -= 1;
                self.take(2);
                if depth == 0 {
                    return;
                }
            } else if self.rest.starts_with('\n') {
                self.skip(1);
            } else if let Some(c) = self.rest.chars().next() {
                self.take(c.len_utf8());
                self.line.comment.push(c);
            }
        }
    }

    fn string(&mut self) {
        self.code(1);
        let mut escaped = false;
        let end = self.rest.find(|c| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        self.skip(end.unwrap_or(self.rest.len()));
        self.code(self.rest.len().min(1));
    }

    /// Skips `r"…"` or `r#"…"#`, with the `r` taken already, but not `r#word`.
    fn raw_string(&mut self) {
        let hashes = self.rest.len() - self.rest.trim_start_matches('#').len();
        if !self.rest[hashes..].starts_with('"') {
            return;
        }
        self.code(hashes + 1);
        let end = format!("\"{}", "#".repeat(hashes));
        self.skip(self.rest.find(&end).unwrap_or(self.rest.len()));
        self.code(self.rest.len().min(end.len()));
    }

    fn character_or_lifetime(&mut self) {
        let mut chars = self.rest.char_indices().skip(1);
        let end = match (chars.next(), chars.next()) {
            (Some((_, '\\')), Some((after, c))) => {
                let after = after + c.len_utf8();
                self.rest[after..].find('\'').map(|end| after + end)
            }
            (Some(_), Some((end, '\''))) => Some(end),
            _ => None,
        };
        self.code(1);
        if let Some(end) = end {
            self.skip(end - 1);
            self.code(1);
        }
    }

    fn word(&mut self) {
        let end = self.rest.find(|c: char| !(c.is_alphanumeric() || c == '_'));
        let end = end.unwrap_or(self.rest.len());
        let word = &self.rest[..end];
        self.code(end);
        if matches!(word, "r" | "br" | "cr") {
            self.raw_string();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Vec<String> {
        Source::parse("x.rs", text)
            .lines
            .into_iter()
            .map(|line| line.code)
            .collect()
    }

    #[test]
    fn comments_are_not_code() {
        let source = Source::parse("x.rs", "a; // b\n/* c /* d */\n e */ f\n//! g\n/// h\n");
        let lines: Vec<_> = source
            .lines
            .iter()
            .map(|l| (&*l.code, l.comment.trim()))
            .collect();
        let expected = [
            ("a; ", "b"),
            ("", "c  d"),
            (" f", "e"),
            ("", "g"),
            ("", "h"),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn strings_and_characters_are_empty() {
        assert_eq!(code("a(\"b // \\\" c\\\\\") // d"), ["a(\"\") "]);
        assert_eq!(
            code("a('\"', '\\'', b'\\\\', '\\u{1F}', 'b') \"\""),
            ["a('', '', b'', '', '') \"\""]
        );
        assert_eq!(
            code("r#\"a \" // \"# b r\"c\\\" r#d"),
            ["r#\"\"# b r\"\" r#d"]
        );
        assert_eq!(code("\"a\n// b\n\"; c"), ["\"", "", "\"; c"]);
    }

    #[test]
    fn lifetimes_are_no_characters() {
        assert_eq!(
            code("fn a<'b>(c: &'b str, d: &'_ str) {} 'e: loop {}"),
            ["fn a<'b>(c: &'b str, d: &'_ str) {} 'e: loop {}"]
        );
    }

    #[test]
    fn unfinished_text_does_not_hang() {
        for text in ["\"a", "/* a", "r#\"a", "'", "'\\", "//", "r", "r#"] {
            assert!(code(text).len() <= 1, "{text}");
        }
    }

    #[test]
    fn words_are_found_whole() {
        let has = |code: &str, word| {
            Line {
                code: code.into(),
                ..Line::default()
            }
            .has(word)
        };
        assert!(has("x = dbg!(y)", "dbg!"));
        assert!(!has("x = my_dbg!(y)", "dbg!"));
        assert!(has("use ganger_sched;", "ganger_sched"));
        assert!(!has("use ganger_scheduler;", "ganger_sched"));
    }

    #[test]
    fn product_code_is_below_src() {
        let product_crate = |path| Source::parse(path, "").product_crate().map(str::to_owned);
        assert_eq!(
            product_crate("crates/deque/src/a/b.rs").as_deref(),
            Some("deque")
        );
        assert_eq!(product_crate("crates/deque/tests/a.rs"), None);
        assert_eq!(product_crate("xtask/src/main.rs"), None);
    }
}
