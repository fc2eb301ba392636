//! The steps of the gate, cheap ones first.

use crate::cargo::Cargo;
use crate::totals::Totals;
use crate::{Failure, alone, clippy, features, instructions, loom, readme, soak, tidy, wordfreq};
use clap::ValueEnum;

/// One step of the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Step {
    /// the formatting is rustfmt's
    Fmt,
    /// the house rules hold
    Tidy,
    /// clippy has nothing to say, under std and under loom
    Clippy,
    /// everything builds: examples and benchmarks too
    Build,
    /// the facade builds with no feature, with each and with each pair
    Features,
    /// the README's test command passes
    Test,
    /// the deque and the mailbox stand alone: tests and dependencies
    Alone,
    /// the workloads work with every peer
    Benches,
    /// the documentation builds without warnings
    Doc,
    /// a step, a send, a spawn and others take no more instructions, read-modify-writes, fences and
    /// allocations than are committed
    Instructions,
    /// ten seconds of stress for each queue, and for the scheduler, lose and double nothing
    Soak,
    /// the bounded loom models pass
    Loom,
    /// the example program counts the words of this project
    Wordfreq,
}

impl Step {
    /// What `--only` calls it.
    pub(crate) fn name(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// What it checks.
    pub(crate) fn what(self) -> String {
        let value = self.to_possible_value();
        value
            .and_then(|value| value.get_help().map(ToString::to_string))
            .unwrap_or_default()
    }

    /// Runs it; adds the tests that it ran to `totals`, also when it fails. Where it could not check
    /// what it is for, and need not, it returns why.
    pub(crate) fn run(self, totals: &mut Totals) -> Result<Option<String>, Failure> {
        let passed = match self {
            Self::Instructions => return instructions::gate(),
            Self::Fmt => Cargo::new(["fmt", "--all", "--check"]).run(),
            Self::Tidy => tidy::run(),
            Self::Clippy => clippy::run(),
            Self::Build => Cargo::new(["build", "--workspace", "--all-targets"]).run(),
            Self::Features => features::run(),
            Self::Test => readme::test_command()?.test(totals),
            Self::Alone => alone::run(totals),
            Self::Benches => Cargo::new(["test", "-p", "ganger-benches"]).test(totals),
            Self::Doc => Cargo::new(["doc", "--workspace", "--all-features", "--no-deps"])
                .env("RUSTDOCFLAGS", "-D warnings")
                .run(),
            Self::Soak => soak::run(&soak::Options::default()),
            Self::Loom => loom::run(&loom::Options::default(), totals),
            Self::Wordfreq => wordfreq::run(),
        };
        passed.map(|()| None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_says_what_it_checks() {
        for step in Step::value_variants() {
            assert!(
                !step.name().is_empty() && !step.what().is_empty(),
                "{step:?}"
            );
        }
    }
}
