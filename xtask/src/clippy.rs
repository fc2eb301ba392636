//! Clippy, and clippy again on what loom sees: code behind `cfg(loom)` is invisible to the first.

use crate::Failure;
use crate::cargo::Cargo;
use crate::loom;

pub(crate) fn run() -> Result<(), Failure> {
    const DENY: [&str; 3] = ["--", "-D", "warnings"];
    Cargo::new(["clippy", "--workspace", "--all-targets", "--all-features"])
        .args(DENY)
        .run()?;
    let mut under_loom = Cargo::new(["clippy", "--all-targets", "--all-features"]).under_loom();
    for package in loom::packages()? {
        under_loom = under_loom.args(["-p", &package]);
    }
    under_loom.args(DENY).run()
}
