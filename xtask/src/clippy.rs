//! Clippy, and clippy again on loom's code: code behind `cfg(ganger_loom)` is invisible to the
//! first run.

use crate::Failure;
use crate::cargo::Cargo;
use crate::loom;

/// Makes each warning an error.
pub(crate) const DENY: [&str; 3] = ["--", "-D", "warnings"];

pub(crate) fn run() -> Result<(), Failure> {
    let clippy = ["clippy", "--workspace", "--all-targets", "--all-features"];
    Cargo::new(clippy).args(DENY).run()
}

pub(crate) fn under_loom() -> Result<(), Failure> {
    let mut clippy = Cargo::new(["clippy", "--all-targets", "--all-features"]).under_loom();
    for package in loom::packages()? {
        clippy = clippy.args(["-p", &package]);
    }
    clippy.args(DENY).run()
}
