//! Stress for as long as the user likes: rounds that a seed draws, with an account of every item.
//!
//! Most soaks are test programs; they read `GANGER_SOAK_SECONDS` and `GANGER_STRESS_SEED`. The
//! scheduler's soak is a program with options of its own. All soaks print a failure's seed, which
//! repeats the failure.

use crate::Failure;
use crate::cargo::Cargo;
use crate::engines;
use crate::totals::Totals;
use clap::builder::PossibleValuesParser;
use std::path::PathBuf;
use std::process::ExitCode;

/// The soaks as test programs: name, package, program.
const TESTS: [(&str, &str, &str); 4] = [
    ("deque", "ganger-deque", "soak"),
    ("mpsc", "ganger-mpsc", "soak"),
    ("chaos", "ganger-cluster-direct", "chaos"),
    (NATS, "ganger-cluster-nats", "chaos"),
];

/// The soak of the engines' workspace, with a broker; it runs only when named.
const NATS: &str = "chaos-nats";

/// The soak of the scheduler.
const SCHED: &str = "sched";
const RUN_SCHED: &str = "run --release -p ganger-soak-sched --bin ganger-soak --";

/// For how long each runs in the gate, and unless told.
const SECONDS: u64 = 10;

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// For how many seconds each crate's soak runs [default: 10]
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,

    /// For how many minutes, in the place of seconds
    #[arg(long, value_name = "N", conflicts_with = "seconds")]
    minutes: Option<u64>,

    /// The first seed, as printed by an earlier soak [default: any]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,

    /// Ends the scheduler's soak after this many seconds in which nothing moves [default: 30]
    #[arg(long, value_name = "N")]
    patience: Option<u64>,

    /// Writes the summary of the scheduler's soak to this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// The crates [default: all with a soak]
    #[arg(value_name = "CRATE", value_parser = names())]
    crates: Vec<String>,
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(TESTS.iter().map(|soak| soak.0).chain([SCHED]))
}

impl Options {
    fn seconds(&self) -> String {
        let minutes = self.minutes.map(|minutes| minutes.saturating_mul(60));
        self.seconds.or(minutes).unwrap_or(SECONDS).to_string()
    }

    fn is_chosen(&self, name: &str) -> bool {
        let is_usual = self.crates.is_empty() && name != NATS;
        is_usual || self.crates.iter().any(|it| it == name)
    }

    /// Returns the options of the scheduler's soak.
    fn args(&self) -> Result<Vec<String>, Failure> {
        let mut args = vec!["--seconds".to_owned(), self.seconds()];
        for (name, value) in [("--seed", self.seed), ("--patience", self.patience)] {
            let value = value.map(|value| [name.to_owned(), value.to_string()]);
            args.extend(value.into_iter().flatten());
        }
        if let Some(path) = &self.json {
            // Cargo runs the program in the workspace's folder.
            let path = std::path::absolute(path)?.display().to_string();
            args.extend(["--json".to_owned(), path]);
        }
        Ok(args)
    }
}

/// Runs the soaks in order, optimised, until a soak fails.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    run_tests(options)?.map_or(Ok(()), Cargo::run)
}

/// Runs as [`run`] does, but the scheduler's soak takes this program's place, so that Ctrl-C and
/// the exit code are its own.
pub(crate) fn run_in_place(options: &Options) -> Result<ExitCode, Failure> {
    let sched = run_tests(options)?;
    Ok(sched.map_or(ExitCode::SUCCESS, Cargo::become_it))
}

/// Runs the soaks in test programs, and returns the call of the scheduler's soak, if asked for.
fn run_tests(options: &Options) -> Result<Option<Cargo>, Failure> {
    for (name, package, program) in TESTS.iter().filter(|soak| options.is_chosen(soak.0)) {
        let test = format!("--release -p {package} --test {program}");
        let test = match *name {
            NATS => engines::test_with_broker(&test)?,
            _ => Cargo::new("test").args(&test),
        };
        let test = test.args("-- --nocapture");
        let mut test = test.env("GANGER_SOAK_SECONDS", options.seconds());
        if let Some(seed) = options.seed {
            test = test.env("GANGER_STRESS_SEED", seed.to_string());
        }
        let mut totals = Totals::default();
        test.test(&mut totals)?;
        totals.result()?;
    }
    let mut sched = Cargo::new(RUN_SCHED);
    for arg in options.args()? {
        sched = sched.arg(&arg);
    }
    Ok(options.is_chosen(SCHED).then_some(sched))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::task;

    #[test]
    fn what_is_said_goes_to_the_scheduler_and_all_but_the_engines_are_chosen() {
        let options = |said: &str| match task(&format!("soak {said}")) {
            crate::Task::Soak(options) => options,
            other => panic!("{other:?}"),
        };
        let (all, one) = (options("--seed 7"), options("--minutes 2 chaos-nats"));
        assert_eq!(all.args().unwrap().join(" "), "--seconds 10 --seed 7");
        assert_eq!(one.args().unwrap().join(" "), "--seconds 120");
        assert!(all.is_chosen("deque") && all.is_chosen(SCHED) && !all.is_chosen(NATS));
        assert!(one.is_chosen(NATS) && !one.is_chosen(SCHED));
    }
}
