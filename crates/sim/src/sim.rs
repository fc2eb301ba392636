//! One run, or many.

use crate::choices::{Choices, Decision, Source};
use crate::faults::Faults;
use crate::quiet::quietly;
use crate::rt::Rt;
use crate::shrink::shrink;
use crate::strategy::Strategy;
use crate::trace::Trace;
use ganger_sched::sim::{self, Driver};
use ganger_sched::{Builder, Scheduler};
use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::{env, fmt, mem, thread};

/// The seed to run alone, in the environment.
const SEED: &str = "GANGER_SIM_SEED";

/// The decisions to make, in the environment: numbers with commas between them.
const DECISIONS: &str = "GANGER_SIM_DECISIONS";

/// How many runs may be spent on a shorter one that fails.
const TRIES: usize = 2_000;

/// How many moves a report of a failure shows.
const SHOWN: usize = 60;

/// A simulation: a scheduler whose workers are no threads, and what chance makes of it.
///
/// ```
/// use ganger_proc_api::{BoxError, Events, ExitReason, Process, StepOutput};
/// use ganger_sim::Sim;
///
/// struct Answer;
/// impl Process for Answer {
///     fn step(&mut self, _: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
///         out.done(42);
///         Ok(())
///     }
/// }
///
/// let report = Sim::new(1).workers(4).run(|rt| {
///     let answer = rt.submit(Answer, "main", ()).unwrap();
///     assert!(matches!(rt.wait(answer), ExitReason::Done(it) if it.as_u64() == Some(42)));
/// });
/// assert!(report.moves > 0);
/// ```
#[must_use = "a simulation does nothing until it is run"]
#[derive(Clone)]
pub struct Sim {
    seed: u64,
    workers: usize,
    strategy: Strategy,
    faults: Faults,
    max_moves: u64,
    set: Option<Arc<dyn Fn(Builder) -> Builder + Send + Sync>>,
}

/// A run that has gone well.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// How many moves there were.
    pub moves: u64,
    /// The moves.
    pub trace: Trace,
    /// The decisions that have been made, for [`Sim::replay`].
    pub decisions: Vec<u32>,
}

/// What [`Sim::explore`] has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explored {
    /// How many runs there were.
    pub runs: u64,
    /// There are no other runs than these.
    pub is_complete: bool,
}

/// What became of a run.
struct Outcome {
    /// Why it has failed, if so.
    failure: Option<String>,
    made: Vec<Decision>,
    trace: Trace,
}

impl Outcome {
    fn decisions(&self) -> Vec<u32> {
        self.made.iter().map(|it| it.chose).collect()
    }
}

impl Sim {
    /// A simulation with that seed, two workers, and without faults.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            workers: 2,
            strategy: Strategy::default(),
            faults: Faults::default(),
            max_moves: 1_000_000,
            set: None,
        }
    }

    /// How many workers there are. Default: 2.
    pub fn workers(self, workers: usize) -> Self {
        Self { workers, ..self }
    }

    /// How it is decided who moves next. Default: [`Strategy::Random`].
    pub fn strategy(self, strategy: Strategy) -> Self {
        Self { strategy, ..self }
    }

    /// What goes wrong. Default: nothing.
    pub fn faults(self, faults: Faults) -> Self {
        Self { faults, ..self }
    }

    /// After how many moves a run that has not ended fails. Default: a million.
    pub fn max_moves(self, max_moves: u64) -> Self {
        Self { max_moves, ..self }
    }

    /// Settings of the scheduler: what `set` makes of a builder. There are no spares, whatever it says.
    pub fn builder(self, set: impl Fn(Builder) -> Builder + Send + Sync + 'static) -> Self {
        let set = Some(Arc::new(set) as Arc<_>);
        Self { set, ..self }
    }

    /// Runs `test` once, with the seed.
    ///
    /// When it returns, the scheduler is stopped, and nothing may be left.
    ///
    /// # Panics
    /// When `test` does, or a promise is broken: with the moves before that, and how to repeat it.
    pub fn run(&self, test: impl FnOnce(&Rt<'_>)) -> Report {
        let outcome = self.attempt(Source::Seed(self.seed), test);
        self.report(outcome)
    }

    /// Runs `test` once, with the decisions of another run. Where there are none, the first of whatever
    /// there is is taken.
    ///
    /// # Panics
    /// As [`run`](Self::run).
    pub fn replay(&self, decisions: &[u32], test: impl FnOnce(&Rt<'_>)) -> Report {
        let outcome = self.attempt(Source::Given(decisions.to_vec()), test);
        self.report(outcome)
    }

    /// Runs `test` with that many seeds, with two workers and [some faults](Faults::some): see
    /// [`check_seeds`](Self::check_seeds).
    ///
    /// # Panics
    /// As `check_seeds`.
    pub fn check(seeds: u64, test: impl Fn(&Rt<'_>)) {
        Self::new(0).faults(Faults::some()).check_seeds(seeds, test);
    }

    /// Runs `test` with that many seeds, from this simulation's on.
    ///
    /// With `GANGER_SIM_SEED` in the environment it runs that seed alone, and with `GANGER_SIM_DECISIONS`
    /// these decisions alone.
    ///
    /// # Panics
    /// When a run fails. It is made shorter first; the message says how to repeat it, and shows its last
    /// moves.
    pub fn check_seeds(&self, seeds: u64, test: impl Fn(&Rt<'_>)) {
        if let Some(decisions) = variable(DECISIONS) {
            let numbers = decisions.split(',').filter(|number| !number.is_empty());
            let given: Vec<u32> = numbers.map(|number| parse(DECISIONS, number)).collect();
            self.replay(&given, &test);
            return;
        }
        let alone = variable(SEED).map(|seed| parse(SEED, &seed));
        let all = match alone {
            Some(seed) => seed..=seed,
            None => self.seed..=self.seed.saturating_add(seeds.saturating_sub(1)),
        };
        for seed in all {
            let outcome = quietly(|| self.attempt(Source::Seed(seed), &test));
            if outcome.failure.is_some() {
                self.fail(seed, &outcome, &test);
            }
        }
    }

    /// Runs `test` in every way there is, or in that many: for small cases without faults, since the ways
    /// are very many soon.
    ///
    /// # Panics
    /// When a run fails, as [`check_seeds`](Self::check_seeds).
    pub fn explore(&self, max_runs: u64, test: impl Fn(&Rt<'_>)) -> Explored {
        let mut next = Some(Vec::new());
        let mut runs = 0;
        while let Some(given) = next.filter(|_| runs < max_runs) {
            runs += 1;
            let outcome = quietly(|| self.attempt(Source::Given(given), &test));
            if outcome.failure.is_some() {
                self.fail(self.seed, &outcome, &test);
            }
            next = successor(&outcome.made);
            if next.is_none() {
                return Explored {
                    runs,
                    is_complete: true,
                };
            }
        }
        Explored {
            runs,
            is_complete: false,
        }
    }

    /// Makes the run that has failed shorter, and says what there is to say about it.
    fn fail(&self, seed: u64, outcome: &Outcome, test: &impl Fn(&Rt<'_>)) -> ! {
        let again = |decisions: &[u32]| self.attempt(Source::Given(decisions.to_vec()), test);
        let fails = |decisions: &[u32]| again(decisions).failure.is_some();
        let (shortest, last) = quietly(|| {
            let shortest = shrink(outcome.decisions(), TRIES, fails);
            let last = again(&shortest);
            (shortest, last)
        });
        let why = last.failure.as_ref().or(outcome.failure.as_ref());
        let (moves, why) = (last.trace.len(), why.map_or("", |it| it.as_str()));
        let list: Vec<_> = shortest.iter().map(u32::to_string).collect();
        let current = thread::current();
        // The name of a test, or of no test.
        let again = match current.name() {
            None | Some("main") => "(the same program again)".to_owned(),
            Some(test) => format!("cargo test {test}"),
        };
        panic!(
            "seed {seed} fails: {why}\n\n\
             Repeat it: {SEED}={seed} {again}\n\
             The shortest run that fails, of {moves} moves instead of {}: \
             {DECISIONS}={} {again}\n\
             Its last moves:\n{}",
            outcome.trace.len(),
            list.join(","),
            last.trace.last(SHOWN)
        );
    }

    fn report(&self, outcome: Outcome) -> Report {
        if let Some(failure) = &outcome.failure {
            let (seed, moves) = (self.seed, outcome.trace.last(SHOWN));
            panic!("a run with the seed {seed} fails: {failure}\n\nIts last moves:\n{moves}");
        }
        Report {
            decisions: outcome.decisions(),
            moves: outcome.trace.len() as u64,
            trace: outcome.trace,
        }
    }

    fn attempt(&self, source: Source, test: impl FnOnce(&Rt<'_>)) -> Outcome {
        let builder = Scheduler::builder().host("sim");
        let builder = match &self.set {
            Some(set) => set(builder),
            None => builder,
        };
        let builder = builder.workers(self.workers).max_spares(0);
        let scheduler = match builder.check_promises().build() {
            Ok(scheduler) => scheduler,
            Err(error) => panic!("the scheduler can't be built: {error}"),
        };
        // Workers, the monitor, and timers.
        let choices = Choices::new(source, self.strategy, self.workers + 2);
        let choices = Rc::new(RefCell::new(choices));
        let driver = Chance {
            choices: Rc::clone(&choices),
            faults: self.faults,
        };
        let mut trace = Trace::default();
        let mut failure = None;
        let mut is_clean = false;
        let started = sim::drive(Box::new(driver), || {
            sim::run(&scheduler, |handle, machine| {
                let machine = RefCell::new(machine);
                let choices = Rc::clone(&choices);
                let rt = Rt::new(handle, &machine, choices, self.faults, self.max_moves);
                let run = catch_unwind(AssertUnwindSafe(|| {
                    test(&rt);
                    rt.finish();
                }));
                failure = run.err().map(|panic| text(&*panic));
                // What has failed may be in any state, and need not come to an end.
                is_clean =
                    failure.is_none() || catch_unwind(AssertUnwindSafe(|| rt.finish())).is_ok();
                trace = rt.trace.take();
            })
        });
        if let Err(error) = started {
            failure = Some(error.to_string());
        }
        if !is_clean {
            // To drop it would be to wait for processes that nobody runs.
            mem::forget(scheduler);
        }
        let made = choices.borrow().made().to_vec();
        Outcome {
            failure,
            made,
            trace,
        }
    }
}

impl fmt::Debug for Sim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sim")
            .field("seed", &self.seed)
            .field("workers", &self.workers)
            .field("strategy", &self.strategy)
            .field("faults", &self.faults)
            .finish_non_exhaustive()
    }
}

/// What the scheduler leaves to chance.
struct Chance {
    choices: Rc<RefCell<Choices>>,
    faults: Faults,
}

impl Driver for Chance {
    fn choose(&mut self, _: &'static str, of: usize) -> usize {
        self.choices.borrow_mut().choose(of)
    }

    fn happens(&mut self, what: &'static str) -> bool {
        let per_mille = match what {
            "steal fails" => self.faults.steal_fails,
            "step panics" => self.faults.step_panics,
            "handler is late" => self.faults.handler_is_late,
            "handler drops" => self.faults.handler_drops,
            "handler fails" => self.faults.handler_fails,
            _ => 0,
        };
        self.choices.borrow_mut().happens(per_mille)
    }
}

/// The decisions of the next way after that one, if there is another.
fn successor(made: &[Decision]) -> Option<Vec<u32>> {
    let last = made.iter().rposition(|it| it.chose + 1 < it.of)?;
    let mut next: Vec<_> = made[..=last].iter().map(|it| it.chose).collect();
    next[last] += 1;
    Some(next)
}

/// What a panic says.
fn text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref().cloned())
        .unwrap_or_else(|| "a panic that says nothing".to_owned())
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn parse<N: std::str::FromStr>(name: &str, number: &str) -> N {
    let parsed = number.trim().parse();
    parsed.unwrap_or_else(|_| panic!("{name}: {number:?} is no number, or too large"))
}
