//! The facade with no feature, with each, and with each pair; and the crates below without theirs.

use crate::Failure;
use crate::cargo::Cargo;
use crate::clippy::DENY;
use crate::root::root;
use std::fs;

const MANIFEST: &str = "crates/ganger/Cargo.toml";

/// The crates below the facade with default features.
const LOWER: [&str; 5] = [
    "ganger-sync",
    "ganger-deque",
    "ganger-mpsc",
    "ganger-sched",
    "ganger-task",
];

/// Only the libraries, because `pairs` has the tests.
pub(crate) fn run() -> Result<(), Failure> {
    for package in LOWER {
        clippy(package, "", "--lib")?;
    }
    let one_at_most = |set: &String| !set.contains(',');
    let sets = facade()?.into_iter().filter(one_at_most);
    sets.into_iter()
        .try_for_each(|set| clippy("ganger", &set, "--lib"))
}

/// Checks all targets that a set of features lets build.
pub(crate) fn pairs() -> Result<(), Failure> {
    let sets = facade()?;
    sets.iter()
        .try_for_each(|set| clippy("ganger", set, "--all-targets"))
}

/// Runs clippy: `cargo check` with warnings that can be denied without building all again.
fn clippy(package: &str, features: &str, targets: &str) -> Result<(), Failure> {
    let clippy = Cargo::new(["clippy", "-p", package, "--no-default-features", targets]);
    clippy.args(["--features", features]).args(DENY).run()
}

/// The sets of the facade's features.
fn facade() -> Result<Vec<String>, Failure> {
    let manifest = fs::read_to_string(root().join(MANIFEST))?;
    let features = features(&manifest);
    if features.is_empty() {
        return Err(format!("no features in {MANIFEST}").into());
    }
    Ok(sets(&features))
}

/// The names in the manifest's `[features]`, but for `default`.
fn features(manifest: &str) -> Vec<&str> {
    let section = manifest
        .split_once("[features]")
        .map_or("", |(_, rest)| rest);
    let section = section.split("\n[").next().unwrap_or_default();
    let lines = section
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    let names = lines.filter_map(|line| Some(line.split_once('=')?.0.trim()));
    names.filter(|&name| name != "default").collect()
}

fn sets(features: &[&str]) -> Vec<String> {
    let mut sets = vec![String::new()];
    for (index, one) in features.iter().enumerate() {
        sets.push((*one).to_owned());
        sets.extend(
            features[..index]
                .iter()
                .map(|other| format!("{other},{one}")),
        );
    }
    sets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_read_from_the_manifest() {
        let manifest = "[package]\nname = \"x\"\n[features]\ndefault = [\"a\"]\n## About = a.\n\
                        a = [\"dep:a\"]\nb = []\n\n[dependencies]\nc = \"1\"\n";
        assert_eq!(features(manifest), ["a", "b"]);
        assert_eq!(features("[package]\nname = \"x\""), Vec::<&str>::new());
    }

    #[test]
    fn sets_are_none_each_and_each_pair() {
        let sets = sets(&["a", "b", "c"]);
        assert_eq!(sets, ["", "a", "b", "a,b", "c", "a,c", "b,c"]);
    }
}
