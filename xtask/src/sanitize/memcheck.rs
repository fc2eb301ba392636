//! A program under valgrind's memcheck: the example `wordfreq`, on the project's documentation.
//!
//! Memcheck finds reads of memory that was never written, which AddressSanitizer does not. It runs
//! the program as users build it, optimised, and with the usual allocator. It runs a single thread
//! at a time.

use crate::Failure;
use crate::cargo::Cargo;
use crate::root::{Tree, root};
use std::process::Command;

/// Valgrind's exit code if it has found an error.
const FOUND: i32 = 99;

/// Builds the program and runs it. Returns `None` when memcheck has no complaint, else why it could
/// not run.
pub(super) fn run() -> Result<Option<String>, Failure> {
    let version = Command::new("valgrind").arg("--version").output();
    let version = match version {
        Ok(output) if output.status.success() => output.stdout,
        Ok(output) => return Ok(Some(format!("`valgrind --version`: {}", output.status))),
        Err(error) => return Ok(Some(format!("can't start valgrind: {error}"))),
    };
    let example = [
        "build",
        "--release",
        "-p",
        "ganger-examples",
        "--bin",
        "wordfreq",
        "--features",
        "wordfreq",
    ];
    Cargo::new(example).run()?;
    let program = Tree::own().target.join("release/wordfreq");
    let mut valgrind = Command::new("valgrind");
    let valgrind = valgrind
        .args(["--leak-check=full", "--errors-for-leak-kinds=definite"])
        .arg(format!("--error-exitcode={FOUND}"))
        .arg(program)
        .args(["--json", "--top", "5"])
        .arg(root().join("docs"));
    let output = valgrind.output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let version = String::from_utf8_lossy(&version);
    match output.status.code() {
        Some(0) => {
            println!("memcheck: {}, {}", version.trim_end(), summary(&said));
            Ok(None)
        }
        Some(FOUND) => Err(format!("memcheck has found something:\n{said}").into()),
        _ => Ok(Some(format!("{}: {}", output.status, last_line(&said)))),
    }
}

/// Returns the line with the number of errors.
fn summary(said: &str) -> &str {
    let start = said.rfind("ERROR SUMMARY:");
    start.map_or("no summary", |start| last_line(&said[start..]))
}

fn last_line(said: &str) -> &str {
    said.lines().next_back().unwrap_or_default()
}
