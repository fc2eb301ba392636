//! The house rules that a machine can check, each in a file of its own.

mod crates;
mod folders;
mod lines;
mod pages;
mod promises;
mod prose;
mod source;

use crate::cargo::Cargo;
use crate::root::{files, root};
use crate::{Failure, conformance, metrics};
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
        Self::at(&*source.path, Some(line), what)
    }

    fn at(path: impl Into<String>, line: Option<usize>, what: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            line,
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
    let read = |path: &str| fs::read_to_string(root().join(path));
    let paths: Vec<String> = files.iter().map(|path| slashed(path)).collect();
    let mut findings = Vec::new();
    let mut sources = Vec::new();
    for path in paths.iter().filter(|path| path.ends_with(".rs")) {
        sources.push(Source::parse(path, &read(path)?));
    }
    for source in &sources {
        lines::check(source, &mut findings);
        crates::check_features(source, &mut findings);
    }
    crates::check_built(&sources, &mut findings);
    folders::check(&sources, &mut findings);
    prose::check(&sources, &mut findings);
    let layers = read(crates::LAYERS)?;
    for path in paths.iter().filter(|path| path.ends_with("/Cargo.toml")) {
        crates::check_manifest(path, &read(path)?, &layers, &mut findings);
    }
    let index = promises::Index::read(&read(promises::DOCUMENT)?, &mut findings);
    promises::check(&index, &sources, &mut findings);
    let documents = documents(&files)?;
    for (path, document) in &documents {
        lines::check_document(path, document, &mut findings);
        if path.starts_with(promises::PAGES) {
            index.check_page(path, document, &mut findings);
        }
    }
    pages::check(&documents, &paths, &mut findings);
    let is = read(conformance::DOCUMENT)?;
    for (path, should_be, task) in [
        (metrics::DOCUMENT, metrics::document(), "metrics"),
        (
            conformance::DOCUMENT,
            conformance::document(&is)?,
            "conformance",
        ),
    ] {
        if read(path)? != should_be {
            let what = format!("`cargo xtask {task}` would write another text");
            findings.push(Finding::at(path, None, what));
        }
    }
    // The step `engines` uses the engines' lock file, which a change of any crate below them may
    // outdate: cargo writes this one.
    let metadata = ["metadata", "--format-version", "1", "--manifest-path"];
    Cargo::new(metadata)
        .args(["Cargo.toml", "--locked"])
        .stdout()?;
    Cargo::new(metadata).args(["engines/Cargo.toml"]).stdout()?;
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
