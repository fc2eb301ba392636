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
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Violations of rules: the path, the line from 1, or 0 if a file or folder as a whole is meant,
/// and the rule.
#[derive(Debug, Default)]
struct Findings(BTreeSet<(String, usize, String)>);

impl Findings {
    fn add(&mut self, path: &str, line: usize, what: impl Into<String>) {
        self.0.insert((path.to_owned(), line, what.into()));
    }

    /// Returns a line for each.
    fn shown(&self) -> Vec<String> {
        let shown = self.0.iter().map(|(path, line, what)| match line {
            0 => format!("{path}: {what}"),
            _ => format!("{path}:{line}: {what}"),
        });
        shown.collect()
    }

    /// Prints the findings; without findings, prints `checked`.
    fn report(&self, checked: &str) -> Result<(), Failure> {
        self.shown().iter().for_each(|line| println!("{line}"));
        match self.0.len() {
            0 => println!("tidy: {checked}"),
            count => return Err(format!("{count} findings against the house rules").into()),
        }
        Ok(())
    }
}

/// Prints the findings of the rules in the project's files.
pub(crate) fn run() -> Result<(), Failure> {
    let paths = files()?;
    let read = |path: &str| fs::read_to_string(root().join(path));
    let mut findings = Findings::default();
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
        let manifest = read(path)?
            .parse()
            .map_err(|error| format!("{path}: {error}"))?;
        crates::check_manifest(path, &manifest, &layers, &mut findings);
    }
    let ids = promises::read(&read(promises::DOCUMENT)?, &mut findings);
    promises::check(&ids, &sources, &mut findings);
    let documents = documents(&paths)?;
    for (path, document) in &documents {
        lines::check_document(path, document, &mut findings);
        promises::check_page(&ids, path, document, &mut findings);
    }
    pages::check(&documents, &paths, &mut findings);
    for (path, should_be, task) in [
        (metrics::DOCUMENT, metrics::document(), "metrics"),
        (
            conformance::DOCUMENT,
            conformance::document()?,
            "conformance",
        ),
    ] {
        if read(path)? != should_be {
            let what = format!("`cargo xtask {task}` would write another text");
            findings.add(path, 0, what);
        }
    }
    // The step `engines` uses the engines' lock file as it is, and a change of any crate below the
    // engines may outdate it: here cargo writes it.
    Cargo::new("metadata --format-version 1 --locked").stdout()?;
    Cargo::new("metadata --format-version 1 --manifest-path engines/Cargo.toml").stdout()?;
    findings.report(&format!("{} files", sources.len()))
}

/// Prints the findings in the links and pages of the documents.
pub(crate) fn pages() -> Result<(), Failure> {
    let files = files()?;
    let documents = documents(&files)?;
    let mut findings = Findings::default();
    pages::check(&documents, &files, &mut findings);
    findings.report(&format!("{} documents", documents.len()))
}

/// Returns the texts of the documents by their paths.
fn documents(files: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let documents = files.iter().filter(|path| path.ends_with(".md"));
    let texts = documents.map(|path| Ok((path.clone(), fs::read_to_string(root().join(path))?)));
    texts.collect()
}
