//! A program under valgrind's memcheck: the example `wordfreq`, on the project's documentation.
//!
//! Memcheck finds reads of memory that was never written, unlike AddressSanitizer. The program is
//! built as users build it, optimised, and has the usual allocator. Memcheck runs a single thread
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
    if let Err(error) = Command::new("valgrind").arg("--version").output() {
        return Ok(Some(format!("can't start valgrind: {error}")));
    }
    let example = "-p ganger-examples --bin wordfreq --features wordfreq";
    Cargo::new("build --release").args(example).run()?;
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--leak-check=full", "--errors-for-leak-kinds=definite"]);
    valgrind.arg(format!("--error-exitcode={FOUND}"));
    valgrind.arg(Tree::own().target.join("release/wordfreq"));
    let output = valgrind
        .args(["--json", "--top", "5"])
        .arg(root().join("docs"))
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().next_back().unwrap_or_default();
    match output.status.code() {
        Some(0) => {
            println!("memcheck: {last}");
            Ok(None)
        }
        Some(FOUND) => Err(format!("memcheck has found something:\n{said}").into()),
        _ => Ok(Some(format!("{}: {last}", output.status))),
    }
}
