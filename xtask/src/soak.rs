//! Stress without an end of its own, for as long as somebody has time: rounds that a seed draws,
//! with an account of every item.
//!
//! Each crate brings a test program that takes `GANGER_SOAK_SECONDS` and `GANGER_STRESS_SEED` from
//! the environment and prints the seed that repeats a failure.

use crate::Failure;
use crate::cargo::Cargo;
use clap::builder::PossibleValuesParser;

/// A soak of one crate.
struct Soak {
    /// What the command line calls it.
    name: &'static str,
    package: &'static str,
    /// The file in the package's `tests`.
    test: &'static str,
}

const SOAKS: [Soak; 2] = [
    Soak {
        name: "deque",
        package: "ganger-deque",
        test: "soak",
    },
    Soak {
        name: "mpsc",
        package: "ganger-mpsc",
        test: "soak",
    },
];

/// For how long each runs in the gate, and unless told.
const SECONDS: u64 = 10;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// For how long each crate's soak runs
    #[arg(long, value_name = "N", default_value_t = SECONDS)]
    seconds: u64,

    /// Where to start: a seed that a soak has printed [default: any]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,

    /// The crates [default: all that have a soak]
    #[arg(value_name = "CRATE", value_parser = names())]
    crates: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seconds: SECONDS,
            seed: None,
            crates: Vec::new(),
        }
    }
}

/// Runs one soak after the other, optimised, until one fails.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    for soak in chosen(&options.crates) {
        let test = ["test", "--release", "-p", soak.package, "--test", soak.test];
        let mut test = Cargo::new(test)
            .args(["--", "--nocapture"])
            .env("GANGER_SOAK_SECONDS", options.seconds.to_string());
        if let Some(seed) = options.seed {
            test = test.env("GANGER_STRESS_SEED", seed.to_string());
        }
        test.run()?;
    }
    Ok(())
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(SOAKS.iter().map(|soak| soak.name))
}

fn chosen(names: &[String]) -> impl Iterator<Item = &'static Soak> {
    let is_asked_for = |soak: &&Soak| names.is_empty() || names.iter().any(|n| n == soak.name);
    SOAKS.iter().filter(is_asked_for)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::Tree;

    #[test]
    fn every_soak_is_there() {
        for soak in &SOAKS {
            let file = format!("tests/{}.rs", soak.test);
            let path = Tree::own().package(soak.package).join(file);
            assert!(path.is_file(), "{}", path.display());
        }
    }

    #[test]
    fn without_names_all_are_chosen() {
        assert_eq!(chosen(&[]).count(), SOAKS.len());
        for (name, package) in [("deque", "ganger-deque"), ("mpsc", "ganger-mpsc")] {
            let names = [name.to_owned()];
            assert!(chosen(&names).map(|soak| soak.package).eq([package]));
        }
    }
}
