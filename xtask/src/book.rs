//! The book: guide, promises and decisions as HTML, by mdbook.

use crate::cargo::Cargo;
use crate::root::{Tree, root};
use crate::{Failure, tidy};
use clap::Args;
use std::env::consts::EXE_SUFFIX;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Installs mdbook without the parts that serve, watch and search.
const INSTALL: &str = "install --locked --no-default-features mdbook@0.5.4 --root";

/// The acts on the book.
#[derive(Debug, Default, Clone, Copy, Args)]
pub(crate) struct Options {
    /// Opens the book in a browser
    #[arg(long, conflicts_with = "check")]
    open: bool,
    /// Only checks that links resolve and that SUMMARY.md lists each page, without mdbook
    #[arg(long)]
    check: bool,
}

/// Checks the links of the documents, and builds the book.
pub(crate) fn run(options: Options) -> Result<(), Failure> {
    tidy::pages()?;
    if options.check {
        return Ok(());
    }
    let mut mdbook = Command::new(mdbook()?);
    mdbook.arg("build").arg(root());
    if options.open {
        mdbook.arg("--open");
    }
    let status = mdbook.status()?;
    if !status.success() {
        return Err(format!("mdbook has failed: {status}").into());
    }
    println!("the book is in {}/book", root().display());
    Ok(())
}

/// Returns the user's mdbook, or else the project's, which the first call installs.
fn mdbook() -> Result<PathBuf, Failure> {
    let runs = |program: &Path| {
        let output = Command::new(program).arg("--version").output();
        output.is_ok_and(|output| output.status.success())
    };
    let own = Tree::own().target.join("tools");
    let candidates = ["mdbook".into(), own.join(format!("bin/mdbook{EXE_SUFFIX}"))];
    let there = candidates.iter().find(|program| runs(program));
    if there.is_none() {
        let install = Cargo::new(INSTALL).arg(&own.display().to_string());
        // Of the tool itself: the builds of the workspace keep their folder.
        install.env("CARGO_TARGET_DIR", own.join("target")).run()?;
    }
    let [_, own] = &candidates;
    Ok(there.unwrap_or(own).clone())
}
