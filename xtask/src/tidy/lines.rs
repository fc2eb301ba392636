//! Rules of single lines: words that some code must not have, comments at atomic accesses, plain
//! words, and sizes.

use super::Findings;
use super::source::{Source, count};
use crate::rust::is_word;

/// Returns the rules of words: the words, the crates, the files that may have the words, and why.
fn rules() -> impl Iterator<Item = [&'static str; 4]> {
    let lines = include_str!("../../words.txt")
        .lines()
        .filter(|line| !line.starts_with('#'));
    let parts = lines.map(|line| Vec::from_iter(line.split(" | ")));
    parts.map(|parts| {
        parts
            .try_into()
            .expect("a rule of words.txt has four parts")
    })
}

/// Returns whether a crate runs under simulation. The facade's examples, and programs, are users of
/// the scheduler; soaks test from outside.
fn is_simulated(name: &str) -> bool {
    !["chaos", "ganger", "soak", "soak-sched", "top"].contains(&name)
}

const ORDERINGS: [&str; 5] = ["Relaxed", "Acquire", "Release", "AcqRel", "SeqCst"];

/// How far above an atomic access its comment may start when statements are between them.
const REACH: usize = 6;

/// Pronouns in whose place a role has a name: the sender, the worker, the thief.
const PRONOUNS: &str = "who whoever whom somebody nobody everybody anybody";

const MOST_COLUMNS: usize = 100;
const MOST_LINES: usize = 600;

pub(super) fn check(source: &Source, findings: &mut Findings) {
    let path = &*source.path;
    let own = path.trim_start_matches("crates/");
    let name = source.product_crate();
    let is_of = |it: &str| match (name, it) {
        (Some(name), "simulated") => is_simulated(name),
        (Some(name), it) => it == "*" || it == name,
        (None, _) => false,
    };
    let mut rules: Vec<_> = rules().collect();
    rules.retain(|[_, crates, but, _]| {
        crates.split(' ').any(is_of) && !but.split(' ').any(|it| it == own)
    });
    for (number, line) in source.numbered() {
        let has = |word: &str| count(&line.code, word) > 0;
        if name.is_some() && !line.code.trim().is_empty() {
            for [words, _, _, what] in &rules {
                let mut words = words.split(' ');
                if let Some(words) = words.find(|words| words.split('+').all(has)) {
                    findings.add(path, number, format!("`{words}`: {what}"));
                }
            }
            let has_access = ORDERINGS.iter().any(|it| has(&format!("Ordering::{it}")));
            if has_access && !is_explained(source, number - 1) {
                let what = "an atomic access without an `// Ordering:` comment";
                findings.add(path, number, what);
            }
        }
        check_words(path, number, &line.comment, findings);
    }
    for (number, text) in (1..).zip(source.text.lines()) {
        if text.chars().count() > MOST_COLUMNS {
            findings.add(path, number, format!("more than {MOST_COLUMNS} columns"));
        }
    }
    if source.lines.len() > MOST_LINES {
        let what = format!("more than {MOST_LINES} lines: one idea a file");
        findings.add(path, MOST_LINES + 1, what);
    }
}

/// Checks a document.
pub(super) fn check_document(path: &str, text: &str, findings: &mut Findings) {
    for (number, line) in (1..).zip(text.lines()) {
        check_words(path, number, line, findings);
        if line.starts_with("<<<<<<< ") || line.starts_with(">>>>>>> ") {
            findings.add(path, number, "a conflict of a merge");
        }
    }
}

/// Returns whether an `Ordering:` comment begins in the statement with the line at `index`, just
/// above the statement, or in the [`REACH`] lines above the line.
fn is_explained(source: &Source, index: usize) -> bool {
    let before = source.lines[..index].iter();
    let ends = |code: &str| code.trim_end().ends_with([';', '{', '}']);
    let end = before.rev().position(|line| ends(&line.code));
    let start = (index - end.unwrap_or(index)).min(index.saturating_sub(REACH));
    let mut lines = source.lines[start..=index].iter();
    lines.any(|line| line.comment.trim().starts_with("Ordering:"))
}

/// Complains of the first of the pronouns in a text.
fn check_words(path: &str, number: usize, text: &str, findings: &mut Findings) {
    let is_pronoun = |word: &&str| PRONOUNS.split(' ').any(|it| it.eq_ignore_ascii_case(word));
    if let Some(word) = text.split(|c| !is_word(c)).find(is_pronoun) {
        let what = format!("`{word}`: name the role, such as the sender, the worker, the thief");
        findings.add(path, number, what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lines with findings in a made-up file.
    fn lines(path: &str, text: &str) -> Vec<usize> {
        let mut findings = Findings::default();
        check(&Source::parse(path, text), &mut findings);
        findings.0.into_iter().map(|(_, line, _)| line).collect()
    }

    #[test]
    fn forbidden_words_are_found_in_the_code_of_their_crates() {
        let text = "use std::sync::Arc;\nuse std::sync::{Arc, atomic};\nlet a = Instant::now();\n\
                    // Instant::now\nlet c = \"Instant::now\";\nfastrand::usize(..4);\n\
                    random: fastrand::Rng,\nfastrand::Rng::new();\nHashMap::with_hasher(x);\n";
        assert_eq!(lines("crates/deque/src/a.rs", text), [2, 3, 6, 8, 9]);
        assert_eq!(lines("crates/channel/src/block.rs", text), [6, 8, 9]);
        assert_eq!(lines("crates/soak/src/a.rs", text), [9]);
        assert!(lines("crates/deque/tests/a.rs", text).is_empty());
    }

    #[test]
    fn an_atomic_access_is_explained_in_its_statement_or_just_above() {
        let long = "x.swap(\n  1,\n  2,\n  3,\n  4,\n  5,\n  6,\n  Ordering::Relaxed,\n);\n";
        let far = "y();\n".repeat(6) + "x.load(Ordering::Acquire);";
        for (head, rest, found) in [
            (
                "// Ordering: so.\n// More.\n",
                "x.load(Ordering::Relaxed);\n",
                vec![],
            ),
            ("", "x.load(Ordering::Relaxed); // Ordering: so\n", vec![]),
            ("y();\n// Ordering: because.\n", long, vec![]),
            ("", long, vec![8]),
            ("// Ordering: so.\n", &far, vec![8]),
            (
                "let a = \"Ordering:\";\n",
                "fence(Ordering::SeqCst);",
                vec![2],
            ),
            ("", "a.cmp(b) == Ordering::Less", vec![]),
        ] {
            let lines = lines("crates/sync/src/a.rs", &format!("{head}{rest}"));
            assert_eq!(lines, found, "{rest}");
        }
    }

    #[test]
    fn comments_and_documents_name_roles_and_have_a_size() {
        let text = "// Whoever comes\nlet who = 1;\n\"nobody\"\n// thenobody\n//! Told nobody.\n";
        assert_eq!(lines("crates/deque/src/a.rs", text), [1, 5]);
        let mut findings = Findings::default();
        check_document(
            "a.md",
            "A sender.\nAnybody, else.\n<<<<<<< HEAD\n===\n",
            &mut findings,
        );
        assert_eq!(findings.0.len(), 2);
        let fits = format!("// {}\n", "ä".repeat(97));
        let wide = format!("{fits}// {}\n", "b".repeat(98));
        assert_eq!(lines("xtask/src/a.rs", &wide), [2]);
        assert_eq!(lines("xtask/src/a.rs", &fits.repeat(601)), [601]);
    }
}
