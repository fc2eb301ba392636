//! Every promise is pinned by a test that names it: `// pins: P6, P7` above its `#[test]`.
//!
//! The promises are the rows `|P6|sentence|` of the tables of an index, numbered from 1 for each
//! letter. Pages have the exact semantics, in paragraphs that begin with `**P6`.

use super::Finding;
use super::source::Source;
use std::collections::BTreeSet;

/// The index.
pub(super) const DOCUMENT: &str = "docs/PROMISES.md";

/// Where the pages are.
pub(super) const PAGES: &str = "docs/promises/";

/// Promises that need no test, but may have a test.
const OPTIONAL: [&str; 1] = ["G6"];

/// The most words of a promise in the index.
const MOST_WORDS: usize = 20;

/// The promises of the index.
#[derive(Debug, Default)]
pub(super) struct Index {
    ids: BTreeSet<String>,
}

impl Index {
    /// Reads the index; finds numbers out of order and promises that are too long.
    pub(super) fn read(document: &str, findings: &mut Vec<Finding>) -> Self {
        let mut index = Self::default();
        for (at, line) in (1..).zip(document.lines()) {
            let Some((letter, number)) = line.strip_prefix('|').and_then(id) else {
                continue;
            };
            let mut find = |what| findings.push(Finding::at(DOCUMENT, Some(at), what));
            if number > 1 && !index.ids.contains(&format!("{letter}{}", number - 1)) {
                find(format!(
                    "{letter}{number} does not follow {letter}{}",
                    number - 1
                ));
            }
            if !index.ids.insert(format!("{letter}{number}")) {
                find(format!("{letter}{number} is there twice"));
            }
            let words = line.split_whitespace().count();
            if words > MOST_WORDS {
                find(format!(
                    "{letter}{number} has {words} words; at most {MOST_WORDS}: its page in {PAGES} \
                     has room"
                ));
            }
        }
        index
    }

    /// Finds paragraphs of a page that are of no promise.
    pub(super) fn check_page(&self, path: &str, page: &str, findings: &mut Vec<Finding>) {
        for (number, line) in (1..).zip(page.lines()) {
            let Some((letter, id)) = line.strip_prefix("**").and_then(id) else {
                continue;
            };
            if !self.ids.contains(&format!("{letter}{id}")) {
                let what = format!("{DOCUMENT} has no promise {letter}{id}");
                findings.push(Finding::at(path, Some(number), what));
            }
        }
    }
}

/// The letter and the number at the begin of a text.
fn id(text: &str) -> Option<(char, u32)> {
    let letter = text.chars().next().filter(char::is_ascii_uppercase)?;
    let number = text[1..].split(|c: char| !c.is_ascii_digit()).next()?;
    Some((letter, number.parse().ok()?))
}

pub(super) fn check(index: &Index, sources: &[Source], findings: &mut Vec<Finding>) {
    let mut open: BTreeSet<&str> = index.ids.iter().map(String::as_str).collect();
    for source in sources
        .iter()
        .filter(|source| source.path.starts_with("crates/"))
    {
        for (number, line) in source.numbered() {
            let Some(ids) = line.comment.trim().strip_prefix("pins:") else {
                continue;
            };
            if !is_on_a_test(source, number) {
                findings.push(Finding::new(source, number, "pins: is not above a #[test]"));
                continue;
            }
            for id in ids.split(',').map(str::trim) {
                if index.ids.contains(id) {
                    open.remove(id);
                } else {
                    let what = format!("pins: there is no promise {id:?}");
                    findings.push(Finding::new(source, number, what));
                }
            }
        }
    }
    let open = open.iter().filter(|id| !OPTIONAL.contains(id));
    findings.extend(open.map(|id| {
        let what = format!("no test pins the promise {id}");
        Finding::at("crates", None, what)
    }));
}

/// Returns whether the code after the comment in this line starts with `#[test]`, after other
/// attributes.
fn is_on_a_test(source: &Source, number: usize) -> bool {
    let code = source.lines[number..].iter().map(|line| line.code.trim());
    let mut code = code.filter(|code| !code.is_empty());
    code.find(|code| *code == "#[test]" || !code.starts_with("#[")) == Some("#[test]")
}

#[cfg(test)]
mod tests {
    use super::*;

    const INDEX: &str = "# Promises\n\n|No.|Promise|\n|---|---|\n|P1|A submit queues.|\n\
                         |P2|`close` runs once.|\n\n|G1|One worker.|\n";

    fn index(document: &str) -> (Index, Vec<String>) {
        let mut findings = Vec::new();
        let index = Index::read(document, &mut findings);
        (index, findings.iter().map(ToString::to_string).collect())
    }

    fn findings(text: &str) -> Vec<String> {
        let mut findings = Vec::new();
        let sources = [Source::parse("crates/sched/tests/a.rs", text)];
        check(&index(INDEX).0, &sources, &mut findings);
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_index_counts_from_one_and_is_short() {
        let (read, found) = index(INDEX);
        assert!(found.is_empty(), "{found:?}");
        assert_eq!(Vec::from_iter(read.ids), ["G1", "P1", "P2"]);
        let more = format!("{INDEX}|P4|Missing.|\n|P2|Again.|\n");
        assert_eq!(
            index(&more).1,
            [
                "docs/PROMISES.md:9: P4 does not follow P3",
                "docs/PROMISES.md:10: P2 is there twice",
            ]
        );
        let words = |count| format!("|P1|{}|\n", vec!["a"; count].join(" "));
        let (_, found) = index(&words(MOST_WORDS));
        assert!(found.is_empty(), "{found:?}");
        let (_, found) = index(&words(MOST_WORDS + 1));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("docs/PROMISES.md:1: P1 has 21 words"));
    }

    #[test]
    fn a_test_that_names_all_is_enough() {
        let all = "// pins: P1, P2, G1\n#[cfg(unix)]\n#[test]\nfn a() {}\n";
        assert!(findings(all).is_empty());
        assert_eq!(
            findings("// pins: P1, P2\n#[test]\nfn a() {}\n"),
            ["crates: no test pins the promise G1"]
        );
    }

    #[test]
    fn only_promises_can_be_pinned_and_only_by_tests() {
        let all = "// pins: P1, P2, G1\n#[test]\nfn a() {}\n";
        let path = "crates/sched/tests/a.rs";
        assert_eq!(
            findings(&format!("{all}// pins: P18\n#[test]\nfn b() {{}}\n")),
            [format!("{path}:4: pins: there is no promise \"P18\"")]
        );
        assert_eq!(
            findings(&format!("{all}// pins: P1\nfn b() {{}}\n")),
            [format!("{path}:4: pins: is not above a #[test]")]
        );
    }
}
