//! Every promise is pinned by a test that names it: `// pins: P6, P7` above its `#[test]`.
//!
//! The promises are the rows `|P6|sentence|` of the tables of an index, numbered from 1 for each
//! letter. Pages have the exact semantics, in paragraphs that begin with `**P6`.

use super::Findings;
use super::source::Source;
use std::collections::BTreeSet;

/// The index.
pub(super) const DOCUMENT: &str = "docs/PROMISES.md";

/// Where the pages are.
const PAGES: &str = "docs/promises/";

/// Promises that need no test, but may have a test.
const OPTIONAL: [&str; 1] = ["G6"];

/// The most words of a promise in the index.
const MOST_WORDS: usize = 20;

/// The letter and the number of each promise.
type Ids = BTreeSet<String>;

/// Reads the index; finds numbers out of order and promises that are too long.
pub(super) fn read(document: &str, findings: &mut Findings) -> Ids {
    let mut ids = Ids::new();
    for (at, line) in (1..).zip(document.lines()) {
        let Some((letter, number)) = line.strip_prefix('|').and_then(id) else {
            continue;
        };
        let mut find = |what| findings.add(DOCUMENT, at, what);
        if number > 1 && !ids.contains(&format!("{letter}{}", number - 1)) {
            let before = number - 1;
            find(format!("{letter}{number} does not follow {letter}{before}"));
        }
        if !ids.insert(format!("{letter}{number}")) {
            find(format!("{letter}{number} is there twice"));
        }
        let words = line.split_whitespace().count();
        if words > MOST_WORDS {
            let most = format!("at most {MOST_WORDS}: its page in {PAGES} has room");
            find(format!("{words} words; {most}"));
        }
    }
    ids
}

/// Finds paragraphs of a page without a promise in the index.
pub(super) fn check_page(ids: &Ids, path: &str, page: &str, findings: &mut Findings) {
    for (number, line) in (1..).zip(page.lines()).filter(|_| path.starts_with(PAGES)) {
        if let Some((letter, id)) = line.strip_prefix("**").and_then(id)
            && !ids.contains(&format!("{letter}{id}"))
        {
            let what = format!("{DOCUMENT} has no promise {letter}{id}");
            findings.add(path, number, what);
        }
    }
}

/// Returns the letter and the number at the begin of a text.
fn id(text: &str) -> Option<(char, u32)> {
    let letter = text.chars().next().filter(char::is_ascii_uppercase)?;
    let number = text[1..].split(|c: char| !c.is_ascii_digit()).next()?;
    Some((letter, number.parse().ok()?))
}

pub(super) fn check(ids: &Ids, sources: &[Source], findings: &mut Findings) {
    let mut open: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
    for source in sources
        .iter()
        .filter(|source| source.path.starts_with("crates/"))
    {
        for (number, line) in source.numbered() {
            let Some(pinned) = line.comment.trim().strip_prefix("pins:") else {
                continue;
            };
            // Other attributes may be between the comment and the test.
            let code = source.lines[number..].iter().map(|line| line.code.trim());
            let mut code = code.filter(|code| !code.is_empty());
            let test = code.find(|code| *code == "#[test]" || !code.starts_with("#["));
            if test != Some("#[test]") {
                findings.add(&source.path, number, "pins: is not above a #[test]");
                continue;
            }
            for id in pinned.split(',').map(str::trim) {
                open.remove(id);
                if !ids.contains(id) {
                    findings.add(&source.path, number, format!("there is no promise {id:?}"));
                }
            }
        }
    }
    for id in open.iter().filter(|id| !OPTIONAL.contains(id)) {
        findings.add("crates", 0, format!("no test pins the promise {id}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INDEX: &str = "# Promises\n\n|No.|Promise|\n|---|---|\n|P1|A submit queues.|\n\
                         |P2|`close` runs once.|\n\n|G1|One worker.|\n";

    #[test]
    fn the_index_counts_from_one_and_is_short() {
        let index = |text: &str| {
            let mut findings = Findings::default();
            (read(text, &mut findings), findings.shown())
        };
        let (ids, found) = index(INDEX);
        assert!(found.is_empty(), "{found:?}");
        assert_eq!(Vec::from_iter(ids), ["G1", "P1", "P2"]);
        let long = "a ".repeat(MOST_WORDS);
        let more = format!("{INDEX}|P4|Missing.|\n|P2|Again.|\n|P3|{long}|\n");
        let expected = [
            "docs/PROMISES.md:9: P4 does not follow P3".to_owned(),
            "docs/PROMISES.md:10: P2 is there twice".to_owned(),
            format!("docs/PROMISES.md:11: 21 words; at most 20: its page in {PAGES} has room"),
        ];
        assert_eq!(index(&more).1, expected);
    }

    #[test]
    fn only_promises_can_be_pinned_and_only_by_tests() {
        let found = |text: &str| {
            let mut findings = Findings::default();
            let ids = read(INDEX, &mut findings);
            check(&ids, &[Source::parse("crates/a.rs", text)], &mut findings);
            findings.shown()
        };
        let all = "// pins: P1, P2, G1\n#[cfg(unix)]\n#[test]\nfn a() {}\n";
        assert!(found(all).is_empty());
        let some = found("// pins: P1, P2\n#[test]\nfn a() {}\n");
        assert_eq!(some, ["crates: no test pins the promise G1"]);
        let unknown = found(&format!("{all}// pins: P18\n#[test]\nfn b() {{}}\n"));
        assert_eq!(unknown, ["crates/a.rs:5: there is no promise \"P18\""]);
        let no_test = found(&format!("{all}// pins: P1\nfn b() {{}}\n"));
        assert_eq!(no_test, ["crates/a.rs:5: pins: is not above a #[test]"]);
    }
}
