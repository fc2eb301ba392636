//! The tests of a crate, run in order until a test fails.
//!
//! A list names a test as `file::test`, or a whole file: a file in `tests` or `tests/it`, or
//! `unit`. A name with `loom_` means a model unless ` (std)` follows; any other name means the test
//! under `std`, or with full fences if ` (full fences)` follows. The folders in `tests/it` may be
//! left out.

use super::change::CHOICE;
use crate::Failure;
use crate::cargo::{Cargo, Ending, Test};
use crate::loom::{self, at_a_time};
use crate::root::Tree;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::sync::Mutex;
use std::time::Duration;

const STD: &str = " (std)";
const FENCED: &str = " (full fences)";

/// The time limit of a test of the original, with other work running.
const MOST: Duration = Duration::from_secs(900);

/// The time limit, in seconds, of a model that no list names as the killer.
const IN_PASSING: &str = "60";

/// The time that a test of a mutant may take in addition to several times the original's time: a
/// weaker ordering lets a model go through more interleavings.
const GRACE: Duration = Duration::from_secs(30);
const TIMES: u32 = 10;

/// A way to run tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Loom models, in every interleaving within their bounds.
    Model,
    /// With real threads.
    Std,
    /// The same, with full fences even where light fences could be free: other code runs.
    Fenced,
}

/// A test, and the way to run it, which its name says.
pub(crate) struct Candidate {
    kind: Kind,
    called: String,
    test: Test,
}

/// The tests' result for a mutant.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// By a test, which may hang.
    Killed(String),
    Survived,
    /// The list is wrong: it tells nothing about the tests.
    DoesNotBuild,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Killed(by) => write!(f, "killed by {by}"),
            Self::Survived => write!(f, "survives"),
            Self::DoesNotBuild => write!(f, "does not build"),
        }
    }
}

impl Kind {
    /// Returns the ways in which a package's tests are run, the models first, if any.
    pub(crate) fn all(package: &str) -> Result<Vec<Self>, Failure> {
        let manifest = fs::read_to_string(Tree::own().package(package).join("Cargo.toml"))?;
        let has_models = loom::packages()?.iter().any(|it| it == package);
        let kinds = [
            (Self::Model, has_models),
            (Self::Std, true),
            (Self::Fenced, manifest.contains("membarrier")),
        ];
        Ok(kinds.into_iter().filter(|it| it.1).map(|it| it.0).collect())
    }

    /// Returns the way to run the test that a list names.
    fn of(killer: &str) -> Self {
        match killer {
            _ if killer.ends_with(FENCED) => Self::Fenced,
            _ if killer.ends_with(STD) || !killer.contains("loom_") => Self::Std,
            _ => Self::Model,
        }
    }

    /// Builds a package's tests, or the tests in the killer's file. The inner `Err` has the
    /// compiler's messages.
    pub(crate) fn build(
        self,
        tree: &Tree,
        package: &str,
        killer: Option<&str>,
    ) -> Result<Result<Vec<Candidate>, String>, Failure> {
        let file = killer.map(|killer| killer.split([':', ' ']).next().unwrap_or_default());
        let call = match self {
            Self::Model => loom::build(tree, package, file),
            Self::Std | Self::Fenced => {
                let test = Cargo::new(["test", "--no-run", "--all-features", "-p", package]);
                let test = test.at(tree);
                match file {
                    None => test,
                    Some("unit") => test.args(["--lib"]),
                    Some(file) => test.args(["--test", tree.program(package, file)]),
                }
            }
        };
        // No debugger will be attached.
        let call = call.env("CARGO_PROFILE_DEV_DEBUG", "none");
        let stderr = match call.env("CARGO_PROFILE_RELEASE_DEBUG", "none").quietly() {
            Ok(stderr) => stderr,
            Err(stderr) => return Ok(Err(stderr)),
        };
        let mut tests = Test::list(&stderr, tree, package)?;
        tests.retain(|test| self != Self::Model || loom::is_model(test));
        let candidate = |test: Test| {
            let how = match self {
                Self::Std if loom::is_model(&test) => STD,
                Self::Model | Self::Std => "",
                Self::Fenced => FENCED,
            };
            let called = format!("{}::{}{how}", test.file, test.name);
            Candidate {
                kind: self,
                called,
                test,
            }
        };
        Ok(Ok(tests.into_iter().map(candidate).collect()))
    }

    /// Returns the additions to the environment of the tests.
    fn env(self) -> Vec<(&'static str, String)> {
        // A failing case of a mutant is not kept for the next mutant.
        let mut env = vec![("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1".to_owned())];
        env.extend((self == Self::Fenced).then(|| ("GANGER_MEMBARRIER", "off".to_owned())));
        env
    }
}

/// Whether the name in a list means the test that is called so.
fn means(killer: &str, called: &str) -> bool {
    let (name, how) = killer.split_at(killer.find(" (").unwrap_or(killer.len()));
    let is_of_file = || {
        let rest = called
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix("::"));
        let called_how = called.find(" (").map_or("", |at| &called[at..]);
        !name.contains("::") && rest.is_some() && how == called_how
    };
    called == killer || called.ends_with(&format!("::{killer}")) || is_of_file()
}

/// The tests of a crate, built with the mutants that a number chooses, and each test's time for the
/// original.
pub(crate) struct Trial {
    package: String,
    kinds: Vec<Kind>,
    built: Vec<Candidate>,
    times: BTreeMap<String, Duration>,
}

impl Trial {
    /// Runs the tests that the `killers` mean on the original, which must pass them, `threads` at a
    /// time. Other tests run on the original when a mutant fails them.
    pub(crate) fn of_original(
        package: &str,
        kinds: Vec<Kind>,
        built: Vec<Candidate>,
        killers: &[&str],
        threads: usize,
    ) -> Result<Self, Failure> {
        let is_there = |killer: &&&str| built.iter().any(|it| means(killer, &it.called));
        if let Some(killer) = killers.iter().find(|killer| !is_there(killer)) {
            return Err(format!("there is no test {killer}").into());
        }
        let meant = built
            .iter()
            .filter(|it| killers.iter().any(|killer| means(killer, &it.called)));
        let times = Mutex::new(BTreeMap::new());
        let failed = Mutex::new(Vec::new());
        at_a_time(threads, meant.collect(), |it: &Candidate| {
            let run = it.test.run(&it.kind.env(), MOST);
            match run.ending {
                Ending::Passed => {
                    let mut times = times.lock().expect("no thread panics with it");
                    times.insert(it.called.clone(), run.time);
                }
                _ => {
                    let mut failed = failed.lock().expect("no thread panics with it");
                    failed.push(format!("{}\n{}", it.called, run.text));
                }
            }
        });
        let failed = failed.into_inner()?.join("\n");
        if !failed.is_empty() {
            return Err(format!("the original fails, so mutants tell nothing: {failed}").into());
        }
        println!("{package}: the original passes");
        let (package, times) = (package.to_owned(), times.into_inner()?);
        Ok(Self {
            package,
            kinds,
            built,
            times,
        })
    }

    /// Runs the tests that `killer` means on the mutant of this number, or all other tests, the
    /// models first, until a test fails.
    pub(crate) fn of_number(
        &self,
        number: usize,
        killer: Option<&str>,
        is_killer: bool,
    ) -> Result<Option<Verdict>, Failure> {
        let is_meant = |it: &&Candidate| killer.is_some_and(|killer| means(killer, &it.called));
        for candidate in self.built.iter().filter(|it| is_meant(it) == is_killer) {
            if let Some(killed) = self.try_one(candidate, is_killer, Some(number))? {
                return Ok(Some(killed));
            }
        }
        Ok(None)
    }

    /// Runs the tests on the mutant in `tree` until a test fails: first the tests that `killer`
    /// means, then the models, then all others, unless `killer_only`. Shows the compiler's messages
    /// if the mutant does not build.
    pub(crate) fn of_mutant(
        &self,
        tree: &Tree,
        killer: Option<&str>,
        killer_only: bool,
    ) -> Result<Verdict, Failure> {
        // A single test program is built much faster than all of them.
        let first = killer.map(|killer| (Kind::of(killer), Some(killer)));
        let all = self.kinds.iter().filter(|_| !killer_only);
        for (kind, only) in first.into_iter().chain(all.map(|&kind| (kind, None))) {
            let candidates = match kind.build(tree, &self.package, only)? {
                Ok(candidates) => candidates,
                Err(stderr) => {
                    println!("{stderr}");
                    return Ok(Verdict::DoesNotBuild);
                }
            };
            for candidate in candidates {
                let is_killer = killer.is_some_and(|killer| means(killer, &candidate.called));
                // The killer has been run when it is the turn of all.
                if is_killer == only.is_some()
                    && let Some(killed) = self.try_one(&candidate, is_killer, None)?
                {
                    return Ok(killed);
                }
            }
        }
        Ok(Verdict::Survived)
    }

    /// Runs a test on the mutant of this number, or on the only mutant of the build.
    fn try_one(
        &self,
        Candidate { kind, called, test }: &Candidate,
        is_killer: bool,
        number: Option<usize>,
    ) -> Result<Option<Verdict>, Failure> {
        let usual = self.times.get(called);
        let limit = usual.map_or(MOST, |&usual| usual * TIMES + GRACE);
        let mut env = kind.env();
        env.extend(number.map(|number| (CHOICE, number.to_string())));
        if *kind == Kind::Model && !is_killer {
            env.push(("LOOM_MAX_DURATION", IN_PASSING.to_owned()));
        }
        let mut run = test.run(&env, limit);
        let is_sure = is_killer && run.ending != Ending::Killed;
        if run.ending != Ending::Passed && !is_sure {
            // A test that no list names may have failed by chance, and the system may have killed
            // the wrong process.
            run = test.run(&env, limit);
        }
        if run.ending != Ending::Passed && usual.is_none() {
            let original = self.built.iter().find(|it| it.called == *called);
            let original = original.ok_or_else(|| format!("the original has no test {called}"))?;
            let run = original.test.run(&kind.env(), MOST);
            if run.ending != Ending::Passed {
                let text = run.text;
                return Err(format!("the original fails {called}: {text}").into());
            }
        }
        Ok(match run.ending {
            Ending::Passed => None,
            Ending::Failed | Ending::Killed => Some(Verdict::Killed(called.clone())),
            Ending::Hung => Some(Verdict::Killed(format!("{called}, which hangs"))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killer_is_a_file_or_a_test_of_some_kind() {
        for (killer, kind, meant, other) in [
            ("stress", Kind::Std, "stress::two", "stres::two"),
            (
                "stress::two",
                Kind::Std,
                "load::heavy::stress::two",
                "load::distress::two",
            ),
            (
                "a::b (full fences)",
                Kind::Fenced,
                "a::b (full fences)",
                "a::b",
            ),
            (
                "loom_drop",
                Kind::Model,
                "loom_drop::one",
                "loom_drop::one (std)",
            ),
            (
                "loom_drop::one (std)",
                Kind::Std,
                "loom_drop::one (std)",
                "loom_drop::one",
            ),
            (
                "unit::loom_a::b",
                Kind::Model,
                "unit::loom_a::b",
                "unit::loom_a::bc",
            ),
        ] {
            assert_eq!(Kind::of(killer), kind, "{killer}");
            assert!(means(killer, meant) && !means(killer, other), "{killer}");
        }
    }
}
