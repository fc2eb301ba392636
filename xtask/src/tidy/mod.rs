//! The house rules that a machine can check, each in a file of its own.

mod arrows;
mod atomics;
mod circles;
mod clock;
mod dependencies;
mod folders;
mod hashers;
mod layers;
mod licence;
mod models;
mod orderings;
mod pages;
mod programs;
mod promises;
mod prose;
mod published;
mod size;
mod source;
mod switches;
mod unfinished;
mod walks;
mod words;
mod written;

use crate::Failure;
use crate::root::{files, root};
use source::Source;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// A violation of a rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    /// With `/` on every system.
    path: String,
    /// From 1; none when it is about a folder.
    line: Option<usize>,
    what: String,
}

impl Finding {
    fn new(source: &Source, line: usize, what: impl Into<String>) -> Self {
        Self {
            path: source.path.clone(),
            line: Some(line),
            what: what.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.what),
            None => write!(f, "{}: {}", self.path, self.what),
        }
    }
}

/// Prints the findings of the rules in the project's files.
pub(crate) fn run() -> Result<(), Failure> {
    let files = files()?;
    let mut findings = Vec::new();
    let mut sources = Vec::new();
    for path in files
        .iter()
        .filter(|path| path.extension().is_some_and(|e| e == "rs"))
    {
        sources.push(Source::parse(
            &slashed(path),
            &fs::read_to_string(root().join(path))?,
        ));
    }
    for source in &sources {
        atomics::check(source, &mut findings);
        clock::check(source, &mut findings);
        hashers::check(source, &mut findings);
        layers::check_source(source, &mut findings);
        orderings::check(source, &mut findings);
        size::check(source, &mut findings);
        switches::check(source, &mut findings);
        unfinished::check(source, &mut findings);
        words::check(source, &mut findings);
    }
    let documents = documents(&files)?;
    for (path, document) in &documents {
        unfinished::check_document(path, document, &mut findings);
        words::check_document(path, document, &mut findings);
    }
    for path in files.iter().filter(|path| path.ends_with("Cargo.toml")) {
        let manifest = fs::read_to_string(root().join(path))?;
        layers::check_manifest(&slashed(path), &manifest, &mut findings);
        published::check(&slashed(path), &manifest, &mut findings);
    }
    let crates = arrows::crates(&sources);
    folders::check(&crates, &mut findings);
    circles::check(&crates, &mut findings);
    programs::check(&sources, &mut findings);
    let document = fs::read_to_string(root().join(promises::DOCUMENT))?;
    let index = promises::Index::read(&document, &mut findings);
    promises::check(&index, &sources, &mut findings);
    for (path, page) in &documents {
        if path.starts_with(promises::PAGES) {
            index.check_page(path, page, &mut findings);
        }
    }
    prose::check(&sources, &mut findings);
    let paths: Vec<String> = files.iter().map(|path| slashed(path)).collect();
    pages::check(&documents, &paths, &mut findings);
    let document = fs::read_to_string(root().join(models::DOCUMENT))?;
    models::check(&paths, &document, &mut findings);
    let document = fs::read_to_string(root().join(walks::DOCUMENT))?;
    walks::check(&paths, &document, &mut findings);
    let document = fs::read_to_string(root().join(crate::metrics::DOCUMENT))?;
    written::check(&document, &mut findings);
    let document = fs::read_to_string(root().join(crate::conformance::DOCUMENT))?;
    written::check_conformance(&document, &mut findings);
    dependencies::check(&mut findings)?;
    report(findings, &format!("{} files", sources.len()))
}

/// Prints the findings in the links and pages of the documents.
pub(crate) fn pages() -> Result<(), Failure> {
    let files = files()?;
    let documents = documents(&files)?;
    let paths: Vec<String> = files.iter().map(|path| slashed(path)).collect();
    let mut findings = Vec::new();
    pages::check(&documents, &paths, &mut findings);
    report(findings, &format!("{} documents", documents.len()))
}

/// Returns the texts of the documents by their paths.
fn documents(files: &[PathBuf]) -> Result<BTreeMap<String, String>, Failure> {
    let mut documents = BTreeMap::new();
    for path in files {
        if path.extension().is_some_and(|e| e == "md") {
            documents.insert(slashed(path), fs::read_to_string(root().join(path))?);
        }
    }
    Ok(documents)
}

/// Prints the findings, or what was checked when there are none.
fn report(mut findings: Vec<Finding>, checked: &str) -> Result<(), Failure> {
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => {
            println!("tidy: {checked}");
            Ok(())
        }
        1 => Err("the house rules have 1 finding".into()),
        count => Err(format!("the house rules have {count} findings").into()),
    }
}

fn slashed(path: &Path) -> String {
    path.to_string_lossy().replace('\\', "/")
}

/// Returns the findings of a check in a made-up file, as `line: what`.
#[cfg(test)]
fn found(check: fn(&Source, &mut Vec<Finding>), path: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    check(&Source::parse(path, text), &mut findings);
    let line = |finding: &Finding| finding.line.expect("a line");
    findings
        .iter()
        .map(|finding| format!("{}: {}", line(finding), finding.what))
        .collect()
}
