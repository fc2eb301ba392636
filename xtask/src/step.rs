//! The steps of the gate, cheap steps first, and the steps of the night.

use crate::cargo::Cargo;
use crate::totals::Totals;
use crate::{Failure, book, clippy, engines, features, fuzz, instructions, loom, mutants};
use crate::{packed, readme, sanitize, soak, tidy};
use clap::ValueEnum;
use std::env;

/// A step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Step {
    /// the formatting is rustfmt's
    Fmt,
    /// the house rules hold
    Tidy,
    /// clippy has nothing to say, of the fuzz targets either
    Clippy,
    /// the README's test command passes
    Test,
    /// the facade builds with no feature and with each, and the queues need little
    Features,
    /// the documentation builds without warnings, and the book
    Doc,
    /// the engines pass their tests with a real broker, their formatting and lints are right
    Engines,
    /// the loom models pass within their bounds, each stopped after twelve seconds
    Loom,
    /// shows which of a step, a send, a question, a channel, a timer, a socket and other acts take
    /// more instructions, read-modify-writes, fences or allocations than are committed
    Instructions,
    /// nightly: the loom models pass within their bounds, however long they take
    Models,
    /// nightly: clippy has nothing to say of loom's code
    LoomClippy,
    /// nightly: the facade builds with each pair of features, tests and examples too
    Pairs,
    /// nightly: the tests of the deque, the mailbox, the ring and the wheel pass when built alone
    Alone,
    /// nightly: the packages pass their tests where they are unpacked, without the project
    Packed,
    /// nightly: the workloads work with every peer
    Benches,
    /// nightly: ten seconds of stress lose and double nothing, in each queue and the scheduler
    Soak,
    /// nightly: every test passes, optimised, the stress tests for longer
    Stress,
    /// nightly: timers, async processes, links and supervisors keep their promises in simulations
    /// of a hundred thousand seeds
    Seeds,
    /// nightly: the tests of shared data pass under sanitizers
    Sanitize,
    /// nightly: the example program does nothing wrong with memory under valgrind
    Memcheck,
    /// nightly: the tests notice every mistake in the lists
    Mutants,
}

/// How many times as long the stress tests are, unless the environment says it.
const STRESS: &str = "20";

/// How many seeds the simulations have every night.
const SEEDS: &str = "100000";

/// The packages with tests that take seeds, and these tests.
const SEEDED: &str =
    "time mixed, sim tasks, link races, supervise chaos, keyed chaos, cluster model";

impl Step {
    /// Returns whether the step is no part of the gate.
    pub(crate) fn is_nightly(self) -> bool {
        self.what().starts_with("nightly: ")
    }

    /// Returns the step's name for `--only`.
    pub(crate) fn name(self) -> String {
        let value = self.to_possible_value().expect("no step is hidden");
        value.get_name().to_owned()
    }

    /// Returns the description of the step, for people.
    pub(crate) fn what(self) -> String {
        let value = self.to_possible_value().expect("no step is hidden");
        value
            .get_help()
            .map_or_else(String::new, ToString::to_string)
    }

    /// Runs the step. Adds the tests that ran to `totals`, even if the step fails. Returns the
    /// reason if an optional step could not check.
    pub(crate) fn run(self, totals: &mut Totals) -> Result<Option<String>, Failure> {
        let passed = match self {
            Self::Fmt => Cargo::new("fmt --all --check").run(),
            Self::Tidy => tidy::run(),
            Self::Clippy => clippy::run().and_then(|()| fuzz::run()),
            Self::Test => readme::test_command()?.test(totals),
            Self::Features => features::run(),
            Self::Doc => Cargo::new("doc --workspace --all-features --no-deps")
                .env("RUSTDOCFLAGS", "-D warnings")
                .run()
                .and_then(|()| book::run(book::Options::default())),
            Self::Engines => return engines::run(totals),
            Self::Loom => loom::run(&loom::Options::of_the_gate(), totals),
            Self::Models => loom::run(&loom::Options::default(), totals),
            Self::LoomClippy => clippy::under_loom(),
            Self::Pairs => features::pairs(),
            Self::Alone => features::alone(totals),
            Self::Packed => packed::run(totals),
            Self::Benches => Cargo::new("test -p ganger-benches").test(totals),
            Self::Instructions => return instructions::gate(),
            Self::Soak => soak::run(&soak::Options::default()),
            Self::Stress => {
                let times = env::var("GANGER_STRESS").unwrap_or_else(|_| STRESS.to_owned());
                // The peers take long to build, and `benches` has the tests that need them.
                let test = Cargo::new("test --release --workspace --exclude ganger-benches");
                test.env("GANGER_STRESS", times).test(totals)
            }
            Self::Seeds => SEEDED.split(", ").try_for_each(|seeded| {
                let (package, tests) = seeded.split_once(' ').ok_or("SEEDED names no tests")?;
                let test = format!("test --release -p ganger-{package} --test it {tests}::");
                Cargo::new(&test).env("GANGER_SEEDS", SEEDS).test(totals)
            }),
            Self::Sanitize => sanitize::run(&sanitize::Options::strict(false)),
            Self::Memcheck => sanitize::run(&sanitize::Options::strict(true)),
            Self::Mutants => mutants::run(&mutants::Options::default()),
        };
        passed.map(|()| None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finds each step in the workflow of the pushes or of the nights, in a matrix or at once.
    #[test]
    fn a_workflow_has_each_step() {
        let ci = include_str!("../../.github/workflows/ci.yml");
        let nightly = include_str!("../../.github/workflows/nightly.yml");
        for step in Step::value_variants() {
            let workflow = if step.is_nightly() { nightly } else { ci };
            let name = step.name();
            let after = |mark| {
                workflow
                    .split(mark)
                    .skip(1)
                    .filter_map(|it| it.lines().next())
            };
            let mut steps = after("- step: ").chain(after("--only "));
            let command = match step {
                Step::Memcheck => "xtask sanitize --strict --memcheck".to_owned(),
                Step::Sanitize => "xtask sanitize --strict $".to_owned(),
                _ => format!("xtask {name}"),
            };
            let is_named = steps.any(|steps| steps.split(',').any(|it| it == name));
            let is_command = step.is_nightly() && workflow.contains(&command);
            assert!(is_named || is_command, "{name}");
        }
    }
}
