//! Every link of a document leads to a file and to a heading, every file that a document names
//! is there, and the book has every page.
//!
//! The book is the folder `docs`; `SUMMARY.md` lists its pages, as mdbook reads them. Links out of
//! the folder work in the book as well, because the built book lies beside the folder.

use super::Findings;
use std::collections::{BTreeMap, BTreeSet};

/// The list of the book's pages.
const SUMMARY: &str = "docs/SUMMARY.md";

/// Checks the documents, the texts of all Markdown files by their paths, against the list of all
/// files of the project.
pub(super) fn check(
    documents: &BTreeMap<String, String>,
    files: &[String],
    findings: &mut Findings,
) {
    let files: BTreeSet<&str> = files.iter().map(String::as_str).collect();
    // A document in a folder of sources is a part of another document.
    for (path, text) in documents.iter().filter(|(path, _)| !path.contains("/src/")) {
        for (line, target) in links(text) {
            if let Some(what) = fault(path, target, &files, documents) {
                findings.add(path, line, what);
            }
        }
        for (line, text) in prose(text) {
            for name in text.split('`').skip(1).step_by(2).filter(|it| is_path(it)) {
                if !files.contains(name) {
                    findings.add(path, line, format!("there is no {name}"));
                }
            }
        }
    }
    let Some(summary) = documents.get(SUMMARY) else {
        return findings.add(SUMMARY, 0, "the book has no summary");
    };
    let mut listed = BTreeSet::from([SUMMARY.to_owned()]);
    for (line, target) in links(summary) {
        if !listed.insert(format!("docs/{target}")) {
            findings.add(SUMMARY, line, format!("{target} is there twice"));
        }
    }
    for page in documents.keys().filter(|path| path.starts_with("docs/")) {
        if !listed.contains(page) {
            findings.add(SUMMARY, 0, format!("{page} is not in the book"));
        }
    }
}

/// Returns whether a text in backticks is the path of a file of a crate.
fn is_path(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    text.starts_with("crates/") && text.ends_with(".rs") && text.chars().all(is_plain)
}

/// Returns why a link leads nowhere.
fn fault(
    from: &str,
    target: &str,
    files: &BTreeSet<&str>,
    documents: &BTreeMap<String, String>,
) -> Option<String> {
    // Links of the web, and of rustdoc's.
    if target.contains(':') || target.ends_with(".html") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let Some(path) = resolve(from, path) else {
        return Some(format!("{target} leads out of the project"));
    };
    let folder = format!("{path}/");
    let next = files.range(&*folder..).next();
    let is_folder = next.is_some_and(|file| file.starts_with(&folder));
    if !files.contains(&*path) && !is_folder {
        return Some(format!("there is no {path}"));
    }
    let text = documents.get(&path).filter(|_| !anchor.is_empty())?;
    let is_unknown = !anchors(text).contains(anchor);
    is_unknown.then(|| format!("{path} has no heading #{anchor}"))
}

/// Returns the path in the project of a path relative to a file.
fn resolve(from: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    if !path.is_empty() {
        parts.pop();
    }
    for part in path.split('/') {
        match part {
            "." | "" => {}
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

/// Returns the targets of links, with their lines.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut links = Vec::new();
    for (number, line) in prose(text) {
        for (at, _) in line.match_indices("](") {
            let is_in_code = line[..at].matches('`').count() % 2 == 1;
            let target = line[at + 2..].split_once(')').map_or("", |it| it.0);
            if !is_in_code && !target.is_empty() {
                links.push((number, target));
            }
        }
    }
    links
}

/// Returns the anchors of a document's headings, as GitHub and mdbook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (_, line) in prose(text) {
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        // A link has only its text.
        let parts = heading.trim().split("](").enumerate();
        let parts = parts.map(|(number, part)| match (number, part.split_once(')')) {
            (1.., Some((_, rest))) => rest,
            _ => part,
        });
        let text = parts.collect::<String>().to_lowercase().replace(' ', "-");
        let plain = text.replace(|c: char| !c.is_alphanumeric() && c != '-' && c != '_', "");
        let mut numbered = (1..).map(|n| format!("{plain}-{n}"));
        let is_new = anchors.insert(plain.clone());
        while !is_new && !numbered.next().is_some_and(|name| anchors.insert(name)) {}
    }
    anchors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(documents: &[(&str, &str)], others: &[&str]) -> String {
        let text = |&(path, text): &(&str, &str)| (path.to_owned(), text.to_owned());
        let documents: BTreeMap<_, _> = documents.iter().map(text).collect();
        let mut files: Vec<_> = documents.keys().cloned().collect();
        files.extend(others.iter().map(|&path| path.to_owned()));
        let mut findings = Findings::default();
        check(&documents, &files, &mut findings);
        findings.shown().join("\n")
    }

    #[test]
    fn links_to_files_folders_and_headings_hold() {
        let guide = "# A\n\n## What a `Step` does: [more](B.md)\n\n## Twice\n\n## Twice\n\n\
                     [b](../B.md), ![p](../p/a.png) and [`c`](../../crates/a) and \
                     [here](#what-a-step-does-more) and [web](https://a.b/c.md#d)\n\
                     ```text\n[no](link.md)\n```\n`a[0](no.md)` [t](#twice-1)\n";
        let summary = ("docs/SUMMARY.md", "- [B](B.md)\n- [A](guide/a.md)\n");
        let b = ("docs/B.md", "[a](guide/a.md#twice)\n");
        let documents = [summary, b, ("docs/guide/a.md", guide)];
        let found = found(&documents, &["docs/p/a.png", "crates/a/src/lib.rs"]);
        // The heading's own link is of another folder.
        assert_eq!(found, "docs/guide/a.md:3: there is no docs/guide/B.md");
    }

    #[test]
    fn links_and_pages_that_lead_nowhere_are_found() {
        let readme = "[a](docs/A.md#two)\n[b](../B.md) [c](docs/C.md) `crates/a/b.rs`\n";
        let a = ("docs/A.md", "# One\n[d](#one) [e](#tow)\n");
        let summary = ("docs/SUMMARY.md", "- [A](A.md)\n- [Again](A.md)\n");
        let documents = [("README.md", readme), a, ("docs/B.md", ""), summary];
        let expected = "README.md:1: docs/A.md has no heading #two
README.md:2: ../B.md leads out of the project
README.md:2: there is no crates/a/b.rs
README.md:2: there is no docs/C.md
docs/A.md:2: docs/A.md has no heading #tow
docs/SUMMARY.md: docs/B.md is not in the book
docs/SUMMARY.md:2: A.md is there twice";
        assert_eq!(found(&documents, &[]), expected);
    }
}
