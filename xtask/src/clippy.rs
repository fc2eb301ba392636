//! Clippy, and clippy again on loom's code: code behind `cfg(ganger_loom)` is invisible to the
//! first run.

use crate::Failure;
use crate::cargo::Cargo;
use crate::loom;

/// Makes each warning an error.
pub(crate) const DENY: &str = "-- -D warnings";

pub(crate) fn run() -> Result<(), Failure> {
    let clippy = Cargo::new("clippy --workspace --all-targets --all-features");
    clippy.args(DENY).run()
}

pub(crate) fn under_loom() -> Result<(), Failure> {
    let packages = loom::packages()?.join(" -p ");
    let clippy = Cargo::new("clippy --all-targets --all-features").under_loom();
    clippy.args("-p").args(&packages).args(DENY).run()
}
