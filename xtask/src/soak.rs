//! Stress for as long as the user likes: rounds that a seed draws, with an account of every item.
//!
//! The queues' crates have test programs that read `GANGER_SOAK_SECONDS` and `GANGER_STRESS_SEED`.
//! The scheduler's soak is a program with options of its own. All of them print the seed that
//! repeats a failure.

use crate::Failure;
use crate::cargo::Cargo;
use crate::engines;
use crate::program;
use crate::totals::Totals;
use clap::builder::PossibleValuesParser;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// A soak of a crate.
struct Soak {
    /// The soak's name on the command line.
    name: &'static str,
    package: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The program in the package's `tests`.
    Test(&'static str),
    /// The same, of the engines' workspace, with a broker.
    Engine(&'static str),
    /// The name of the package's program.
    Program(&'static str),
}

/// The soak that may take this program's place comes last.
const SOAKS: [Soak; 5] = [
    Soak {
        name: "deque",
        package: "ganger-deque",
        kind: Kind::Test("soak"),
    },
    Soak {
        name: "mpsc",
        package: "ganger-mpsc",
        kind: Kind::Test("soak"),
    },
    Soak {
        name: "chaos",
        package: "ganger-cluster-direct",
        kind: Kind::Test("chaos"),
    },
    Soak {
        name: "chaos-nats",
        package: "ganger-cluster-nats",
        kind: Kind::Engine("chaos"),
    },
    Soak {
        name: "sched",
        package: "ganger-soak-sched",
        kind: Kind::Program("ganger-soak"),
    },
];

/// For how long each runs in the gate, and unless told.
const SECONDS: u64 = 10;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// For how many seconds each crate's soak runs
    #[arg(long, value_name = "N", default_value_t = SECONDS)]
    seconds: u64,

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

impl Default for Options {
    fn default() -> Self {
        Self {
            seconds: SECONDS,
            minutes: None,
            seed: None,
            patience: None,
            json: None,
            crates: Vec::new(),
        }
    }
}

impl Options {
    fn seconds(&self) -> u64 {
        let minutes = |minutes: u64| minutes.saturating_mul(60);
        self.minutes.map_or(self.seconds, minutes)
    }

    /// The options of the scheduler's soak.
    fn args(&self) -> Result<Vec<String>, Failure> {
        let mut args = vec!["--seconds".to_owned(), self.seconds().to_string()];
        let mut add = |option: &str, value: Option<String>| {
            if let Some(value) = value {
                args.extend([option.to_owned(), value]);
            }
        };
        add("--seed", self.seed.map(|seed| seed.to_string()));
        add(
            "--patience",
            self.patience.map(|seconds| seconds.to_string()),
        );
        // Cargo runs it in the workspace's folder.
        let json = self.json.as_ref().map(std::path::absolute).transpose()?;
        let json = json.map(|path| path.into_os_string().into_string());
        let json = json.transpose();
        add(
            "--json",
            json.map_err(|path| format!("{} is no text", path.display()))?,
        );
        Ok(args)
    }
}

/// Runs the soaks in order, optimised, until a soak fails.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    for soak in chosen(&options.crates) {
        match soak.kind {
            Kind::Test(test) => run_test(options, soak.package, test)?,
            Kind::Engine(test) => run_engine(options, soak.package, test)?,
            Kind::Program(program) => {
                let run = [
                    "run",
                    "--release",
                    "-p",
                    soak.package,
                    "--bin",
                    program,
                    "--",
                ];
                Cargo::new(run).args(options.args()?).run()?;
            }
        }
    }
    Ok(())
}

/// As [`run`], but the soak takes this program's place, so that Ctrl-C and the exit code are its
/// own.
pub(crate) fn run_in_place(options: &Options) -> ExitCode {
    let result = chosen(&options.crates).try_fold(None, |_, soak| match soak.kind {
        Kind::Test(test) => run_test(options, soak.package, test).map(|()| None),
        Kind::Engine(test) => run_engine(options, soak.package, test).map(|()| None),
        Kind::Program(program) => {
            let build = ["build", "--release", "-p", soak.package, "--bin", program];
            Cargo::new(build).run()?;
            let mut command = Command::new(program::path(program));
            command.args(options.args()?);
            Ok(Some(command))
        }
    });
    match result {
        Ok(Some(command)) => program::become_it(command),
        Ok(None) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run_test(options: &Options, package: &str, test: &str) -> Result<(), Failure> {
    let test = Cargo::new(["test", "--release", "-p", package, "--test", test]);
    soak(options, test)
}

/// Without a broker there is nothing to run, and the reason is said.
fn run_engine(options: &Options, package: &str, test: &str) -> Result<(), Failure> {
    match engines::with_broker(["test", "--release", "-p", package, "--test", test]) {
        Ok(test) => soak(options, test),
        Err(why) => {
            println!("The soak of {package} is skipped: {why}");
            Ok(())
        }
    }
}

fn soak(options: &Options, test: Cargo) -> Result<(), Failure> {
    let mut test = test
        .args(["--", "--nocapture"])
        .env("GANGER_SOAK_SECONDS", options.seconds().to_string());
    if let Some(seed) = options.seed {
        test = test.env("GANGER_STRESS_SEED", seed.to_string());
    }
    let mut totals = Totals::default();
    test.test(&mut totals)?;
    if totals.passed == 0 {
        return Err("there was no test to run".into());
    }
    Ok(())
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(SOAKS.iter().map(|soak| soak.name))
}

fn chosen(names: &[String]) -> impl Iterator<Item = &'static Soak> {
    // Engines are built where they are named.
    let is_usual = |soak: &Soak| names.is_empty() && !matches!(soak.kind, Kind::Engine(_));
    let is_asked_for = move |soak: &&Soak| is_usual(soak) || names.iter().any(|n| n == soak.name);
    SOAKS.iter().filter(is_asked_for)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::{Tree, root};
    use clap::Parser;
    use std::fs;

    fn options(said: &[&str]) -> Result<Options, clap::Error> {
        let line = ["cargo xtask", "soak"].iter().chain(said);
        match crate::Options::try_parse_from(line)?.task {
            crate::Task::Soak(options) => Ok(options),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_soak_is_there() {
        for soak in &SOAKS {
            match soak.kind {
                Kind::Engine(test) => {
                    let tests = root().join("engines/nats/tests").join(test);
                    assert!(tests.join("main.rs").is_file());
                }
                Kind::Test(test) => {
                    let program = Tree::own().program(soak.package, test);
                    assert_eq!(program, test);
                }
                Kind::Program(program) => {
                    let folder = Tree::own().package(soak.package);
                    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
                    assert!(manifest.contains(&format!("name = \"{program}\"")));
                }
            }
        }
    }

    #[test]
    fn a_program_comes_last_because_it_may_take_this_ones_place() {
        let is_program = |soak: &Soak| matches!(soak.kind, Kind::Program(_));
        let place = SOAKS.iter().position(is_program);
        assert_eq!(place, Some(SOAKS.len() - 1));
    }

    #[test]
    fn without_names_all_but_the_engines_are_chosen() {
        assert!(chosen(&[]).all(|soak| soak.name != "chaos-nats"));
        assert_eq!(chosen(&[]).count(), SOAKS.len() - 1);
        for (name, package) in [
            ("deque", "ganger-deque"),
            ("mpsc", "ganger-mpsc"),
            ("chaos", "ganger-cluster-direct"),
            ("chaos-nats", "ganger-cluster-nats"),
            ("sched", "ganger-soak-sched"),
        ] {
            let names = [name.to_owned()];
            assert!(chosen(&names).map(|soak| soak.package).eq([package]));
        }
    }

    #[test]
    fn what_is_said_goes_to_the_scheduler() {
        let args = |said: &[&str]| options(said).unwrap().args().unwrap();
        assert_eq!(args(&["sched"]), ["--seconds", "10"]);
        let said = [
            "--minutes",
            "2",
            "--seed",
            "7",
            "--patience",
            "9",
            "--json",
            "/a",
        ];
        let json = std::path::absolute("/a").unwrap().display().to_string();
        let expected = [
            "--seconds",
            "120",
            "--seed",
            "7",
            "--patience",
            "9",
            "--json",
            &json,
        ];
        assert_eq!(args(&said), expected);
        assert!(options(&["--minutes", "1", "--seconds", "1"]).is_err());
        assert!(options(&["sim"]).is_err());
    }
}
