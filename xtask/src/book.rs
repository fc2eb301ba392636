//! The book: guide, promises and decisions as HTML, by mdbook.

use crate::root::root;
use crate::{Failure, tidy};
use clap::Args;
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
        Ok(status) if status.success() => println!("the book is in {}/book", root().display()),
        Ok(status) => return Err(format!("mdbook has failed: {status}").into()),
        Err(error) => {
            let install = "`cargo install --locked mdbook` installs it";
            return Err(format!("can't run mdbook: {error}; {install}").into());
        }
    }
    Ok(())
}
