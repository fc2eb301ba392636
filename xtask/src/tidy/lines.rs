//! Rules of single lines: words that some code must not have, comments at atomic accesses, plain
//! words, and sizes.

use super::Finding;
use super::source::Source;

/// Words that some files must not have.
struct Forbidden {
    /// Each entry is found in a line that has all its words.
    words: &'static [&'static str],
    what: &'static str,
    /// Whether the rule is for the product code of this crate.
    is_for: fn(&str) -> bool,
    /// Files that may have the words.
    but: &'static [&'static str],
}

const FORBIDDEN: [Forbidden; 4] = [
    Forbidden {
        words: &["std::sync atomic", "core::sync atomic"],
        what: "loom can't see these atomics: take ganger_sync::atomic",
        is_for: |name| ["deque", "nodes", "mpsc", "ring", "sched"].contains(&name),
        but: &[],
    },
    // The same code runs in a simulation, whose time is virtual.
    Forbidden {
        words: &["Instant::now", "SystemTime::now"],
        what: "a clock outside of the clock module",
        is_for: is_simulated,
        but: &[
            "crates/again/src/run.rs",
            "crates/sched/src/base/clock.rs",
            "crates/channel/src/block.rs",
            "crates/cluster/src/node/start.rs",
            "crates/mpsc/src/channel/receiver.rs",
            "crates/mpsc/src/channel/room.rs",
            "crates/mpsc/src/channel/yields.rs",
            "crates/net/src/hyper.rs",
            "crates/net/src/reactor/timers.rs",
            "crates/observe/src/dumps/files.rs",
            "crates/tokio/src/serve/activity.rs",
            "crates/wait/src/block.rs",
            "crates/os/src/backtraces/sample.rs",
        ],
    },
    // A seed repeats a simulation. A secret is no secret if it is seeded.
    Forbidden {
        words: &[
            "rand::rng",
            "rand::random",
            "RandomState",
            "fastrand::Rng::new",
            "fastrand::Rng::default",
        ],
        what: "chance that no seed repeats: take a seeded fastrand::Rng",
        is_for: is_simulated,
        but: &[
            "crates/again/src/run.rs",
            "crates/sched/src/runtime/hash_key.rs",
            "crates/sched/src/runtime/shared.rs",
        ],
    },
    // A stranger that knows the hash chooses keys that all meet in a single place.
    Forbidden {
        words: &[
            "rustc_hash",
            "fxhash",
            "FixedState",
            "foldhash::fast",
            "BuildHasherDefault",
            "with_hasher",
        ],
        what: "a hash without a key: take the map's default hasher",
        is_for: |_| true,
        but: &[],
    },
];

/// The facade's examples, and programs, are users of the scheduler; soaks are tests of others.
fn is_simulated(name: &str) -> bool {
    !["chaos", "ganger", "soak", "soak-sched", "top"].contains(&name)
}

/// How far above an atomic access its comment may start when statements are between them.
const REACH: usize = 6;

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

const MOST_COLUMNS: usize = 100;
const MOST_LINES: usize = 600;

/// The lines with which git marks both sides of a conflict.
const CONFLICTS: [&str; 2] = ["<<<<<<< ", ">>>>>>> "];

pub(super) fn check(source: &Source, findings: &mut Vec<Finding>) {
    let mut find = |line, what: String| findings.push(Finding::new(source, line, what));
    if let Some(name) = source.product_crate() {
        let is_for = |it: &&Forbidden| (it.is_for)(name) && !it.but.contains(&&*source.path);
        let rules: Vec<_> = FORBIDDEN.iter().filter(is_for).collect();
        for (number, line) in source.numbered() {
            for Forbidden { words, what, .. } in &rules {
                let has_all = |words: &&&str| words.split(' ').all(|word| line.has(word));
                if let Some(words) = words.iter().find(has_all) {
                    find(number, format!("`{words}`: {what}"));
                }
            }
            let has_function = line.has("fastrand") && !line.has("fastrand::Rng");
            if has_function && line.code.contains("fastrand::") && is_simulated(name) {
                find(
                    number,
                    "fastrand's thread-local generator: take a seeded one".to_owned(),
                );
            }
            let orderings = ["Relaxed", "Acquire", "Release", "AcqRel", "SeqCst"];
            let has_access = orderings
                .iter()
                .any(|it| line.has(&format!("Ordering::{it}")));
            if has_access && !is_explained(source, number - 1) {
                find(
                    number,
                    "an atomic access without an `// Ordering:` comment".to_owned(),
                );
            }
        }
    }
    for (number, (line, text)) in (1..).zip(source.lines.iter().zip(source.text.lines())) {
        if let Some(what) = pronoun(&line.comment) {
            find(number, what);
        }
        let columns = text.chars().count();
        if columns > MOST_COLUMNS {
            find(number, format!("{columns} columns; at most {MOST_COLUMNS}"));
        }
    }
    let lines = source.lines.len();
    if lines > MOST_LINES {
        find(
            MOST_LINES + 1,
            format!("{lines} lines; at most {MOST_LINES}: one idea a file"),
        );
    }
}

/// Checks a document.
pub(super) fn check_document(path: &str, text: &str, findings: &mut Vec<Finding>) {
    for (number, line) in (1..).zip(text.lines()) {
        let is_conflict = CONFLICTS.iter().any(|mark| line.starts_with(mark));
        let conflict = is_conflict.then(|| "a conflict of a merge".to_owned());
        for what in pronoun(line).into_iter().chain(conflict) {
            findings.push(Finding::at(path, Some(number), what));
        }
    }
}

/// Whether an `Ordering:` comment is in the statement of the line at `index`, or just above.
fn is_explained(source: &Source, index: usize) -> bool {
    let ends = |code: &str| code.trim_end().ends_with([';', '{', '}']);
    let end = source.lines[..index]
        .iter()
        .rposition(|line| ends(&line.code));
    let start = end
        .map_or(0, |end| end + 1)
        .min(index.saturating_sub(REACH));
    let mut lines = source.lines[start..=index].iter();
    lines.any(|line| line.comment.trim().starts_with("Ordering:"))
}

/// Complains of the first of the pronouns in a text.
fn pronoun(text: &str) -> Option<String> {
    let mut words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let word = words.find(|word| PRONOUNS.iter().any(|it| it.eq_ignore_ascii_case(word)))?;
    Some(format!(
        "`{word}`: name the role, such as the sender, the worker, the thief"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lines with findings in a made-up file.
    fn lines(path: &str, text: &str) -> Vec<usize> {
        let mut findings = Vec::new();
        check(&Source::parse(path, text), &mut findings);
        findings.iter().filter_map(|it| it.line).collect()
    }

    #[test]
    fn forbidden_words_are_found_in_the_code_of_their_crates() {
        let text = "use std::sync::Arc;\nuse std::sync::{Arc, atomic};\nlet a = Instant::now();\n\
                    // Instant::now\nlet c = \"Instant::now\";\nfastrand::usize(..4);\n\
                    random: fastrand::Rng,\nfastrand::Rng::new();\nHashMap::with_hasher(x);\n";
        assert_eq!(lines("crates/deque/src/a.rs", text), [2, 3, 6, 8, 9]);
        assert_eq!(lines("crates/channel/src/block.rs", text), [6, 8, 9]);
        assert_eq!(lines("crates/soak/src/a.rs", text), [9]);
        for path in ["crates/deque/tests/a.rs", "xtask/src/a.rs"] {
            assert!(lines(path, text).is_empty(), "{path}");
        }
    }

    #[test]
    fn an_atomic_access_is_explained_in_its_statement_or_just_above() {
        let path = "crates/sync/src/a.rs";
        let long = "x.swap(\n  1,\n  2,\n  3,\n  4,\n  5,\n  6,\n  Ordering::Relaxed,\n);\n";
        let far = format!(
            "// Ordering: so.\n{}x.load(Ordering::Acquire);",
            "y();\n".repeat(6)
        );
        for (text, lines_found) in [
            (
                "// Ordering: Relaxed, because.\n// More.\nx.load(Ordering::Relaxed);\n",
                vec![],
            ),
            ("x.load(Ordering::Relaxed); // Ordering: so\n", vec![]),
            (&format!("y();\n// Ordering: because.\n{long}"), vec![]),
            (long, vec![8]),
            (&far, vec![8]),
            (
                "// SAFETY: so\nlet a = \"Ordering:\";\nfence(Ordering::SeqCst);",
                vec![3],
            ),
            ("a.cmp(b) == Ordering::Less", vec![]),
        ] {
            assert_eq!(lines(path, text), lines_found, "{text}");
        }
    }

    #[test]
    fn comments_and_documents_name_roles() {
        let text =
            "// Whoever comes\nlet who = 1;\n\"nobody\"\n// thenobody\n//! Told to nobody.\n";
        assert_eq!(lines("crates/deque/src/a.rs", text), [1, 5]);
        let mut findings = Vec::new();
        let text = "A sender.\nAnybody, else.\n<<<<<<< HEAD\n=======\n";
        check_document("README.md", text, &mut findings);
        assert_eq!(
            findings.iter().filter_map(|it| it.line).collect::<Vec<_>>(),
            [2, 3]
        );
    }

    #[test]
    fn limits_of_sizes_are_exact() {
        let fits = format!("// {}\n", "ä".repeat(97));
        assert!(lines("xtask/src/a.rs", &fits.repeat(MOST_LINES)).is_empty());
        assert_eq!(
            lines("xtask/src/a.rs", &format!("{fits}// {}\n", "b".repeat(98))),
            [2]
        );
        assert_eq!(
            lines("xtask/src/a.rs", &fits.repeat(MOST_LINES + 1)),
            [MOST_LINES + 1]
        );
    }
}
