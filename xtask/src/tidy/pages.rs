//! Every link of a document leads to a file and to a heading, every file that a document names
//! is there, and the book has every page.
//!
//! The book is the folder `docs`; `SUMMARY.md` lists its pages, as mdbook reads them. Links out of
//! the folder work in the book as well, because the built book lies beside the folder.

use super::Finding;
use std::collections::{BTreeMap, BTreeSet};

/// The list of the book's pages.
pub(super) const SUMMARY: &str = "docs/SUMMARY.md";

/// The folder of the book's pages.
const BOOK: &str = "docs/";

/// A link in a document.
#[derive(Debug, PartialEq, Eq)]
struct Link<'a> {
    line: usize,
    target: &'a str,
}

/// Checks the documents, which are the texts of all Markdown files by their paths, beside all
/// files of the project.
pub(super) fn check(
    documents: &BTreeMap<String, String>,
    files: &[String],
    findings: &mut Vec<Finding>,
) {
    let files: BTreeSet<&str> = files.iter().map(String::as_str).collect();
    let headings: BTreeMap<&str, BTreeSet<String>> = documents
        .iter()
        .map(|(path, text)| (path.as_str(), anchors(text)))
        .collect();
    // A document beside sources is a part of another one.
    let whole = documents.iter().filter(|(path, _)| !path.contains("/src/"));
    for (path, text) in whole {
        for link in links(text) {
            if let Some(what) = fault(path, link.target, &files, &headings) {
                findings.push(Finding::at(path, Some(link.line), what));
            }
        }
        for (line, text) in prose(text) {
            for name in text.split('`').skip(1).step_by(2).filter(|it| is_path(it)) {
                if !files.contains(name) {
                    findings.push(Finding::at(path, Some(line), format!("there is no {name}")));
                }
            }
        }
    }
    check_summary(documents, findings);
}

/// Checks that the summary lists each page of the book once.
fn check_summary(documents: &BTreeMap<String, String>, findings: &mut Vec<Finding>) {
    let mut find = |line, what| findings.push(Finding::at(SUMMARY, line, what));
    let Some(summary) = documents.get(SUMMARY) else {
        find(None, "the book has no summary".to_owned());
        return;
    };
    let mut listed = BTreeSet::new();
    for link in links(summary) {
        if !listed.insert(format!("{BOOK}{}", link.target)) {
            find(Some(link.line), format!("{} is there twice", link.target));
        }
    }
    let pages = documents.keys().filter(|path| path.starts_with(BOOK));
    for page in pages.filter(|path| *path != SUMMARY && !listed.contains(*path)) {
        find(None, format!("{page} is not in the book"));
    }
}

/// Whether a text in backticks is the path of a file of a crate.
fn is_path(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    text.starts_with("crates/") && text.ends_with(".rs") && text.chars().all(is_plain)
}

/// Returns why a link leads nowhere.
fn fault(
    from: &str,
    target: &str,
    files: &BTreeSet<&str>,
    headings: &BTreeMap<&str, BTreeSet<String>>,
) -> Option<String> {
    // Links of the web, and of rustdoc's.
    if target.contains(':') || target.ends_with(".html") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = match path {
        "" => Some(from.to_owned()),
        path => resolve(from, path),
    };
    let Some(path) = path else {
        return Some(format!("{target} leads out of the project"));
    };
    let is_folder = || {
        let folder = format!("{path}/");
        let mut below = files.range(folder.as_str()..);
        below.next().is_some_and(|file| file.starts_with(&folder))
    };
    if !files.contains(path.as_str()) && !is_folder() {
        return Some(format!("there is no {path}"));
    }
    let is_unknown = match headings.get(path.as_str()) {
        Some(anchors) => !anchor.is_empty() && !anchors.contains(anchor),
        None => false,
    };
    is_unknown.then(|| format!("{path} has no heading #{anchor}"))
}

/// Returns the path in the project of a path relative to a file.
fn resolve(from: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => _ = parts.pop()?,
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Returns the lines outside of blocks of code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

fn links(text: &str) -> Vec<Link<'_>> {
    let mut links = Vec::new();
    for (number, line) in prose(text) {
        let mut rest = line;
        while let Some(at) = rest.find("](") {
            let is_in_code = line[..line.len() - rest.len() + at].matches('`').count() % 2 == 1;
            rest = &rest[at + 2..];
            let Some((target, _)) = rest.split_once(')') else {
                break;
            };
            if !is_in_code && !target.is_empty() {
                links.push(Link {
                    line: number,
                    target,
                });
            }
        }
    }
    links
}

/// Returns the anchors of a document's headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (_, line) in prose(text) {
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let plain = anchor(heading.trim());
        let numbered = (1..).map(|n| format!("{plain}-{n}"));
        let mut names = std::iter::once(plain.clone()).chain(numbered);
        let free = names.find(|name| !anchors.contains(name));
        anchors.extend(free);
    }
    anchors
}

/// Returns the anchor of a heading, as GitHub and mdbook make it.
fn anchor(heading: &str) -> String {
    let mut text = String::new();
    let mut is_target = false;
    let mut chars = heading.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            ']' if chars.peek() == Some(&'(') => is_target = true,
            ')' if is_target => is_target = false,
            _ if is_target => {}
            ' ' => text.push('-'),
            c if c.is_alphanumeric() || "-_".contains(c) => text.extend(c.to_lowercase()),
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(documents: &[(&str, &str)], others: &[&str]) -> Vec<String> {
        let text = |&(path, text): &(&str, &str)| (path.to_owned(), text.to_owned());
        let documents: BTreeMap<_, _> = documents.iter().map(text).collect();
        let mut files: Vec<_> = documents.keys().cloned().collect();
        files.extend(others.iter().map(|&path| path.to_owned()));
        let mut findings = Vec::new();
        check(&documents, &files, &mut findings);
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn links_to_files_folders_and_headings_hold() {
        let guide = "# A\n\n## What a `Step` does: [more](B.md)\n\n## Twice\n\n## Twice\n\n\
                     [b](../B.md), ![p](../p/a.png) and [`c`](../../crates/a) and \
                     [here](#what-a-step-does-more) and [web](https://a.b/c.md#d)\n\
                     ```text\n[no](link.md)\n```\n`a[0](no.md)` [t](#twice-1)\n";
        let documents = [
            ("docs/SUMMARY.md", "- [B](B.md)\n- [A](guide/a.md)\n"),
            ("docs/B.md", "[a](guide/a.md#twice)\n"),
            ("docs/guide/a.md", guide),
        ];
        let others = ["docs/p/a.png", "crates/a/src/lib.rs"];
        // The heading's own link is of another folder.
        assert_eq!(
            found(&documents, &others),
            ["docs/guide/a.md:3: there is no docs/guide/B.md"]
        );
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let documents = [
            (
                "README.md",
                "[a](docs/A.md#two)\n[b](../B.md) [c](docs/C.md) `crates/a/b.rs`\n",
            ),
            ("docs/A.md", "# One\n[d](#one) [e](#tow)\n"),
            ("docs/SUMMARY.md", "- [A](A.md)\n"),
        ];
        assert_eq!(
            found(&documents, &[]),
            [
                "README.md:1: docs/A.md has no heading #two",
                "README.md:2: ../B.md leads out of the project",
                "README.md:2: there is no docs/C.md",
                "README.md:2: there is no crates/a/b.rs",
                "docs/A.md:2: docs/A.md has no heading #tow",
            ]
        );
    }

    #[test]
    fn the_book_has_each_page_once() {
        let documents = [
            ("docs/A.md", ""),
            ("docs/promises/b.md", ""),
            ("docs/SUMMARY.md", "- [A](A.md)\n- [Again](A.md)\n"),
            ("README.md", ""),
        ];
        assert_eq!(
            found(&documents, &[]),
            [
                "docs/SUMMARY.md:2: A.md is there twice",
                "docs/SUMMARY.md: docs/promises/b.md is not in the book",
            ]
        );
        assert_eq!(
            found(&documents[..2], &[]),
            ["docs/SUMMARY.md: the book has no summary"]
        );
    }
}
