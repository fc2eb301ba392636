//! The tests of a crate, tried on a mutant until a test fails.
//!
//! A list names a test as `file::test`, or a whole file: a file in `tests` or `tests/it`, or
//! `unit`. A name with `loom_` means a model unless ` (std)` follows; any other name means the test
//! under `std`, or with full fences if ` (full fences)` follows. The folders in `tests/it` may be
//! left out.

use super::change::CHOICE;
use crate::Failure;
use crate::cargo::{Cargo, Ending, Test};
use crate::loom::{self, at_a_time, cores};
use crate::root::Tree;
use std::collections::BTreeMap;
use std::fs;
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
    /// With real threads, and with full fences even where light fences could be free: other code
    /// runs.
    Fenced,
}

/// A test, and the way to run it, which its name says.
pub(crate) struct Candidate {
    kind: Kind,
    called: String,
    test: Test,
}

impl Kind {
    /// Returns the way to run a list's test.
    fn of(killer: &str) -> Self {
        match killer {
            _ if killer.ends_with(FENCED) => Self::Fenced,
            _ if killer.ends_with(STD) || !killer.contains("loom_") => Self::Std,
            _ => Self::Model,
        }
    }

    /// Returns the additions to the environment of the tests.
    fn env(self) -> Vec<(&'static str, String)> {
        // A failing case of a mutant is not kept for the next mutant.
        let mut env = vec![("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1".to_owned())];
        env.extend((self == Self::Fenced).then(|| ("GANGER_MEMBARRIER", "off".to_owned())));
        env
    }
}

/// Builds a package's tests in each way in which they are run, or the tests in the killer's file,
/// which is much faster. The inner `Err` has the compiler's messages.
pub(crate) fn build(
    tree: &Tree,
    package: &str,
    killer: Option<&str>,
) -> Result<Result<Vec<Candidate>, String>, Failure> {
    let manifest = fs::read_to_string(tree.package(package).join("Cargo.toml"))?;
    let has_models = loom::packages()?.iter().any(|it| it == package);
    let file = killer.and_then(|killer| killer.split([':', ' ']).next());
    let mut candidates = Vec::new();
    for kind in [Kind::Model, Kind::Std, Kind::Fenced] {
        let is_meant = match (killer, kind) {
            (Some(killer), _) => Kind::of(killer) == kind,
            (None, Kind::Model) => has_models,
            (None, Kind::Std) => true,
            (None, Kind::Fenced) => manifest.contains("membarrier"),
        };
        if !is_meant {
            continue;
        }
        let std = format!("test --no-run --all-features -p {package}");
        let std = || Cargo::new(&std).at(tree);
        let call = match (kind, file) {
            (Kind::Model, file) => loom::build(tree, package, file),
            (_, None) => std(),
            (_, Some("unit")) => std().args("--lib"),
            (_, Some(file)) => std().args("--test").arg(tree.program(package, file)),
        };
        // No debugger will be attached.
        let call = call.env("CARGO_PROFILE_DEV_DEBUG", "none");
        let stderr = match call.env("CARGO_PROFILE_RELEASE_DEBUG", "none").quietly() {
            Ok(stderr) => stderr,
            Err(stderr) => return Ok(Err(stderr)),
        };
        for test in Test::list(&stderr, tree, package)? {
            let how = match (kind, loom::is_model(&test)) {
                (Kind::Model, false) => continue,
                (Kind::Std, true) => STD,
                (Kind::Model, true) | (Kind::Std, false) => "",
                (Kind::Fenced, _) => FENCED,
            };
            let called = format!("{}{how}", test.called);
            candidates.push(Candidate { kind, called, test });
        }
    }
    Ok(Ok(candidates))
}

/// Returns whether the name in a list means the test of the name `called`.
fn means(killer: &str, called: &str) -> bool {
    let (name, how) = killer.split_at(killer.find(" (").unwrap_or(killer.len()));
    let is_of_file = || {
        let rest = called.strip_prefix(name);
        let rest = rest.and_then(|rest| rest.strip_prefix("::"));
        let called_how = called.find(" (").map_or("", |at| &called[at..]);
        !name.contains("::") && rest.is_some() && how == called_how
    };
    called == killer || called.ends_with(&format!("::{killer}")) || is_of_file()
}

/// The tests of a crate, built with the mutants that a number chooses, and each killer's time for
/// the original.
pub(crate) struct Trial {
    pub(crate) built: Vec<Candidate>,
    times: BTreeMap<String, Duration>,
}

impl Trial {
    /// Runs the tests of the `killers` on the original, and fails unless all pass. Other tests run
    /// on the original when a mutant fails them.
    pub(crate) fn of_original(built: Vec<Candidate>, killers: &[&str]) -> Result<Self, Failure> {
        for killer in killers {
            if !built.iter().any(|it| means(killer, &it.called)) {
                return Err(format!("there is no test {killer}").into());
            }
        }
        let is_meant = |it: &&Candidate| killers.iter().any(|killer| means(killer, &it.called));
        let meant = built.iter().filter(is_meant).collect();
        let runs = at_a_time(cores(), meant, |it: &Candidate| {
            (it.called.clone(), it.test.run(&it.kind.env(), MOST))
        });
        if let Some((called, run)) = runs.iter().find(|it| it.1.ending != Ending::Passed) {
            return Err(format!("the original fails {called}:\n{}", run.text).into());
        }
        let times = runs.into_iter().map(|it| (it.0, it.1.time)).collect();
        Ok(Self { built, times })
    }

    /// Tries the tests of `killer`, or all without a killer, on the mutant of this number, or on
    /// the only mutant of the build. Returns the first test that fails.
    pub(crate) fn killer(
        &self,
        candidates: &[Candidate],
        killer: Option<&str>,
        number: Option<usize>,
    ) -> Result<Option<String>, Failure> {
        let is_meant = |it: &&Candidate| killer.is_none_or(|killer| means(killer, &it.called));
        for Candidate { kind, called, test } in candidates.iter().filter(is_meant) {
            let usual = self.times.get(called);
            let limit = usual.map_or(MOST, |&usual| usual * TIMES + GRACE);
            let mut env = kind.env();
            env.extend(number.map(|number| (CHOICE, number.to_string())));
            if *kind == Kind::Model && killer.is_none() {
                env.push(("LOOM_MAX_DURATION", IN_PASSING.to_owned()));
            }
            let mut ending = test.run(&env, limit).ending;
            if ending == Ending::Killed || ending != Ending::Passed && killer.is_none() {
                // A test that no list names may have failed by chance, and the system may have
                // killed the wrong process.
                ending = test.run(&env, limit).ending;
            }
            if ending == Ending::Passed {
                continue;
            }
            if usual.is_none() {
                let original = self.built.iter().find(|it| it.called == *called);
                let run = original.map(|it| it.test.run(&kind.env(), MOST));
                if run.is_none_or(|run| run.ending != Ending::Passed) {
                    return Err(format!("the original fails {called} as well").into());
                }
            }
            let hangs = if ending == Ending::Hung {
                ", which hangs"
            } else {
                ""
            };
            return Ok(Some(format!("{called}{hangs}")));
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killer_is_a_file_or_a_test_of_some_kind() {
        // A row: the text of the list, a test it means, and a test it does not mean.
        let rows = "stress; stress::two; stres::two
                    stress::two; load::heavy::stress::two; load::distress::two
                    a::b (full fences); a::b (full fences); a::b
                    loom_drop; loom_drop::one; loom_drop::one (std)
                    loom_drop::one (std); loom_drop::one (std); loom_drop::one
                    unit::loom_a::b; unit::loom_a::b; unit::loom_a::bc";
        for row in rows.lines() {
            let [killer, meant, other] = *Vec::from_iter(row.trim().split("; ")) else {
                panic!("{row}");
            };
            assert!(means(killer, meant) && !means(killer, other), "{row}");
        }
        let kinds = ["a::b", "loom_a (std)", "a (full fences)", "loom_a"].map(Kind::of);
        assert_eq!(kinds, [Kind::Std, Kind::Std, Kind::Fenced, Kind::Model]);
    }
}
