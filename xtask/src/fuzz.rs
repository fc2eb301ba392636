//! The fuzz targets, a workspace of their own, because a fuzzer needs a nightly toolchain. A check
//! needs only the project's toolchain, so that no change breaks them unseen.

use crate::Failure;
use crate::cargo::Cargo;
use crate::clippy::DENY;
use crate::root::{Tree, root};

const MANIFEST: &str = "fuzz/Cargo.toml";

/// Runs clippy, which checks as `cargo check` does, on all targets, with the lock file as it is.
pub(crate) fn run() -> Result<(), Failure> {
    // The fuzzer itself, in C++, is built only to be linked. Any existing file does in its place:
    // this step links nothing.
    let fuzzer = root().join(MANIFEST);
    Cargo::new("clippy --locked --manifest-path")
        .arg(MANIFEST)
        .env("CARGO_TARGET_DIR", Tree::own().target)
        .env("CUSTOM_LIBFUZZER_PATH", fuzzer)
        .args(DENY)
        .run()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn every_target_runs_at_night_and_has_first_inputs() {
        let workflow = include_str!("../../.github/workflows/nightly.yml");
        let manifest = fs::read_to_string(root().join(MANIFEST)).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        for target in manifest["bin"].as_array().unwrap() {
            let target = target["name"].as_str().unwrap();
            let row = format!("- {{ target: {target}, ");
            assert!(workflow.contains(&row), "{target}");
            let corpus = root().join("fuzz/corpus").join(target);
            assert!(corpus.read_dir().unwrap().next().is_some(), "{target}");
        }
    }
}
