//! The tests of a crate, run one by one until one fails.

use super::kind::{Killer, Kind};
use super::verdict::Verdict;
use crate::Failure;
use crate::cargo::{Ending, Test};
use crate::loom;
use crate::root::Tree;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

/// The longest that a test of the original may take.
const MOST: Duration = Duration::from_secs(300);

/// What a test of a mutant may take in addition to several times what it took of the original: a
/// weaker ordering lets a model go through more interleavings.
const GRACE: Duration = Duration::from_secs(30);
const TIMES: u32 = 10;

/// What identifies a test: its kind, its file and its name.
type Key = (Kind, String, String);

/// The tests of a crate, and how long each takes.
pub(crate) struct Trial {
    package: String,
    kinds: Vec<Kind>,
    times: BTreeMap<Key, Duration>,
}

impl Trial {
    /// Runs all the tests on the original, which must pass them; `threads` at a time.
    pub(crate) fn of_original(package: &str, tree: &Tree, threads: usize) -> Result<Self, Failure> {
        let kinds = Kind::all(tree, package)?;
        let mut tests = Vec::new();
        for &kind in &kinds {
            let built = kind.build(tree, package, None)?;
            let built = built.map_err(|stderr| {
                format!("the original does not build, so mutants tell nothing:\n{stderr}")
            })?;
            tests.extend(built.into_iter().map(|test| (kind, test)));
        }
        let times = Mutex::new(BTreeMap::new());
        let failed = Mutex::new(Vec::new());
        loom::at_a_time(threads, tests, |_, (kind, test)| {
            let run = test.run(&kind.env(), Some(MOST));
            // A lock is poisoned only if a thread has panicked, and then the caller panics too.
            if run.ending == Ending::Passed
                && let Ok(mut times) = times.lock()
            {
                times.insert(key(kind, &test), run.time);
            } else if let Ok(mut failed) = failed.lock() {
                failed.push(format!("{}\n{}", kind.called(&test), run.text));
            }
        });
        let failed = failed.into_inner()?;
        if !failed.is_empty() {
            let failed = failed.join("\n");
            return Err(format!("the original fails, so mutants tell nothing: {failed}").into());
        }
        Ok(Self {
            package: package.to_owned(),
            kinds,
            times: times.into_inner()?,
        })
    }

    /// How many tests there are.
    pub(crate) fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there is a test that this means.
    pub(crate) fn knows(&self, killer: &Killer) -> bool {
        let mut tests = self.times.keys();
        tests.any(|(kind, file, name)| *kind == killer.kind && killer.means(file, name))
    }

    /// Runs the tests on the mutant in `tree` until one fails: first those that `killer` means,
    /// then the models, then all others. Shows why it does not build if it does not.
    pub(crate) fn of_mutant(
        &self,
        tree: &Tree,
        killer: Option<&Killer>,
    ) -> Result<Verdict, Failure> {
        // One test program is built much faster than all of them.
        let first = killer.map(|killer| (killer.kind, Some(killer)));
        let all = self.kinds.iter().map(|&kind| (kind, None));
        for (kind, only) in first.into_iter().chain(all) {
            let tests = match kind.build(tree, &self.package, only)? {
                Ok(tests) => tests,
                Err(stderr) => {
                    println!("{stderr}");
                    return Ok(Verdict::DoesNotBuild);
                }
            };
            for test in tests {
                let is_killer = killer.is_some_and(|killer| {
                    killer.kind == kind && killer.means(&test.file, &test.name)
                });
                // The killer has been run when it is the turn of all.
                if is_killer != only.is_some() {
                    continue;
                }
                let usual = self.times.get(&key(kind, &test)).copied();
                let limit = usual.unwrap_or_default() * TIMES + GRACE;
                let mut run = test.run(&kind.env(), Some(limit));
                let is_sure = is_killer && run.ending != Ending::Killed;
                if run.ending != Ending::Passed && !is_sure {
                    // A test that no list names may have failed by chance, and the system may have
                    // killed the wrong one.
                    run = test.run(&kind.env(), Some(limit));
                }
                let (by, hangs) = (kind.called(&test), run.ending == Ending::Hung);
                match run.ending {
                    Ending::Passed => {}
                    Ending::Failed | Ending::Hung | Ending::Killed => {
                        return Ok(Verdict::Killed { by, hangs });
                    }
                    Ending::Unknown => {
                        return Err(format!("{by} tells nothing: {}", run.text).into());
                    }
                }
            }
        }
        Ok(Verdict::Survived)
    }
}

fn key(kind: Kind, test: &Test) -> Key {
    (kind, test.file.clone(), test.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killer_must_be_known() {
        let tests = [
            (Kind::Model, "loom_a", "one"),
            (Kind::Std, "loom_b", "one"),
            (Kind::Std, "c", "d"),
        ];
        let time = |(kind, file, name): (_, &str, &str)| {
            ((kind, file.to_owned(), name.to_owned()), Duration::ZERO)
        };
        let trial = Trial {
            package: String::new(),
            kinds: vec![Kind::Model, Kind::Std],
            times: tests.map(time).into(),
        };
        let knows = |text| trial.knows(&Killer::new(text));
        assert!(knows("loom_a") && knows("loom_a::one") && knows("c") && knows("loom_b (std)"));
        assert!(!knows("loom_a::two") && !knows("loom_b") && !knows("c (full fences)"));
    }
}
