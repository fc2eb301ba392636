//! The book: guide, promises and decisions as HTML, by mdbook.

use crate::root::root;
use crate::{Failure, tidy};
use clap::Args;
use std::io::ErrorKind;
use std::process::Command;

/// What is done with the book.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Options {
    /// Opens the book in a browser
    #[arg(long, conflicts_with = "check")]
    open: bool,
    /// Only checks that links resolve and that SUMMARY.md lists each page; needs no mdbook
    #[arg(long)]
    check: bool,
}

/// Checks the links of the documents, and builds the book.
pub(crate) fn run(options: Options) -> Result<(), Failure> {
    tidy::pages()?;
    if options.check {
        return Ok(());
    }
    let mut mdbook = Command::new("mdbook");
    mdbook.arg("build").arg(root());
    if options.open {
        mdbook.arg("--open");
    }
    match mdbook.status() {
        Ok(status) if status.success() => {
            let path = root().join("book").join("index.html");
            println!("the book is in {}", path.display());
            Ok(())
        }
        Ok(status) => Err(format!("mdbook has failed: {status}").into()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err("there is no mdbook: `cargo install --locked mdbook` installs it".into())
        }
        Err(error) => Err(format!("can't run mdbook: {error}").into()),
    }
}
