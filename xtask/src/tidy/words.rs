//! Plain words: the subject of a sentence is a named role, and a line fits the screen.

use super::Finding;
use super::source::Source;

/// Pronouns in whose place a role has a name: the sender, the worker, the thief.
const PRONOUNS: [&str; 7] = [
    "who",
    "whoever",
    "whom",
    "somebody",
    "nobody",
    "everybody",
    "anybody",
];

/// The limit of characters in a line of a Rust file.
const MAX_COLUMNS: usize = 100;

/// Checks the words of comments, and the width of all lines.
pub(super) fn check(source: &Source, findings: &mut Vec<Finding>) {
    for (number, line) in source.numbered() {
        if let Some(word) = pronoun(&line.comment) {
            findings.push(Finding::new(source, number, advice(word)));
        }
        if line.columns > MAX_COLUMNS {
            let columns = line.columns;
            let what = format!("{columns} columns; at most {MAX_COLUMNS}");
            findings.push(Finding::new(source, number, what));
        }
    }
}

/// Checks the words of a document.
pub(super) fn check_document(path: &str, text: &str, findings: &mut Vec<Finding>) {
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(word) = pronoun(line) {
            findings.push(Finding {
                path: path.to_owned(),
                line: Some(number),
                what: advice(word),
            });
        }
    }
}

fn advice(word: &str) -> String {
    format!("`{word}`: name the role that it stands for, such as the sender, the worker, the thief")
}

/// The first of the pronouns in a text.
fn pronoun(text: &str) -> Option<&'static str> {
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    words
        .filter_map(|word| {
            let is_it = |pronoun: &&str| pronoun.eq_ignore_ascii_case(word);
            PRONOUNS.into_iter().find(|pronoun| is_it(pronoun))
        })
        .next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    #[test]
    fn pronouns_are_found_in_comments_alone_and_whole() {
        let text = "// Whoever comes\nlet who = 1;\n/// The one whose turn it is.\n\"nobody\"\n\
                    // is_somebody, thenobody\n//! Told to nobody.\n";
        let found = found(check, "crates/deque/src/a.rs", text);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("1: `whoever`: name the role"));
        assert!(found[1].starts_with("6: `nobody`: name the role"));
    }

    #[test]
    fn the_width_is_counted_in_characters_and_its_limit_is_exact() {
        let fits = format!("// {}\n", "ä".repeat(97));
        assert!(found(check, "xtask/src/a.rs", &fits).is_empty());
        let long = format!("let a = \"{}\";\n", "b".repeat(100));
        let found = found(check, "xtask/src/a.rs", &long);
        assert_eq!(found, ["1: 111 columns; at most 100"]);
    }

    #[test]
    fn documents_are_checked_line_by_line() {
        let mut findings = Vec::new();
        check_document("README.md", "A sender.\nAnybody, else.\n", &mut findings);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].line, Some(2));
    }
}
