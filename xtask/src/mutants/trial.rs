//! The tests of a crate, run in order until a test fails.

use super::kind::{Killer, Kind};
use super::switched;
use super::verdict::Verdict;
use crate::Failure;
use crate::cargo::{Ending, Test};
use crate::loom;
use crate::root::Tree;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

/// The time limit of a test of the original, with other work running.
const MOST: Duration = Duration::from_secs(900);

/// The time limit, in seconds, of a model that no list names as the killer.
const IN_PASSING: u64 = 60;

/// The time that a test of a mutant may take in addition to several times the original's time: a
/// weaker ordering lets a model go through more interleavings.
const GRACE: Duration = Duration::from_secs(30);
const TIMES: u32 = 10;

/// The key of a test: its kind, its file and its name.
type Key = (Kind, String, String);

/// The tests of a crate, built with the mutants that a number chooses, and each test's time for the
/// original.
pub(crate) struct Trial {
    package: String,
    kinds: Vec<Kind>,
    built: Vec<(Kind, Test)>,
    times: BTreeMap<Key, Duration>,
}

impl Trial {
    /// Runs the tests that the `killers` mean on the original, which must pass them, `threads` at a
    /// time. Other tests run on the original when a mutant fails them.
    pub(crate) fn of_original(
        package: &str,
        kinds: Vec<Kind>,
        built: Vec<(Kind, Test)>,
        killers: &[Killer],
        threads: usize,
    ) -> Result<Self, Failure> {
        if let Some(killer) = killers
            .iter()
            .find(|killer| !built.iter().any(|it| is(killer, it)))
        {
            return Err(format!("there is no test {killer}").into());
        }
        let meant = built
            .iter()
            .filter(|it| killers.iter().any(|killer| is(killer, it)));
        let times = Mutex::new(BTreeMap::new());
        let failed = Mutex::new(Vec::new());
        loom::at_a_time(threads, meant.collect(), |_, (kind, test)| {
            let run = test.run(&kind.env(), Some(MOST));
            // A lock is poisoned only if a thread has panicked, and then the caller panics too.
            if run.ending == Ending::Passed
                && let Ok(mut times) = times.lock()
            {
                times.insert(key(*kind, test), run.time);
            } else if let Ok(mut failed) = failed.lock() {
                failed.push(format!("{}\n{}", kind.called(test), run.text));
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
            built,
            times: times.into_inner()?,
        })
    }

    /// How many tests the original has passed.
    pub(crate) fn len(&self) -> usize {
        self.times.len()
    }

    /// Runs the tests that `killer` means on the mutant of this number, or all other tests, the
    /// models first, until a test fails.
    pub(crate) fn of_number(
        &self,
        number: usize,
        killer: Option<&Killer>,
        is_killer: bool,
    ) -> Result<Option<Verdict>, Failure> {
        for built in &self.built {
            if killer.is_some_and(|killer| is(killer, built)) == is_killer {
                let killed = self.try_one(built.0, &built.1, is_killer, Some(number))?;
                if killed.is_some() {
                    return Ok(killed);
                }
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
        killer: Option<&Killer>,
        killer_only: bool,
    ) -> Result<Verdict, Failure> {
        // A single test program is built much faster than all of them.
        let first = killer.map(|killer| (killer.kind, Some(killer)));
        let all = self.kinds.iter().filter(|_| !killer_only);
        let all = all.map(|&kind| (kind, None));
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
                if is_killer == only.is_some()
                    && let Some(killed) = self.try_one(kind, &test, is_killer, None)?
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
        kind: Kind,
        test: &Test,
        is_killer: bool,
        number: Option<usize>,
    ) -> Result<Option<Verdict>, Failure> {
        let usual = self.times.get(&key(kind, test));
        let limit = usual.map_or(MOST, |&usual| usual * TIMES + GRACE);
        let mut env = kind.env();
        env.extend(number.map(|number| (switched::CHOICE, number.to_string())));
        if kind == Kind::Model && !is_killer {
            env.push(("LOOM_MAX_DURATION", IN_PASSING.to_string()));
        }
        let mut run = test.run(&env, Some(limit));
        let is_sure = is_killer && run.ending != Ending::Killed;
        if run.ending != Ending::Passed && !is_sure {
            // A test that no list names may have failed by chance, and the system may have killed
            // the wrong process.
            run = test.run(&env, Some(limit));
        }
        if run.ending != Ending::Passed && usual.is_none() {
            self.original_passes(kind, test)?;
        }
        let (by, hangs) = (kind.called(test), run.ending == Ending::Hung);
        match run.ending {
            Ending::Passed => Ok(None),
            Ending::Failed | Ending::Hung | Ending::Killed => {
                Ok(Some(Verdict::Killed { by, hangs }))
            }
            Ending::Unknown => Err(format!("{by} tells nothing: {}", run.text).into()),
        }
    }

    /// An error if the original fails this test, too.
    fn original_passes(&self, kind: Kind, test: &Test) -> Result<(), Failure> {
        let same = |(of, built): &&(Kind, Test)| key(*of, built) == key(kind, test);
        let Some((_, built)) = self.built.iter().find(same) else {
            return Err(format!("the original has no test {}", kind.called(test)).into());
        };
        let run = built.run(&kind.env(), Some(MOST));
        if run.ending == Ending::Passed {
            return Ok(());
        }
        let (by, text) = (kind.called(test), run.text);
        Err(format!("the original fails {by}, so mutants tell nothing: {text}").into())
    }
}

/// Whether a killer means a test.
fn is(killer: &Killer, (kind, test): &(Kind, Test)) -> bool {
    killer.kind == *kind && killer.means(&test.file, &test.name)
}

fn key(kind: Kind, test: &Test) -> Key {
    (kind, test.file.clone(), test.name.clone())
}
