//! Single runs, and many.

use crate::chance::Chance;
use crate::choices::{Choices, Decision, Source};
use crate::environment::{given, parse, variable};
use crate::failure::{self, FailedRun, Failure, Outcome, SEED, STUCK};
use crate::faults::Faults;
use crate::left::what_is_left;
use crate::lives::Lives;
use crate::moves::Core;
use crate::network::{HOST, NODE, Network};
use crate::playable::{Machines, Test, of_one, of_several, once};
use crate::quiet::{self, quietly};
use crate::rt::Rt;
use crate::strategy::Strategy;
use crate::trace::Trace;
use crate::world::World;
use ganger_proc_api::NodeName;
use ganger_sched::internal::here;
use ganger_sched::internal::sim::{self, Home};
use ganger_sched::{Builder, Recorder, Scheduler, WeakHandle};
use std::any::Any;
use std::cell::RefCell;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, mem};

/// The bytes of the recorder of a run with a file for its trace.
const RECORDED: usize = 4 << 20;

/// A simulation: a scheduler whose workers are no threads, and the decisions of a seed.
///
/// ```
/// use ganger_proc_api::{BoxError, Context, Events, ExitReason, Process, StepOutput, StepResult};
/// use ganger_sim::Sim;
///
/// struct Answer;
/// impl Process for Answer {
///     fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
///         out.done(42);
///         Ok(())
///     }
/// }
///
/// let report = Sim::new(1).workers(4).run(|rt| {
///     let answer = rt.spawn(Answer).unwrap();
///     assert!(matches!(rt.wait(answer), ExitReason::Done(it) if it.as_u64() == Some(42)));
/// });
/// assert!(report.moves > 0);
/// ```
#[must_use = "a simulation does nothing until it is run"]
#[derive(Clone)]
pub struct Sim {
    seed: u64,
    workers: usize,
    spares: usize,
    strategy: Strategy,
    faults: Faults,
    max_moves: u64,
    must_free: bool,
    set: Option<Arc<dyn Fn(Builder) -> Builder + Send + Sync>>,
}

/// A run without a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// How many moves there were.
    pub moves: u64,
    /// The moves.
    pub trace: Trace,
    /// The decisions of the run, for [`Sim::replay`].
    pub decisions: Vec<u32>,
    /// After how many moves all promises could be checked: the moves after which no worker was
    /// about to search or to wake another worker.
    pub audits: u64,
}

/// The result of [`Sim::explore`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explored {
    /// How many runs there were.
    pub runs: u64,
    /// Whether the runs are all possible runs.
    pub is_complete: bool,
}

impl Sim {
    /// Makes a simulation with this seed, two workers, and without faults.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            workers: 2,
            spares: 0,
            strategy: Strategy::default(),
            faults: Faults::default(),
            max_moves: 1_000_000,
            must_free: false,
            set: None,
        }
    }

    /// Returns the same simulation with another seed.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Sets the number of workers. Default: 2.
    pub fn workers(self, workers: usize) -> Self {
        Self { workers, ..self }
    }

    /// Sets the most spares, which take the places of workers whose steps block. Default: 0.
    ///
    /// An idle spare ends after [`Builder::keep_spares`]; [`Rt::settle`] goes on until then.
    pub fn spares(self, spares: usize) -> Self {
        Self { spares, ..self }
    }

    /// Sets how the simulation picks the next actor. Default: [`Strategy::Random`].
    pub fn strategy(self, strategy: Strategy) -> Self {
        Self { strategy, ..self }
    }

    /// Sets what goes wrong. Default: nothing.
    pub fn faults(self, faults: Faults) -> Self {
        Self { faults, ..self }
    }

    /// Sets the most moves: a run that has not ended by then fails. Default: a million.
    pub fn max_moves(self, max_moves: u64) -> Self {
        Self { max_moves, ..self }
    }

    /// Fails the run when the scheduler's memory is not freed after it: either a lost value keeps
    /// it alive, or the test has kept a handle or a completer itself.
    pub fn must_free(self) -> Self {
        Self {
            must_free: true,
            ..self
        }
    }

    /// Sets the scheduler's settings: `set` changes its builder. The simulation always sets the
    /// numbers of workers and spares, and gives the scheduler timers by its own clock.
    pub fn builder(self, set: impl Fn(Builder) -> Builder + Send + Sync + 'static) -> Self {
        let set = Some(Arc::new(set) as Arc<_>);
        Self { set, ..self }
    }

    /// Runs `test` once, with the seed.
    ///
    /// When `test` returns, the scheduler is stopped: live processes are cancelled and, if they do
    /// not end, terminated.
    ///
    /// # Panics
    /// When `test` panics, or a promise is broken. The text has the moves before the panic.
    #[track_caller]
    pub fn run(&self, test: impl FnOnce(&Rt<'_>)) -> Report {
        self.run_one(Source::Seed(self.seed), &of_one(once(test)))
    }

    /// Runs `test` once with the decisions of another run. Beyond them the actor of the last move
    /// goes on while it can, and every other decision takes the first alternative.
    ///
    /// # Panics
    /// As [`run`](Self::run).
    #[track_caller]
    pub fn replay(&self, decisions: &[u32], test: impl FnOnce(&Rt<'_>)) -> Report {
        let source = Source::Given(decisions.to_vec());
        self.run_one(source, &of_one(once(test)))
    }

    /// Runs `test` with `seeds` seeds, with two workers and [some faults](Faults::some): see
    /// [`check_seeds`](Self::check_seeds).
    ///
    /// # Panics
    /// As `check_seeds`.
    #[track_caller]
    pub fn check(seeds: u64, test: impl Fn(&Rt<'_>)) {
        Self::new(0).faults(Faults::some()).check_seeds(seeds, test);
    }

    /// Runs `test` with `seeds` seeds, from this simulation's seed on.
    ///
    /// With `GANGER_SIM_SEED` in the environment only this seed runs, with `GANGER_SIM_DECISIONS`
    /// only these decisions. The variables hold for every check of the same program.
    ///
    /// # Panics
    /// When a run fails. The text has the lines that repeat the run, and the last moves of the
    /// simplest run that fails like it. The seed is written to standard error at once, because the
    /// search for the simplest run may take a while. When the same decisions do not fail again, the
    /// text reports it instead.
    #[track_caller]
    pub fn check_seeds(&self, seeds: u64, test: impl Fn(&Rt<'_>)) {
        self.check_each(seeds, &of_one(test));
    }

    /// Runs `test` once with several machines, which it starts itself, with the seed.
    ///
    /// When `test` returns, the machines are stopped, as by [`run`](Self::run).
    ///
    /// # Panics
    /// As [`run`](Self::run).
    #[track_caller]
    pub fn run_world(&self, test: impl Fn(&World<'_>)) -> Report {
        self.run_one(Source::Seed(self.seed), &of_several(test))
    }

    /// Replays a run as [`replay`](Self::replay) does, with several machines.
    ///
    /// # Panics
    /// As [`run`](Self::run).
    #[track_caller]
    pub fn replay_world(&self, decisions: &[u32], test: impl Fn(&World<'_>)) -> Report {
        self.run_one(Source::Given(decisions.to_vec()), &of_several(test))
    }

    /// Checks seeds as [`check_seeds`](Self::check_seeds) does, with several machines: see
    /// [`World`].
    ///
    /// # Panics
    /// As [`check_seeds`](Self::check_seeds).
    #[track_caller]
    pub fn check_worlds(&self, seeds: u64, test: impl Fn(&World<'_>)) {
        self.check_each(seeds, &of_several(test));
    }

    /// Tries seeds as [`try_seeds`](Self::try_seeds) does, with several machines.
    ///
    /// # Errors
    /// The first failed run.
    #[track_caller]
    pub fn try_worlds(&self, seeds: u64, test: impl Fn(&World<'_>)) -> Result<(), FailedRun> {
        self.try_each(seeds, &of_several(test))
    }

    #[track_caller]
    fn run_one(&self, source: Source, test: &Test<'_>) -> Report {
        let outcome = self.play(self.first(test), source, test);
        self.report(outcome)
    }

    #[track_caller]
    fn check_each(&self, seeds: u64, test: &Test<'_>) {
        if let Some(given) = given() {
            self.run_one(Source::Given(given), test);
            return;
        }
        if let Some(seed) = variable(SEED) {
            self.run_one(Source::Seed(parse(SEED, &seed)), test);
            return;
        }
        if let Err(failed) = self.try_each(seeds, test) {
            panic!("{failed}");
        }
    }

    /// Checks seeds as [`check_seeds`](Self::check_seeds) does, but returns the first failure
    /// without a panic: for a search, or a test of a failure. The environment changes nothing.
    ///
    /// ```
    /// use ganger_proc_api::actor_fn;
    /// use ganger_sim::Sim;
    ///
    /// let failed = Sim::new(0).try_seeds(100, |rt| {
    ///     let first = rt.spawn(actor_fn(|_, number: u64, out| {
    ///         out.done(number);
    ///         Ok(())
    ///     }));
    ///     let first = first.unwrap();
    ///     let sender = |number| {
    ///         let first = first.address().clone();
    ///         rt.spawn(actor_fn(move |_, (): (), _| Ok(first.send(number)?))).unwrap()
    ///     };
    ///     let (one, two) = (sender(1), sender(2));
    ///     one.send(()).unwrap();
    ///     two.send(()).unwrap();
    ///     let result = rt.wait(first).into_result().unwrap();
    ///     assert_eq!(result.as_u64(), Some(1), "the second sender was faster");
    /// });
    /// assert!(failed.unwrap_err().to_string().contains("the second sender was faster"));
    /// ```
    ///
    /// # Errors
    /// The first failed run.
    #[track_caller]
    pub fn try_seeds(&self, seeds: u64, test: impl Fn(&Rt<'_>)) -> Result<(), FailedRun> {
        self.try_each(seeds, &of_one(test))
    }

    #[track_caller]
    fn try_each(&self, seeds: u64, test: &Test<'_>) -> Result<(), FailedRun> {
        for nth in 0..seeds {
            let seed = self.seed.wrapping_add(nth);
            let mut outcome = self.attempt_quietly(Source::Seed(seed), test);
            if let Some(failure) = outcome.failure.clone() {
                let (text, decisions) = self.failed(Some(seed), &mut outcome, &failure, test);
                return Err(FailedRun {
                    seed,
                    decisions,
                    text,
                });
            }
        }
        Ok(())
    }

    /// Runs `test` in every possible way, or in the first `max_runs` ways. Meant for small cases
    /// without faults, because the number of ways grows fast.
    ///
    /// With `GANGER_SIM_DECISIONS` in the environment only these decisions run.
    ///
    /// # Panics
    /// When a run fails, as [`check_seeds`](Self::check_seeds).
    #[track_caller]
    pub fn explore(&self, max_runs: u64, test: impl Fn(&Rt<'_>)) -> Explored {
        self.explore_each(max_runs, &of_one(test))
    }

    #[track_caller]
    fn explore_each(&self, max_runs: u64, test: &Test<'_>) -> Explored {
        let mut runs = 0;
        if let Some(given) = given() {
            self.run_one(Source::Given(given), test);
            let is_complete = false;
            return Explored {
                runs: 1,
                is_complete,
            };
        }
        let mut next = Some(Vec::new());
        while let Some(given) = next.filter(|_| runs < max_runs) {
            runs += 1;
            let mut outcome = self.attempt_quietly(Source::Given(given), test);
            if let Some(failure) = outcome.failure.clone() {
                let (text, _) = self.failed(None, &mut outcome, &failure, test);
                panic!("{text}");
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

    /// Returns the report of a failed run, and its simplest decisions.
    fn failed(
        &self,
        seed: Option<u64>,
        outcome: &mut Outcome,
        failure: &Failure,
        test: &Test<'_>,
    ) -> (String, Vec<u32>) {
        // Straight to standard error: the test harness would capture `eprintln!` until the end.
        let announce = |text: &str| drop(writeln!(io::stderr(), "{text}"));
        failure::report(seed, outcome, failure, announce, |source, most| {
            let short = self.clone().max_moves(self.max_moves.min(most));
            short.attempt_quietly(source, test)
        })
    }

    #[track_caller]
    fn report(&self, mut outcome: Outcome) -> Report {
        if let Some(failure) = outcome.failure.clone() {
            let shown = outcome.shown();
            panic!("the run fails: {failure}\n\n{shown}");
        }
        Report {
            decisions: outcome.decisions(),
            moves: outcome.moves,
            trace: outcome.trace,
            audits: outcome.audits,
        }
    }

    #[track_caller]
    fn attempt_quietly(&self, source: Source, test: &Test<'_>) -> Outcome {
        let first = self.first(test);
        quietly(|| self.play(first, source, test))
    }

    /// Builds the parts of a machine: of the only one of a run, or of one with a name.
    ///
    /// # Panics
    /// When the scheduler can't be built with these settings.
    #[track_caller]
    fn build(
        &self,
        name: Option<NodeName>,
        set: Option<&dyn Fn(Builder) -> Builder>,
    ) -> (Network, Scheduler) {
        let node = name.map_or(NODE, NodeName::as_str);
        let network = match Network::new(node) {
            Ok(network) => network,
            Err(error) => panic!("the network can't be built: {error}"),
        };
        let builder = Scheduler::builder().node(node).host(HOST).quiet_failures();
        let builder = builder.router(Arc::new(network.way.clone()));
        let builder = match &self.set {
            Some(set) => set(builder),
            None => builder,
        };
        let builder = match set {
            Some(set) => set(builder),
            None => builder,
        };
        let builder = builder.workers(self.workers).max_spares(self.spares);
        let builder = match failure::trace_file() {
            Some(_) => builder.record(Recorder::new().bytes(RECORDED)),
            None => builder,
        };
        let scheduler = match builder.check_promises().build() {
            Ok(scheduler) => scheduler,
            Err(error) => panic!("the scheduler can't be built: {error}"),
        };
        (network, scheduler)
    }

    /// Builds the machine of a run with a single machine.
    #[track_caller]
    fn first(&self, test: &Test<'_>) -> Option<(Network, Scheduler)> {
        match test.machines {
            Machines::One => Some(self.build(None, None)),
            Machines::Several => None,
        }
    }

    fn play(
        &self,
        first: Option<(Network, Scheduler)>,
        source: Source,
        test: &Test<'_>,
    ) -> Outcome {
        let seed = match source {
            Source::Seed(seed) => Some(seed),
            Source::Given(_) | Source::Plan(..) => None,
        };
        // The workers, the spares, the monitor and the timer.
        let choices = Choices::new(source, self.strategy, self.workers + self.spares + 2);
        let choices = Rc::new(RefCell::new(choices));
        let build = |name, set: Option<&dyn Fn(Builder) -> Builder>| self.build(Some(name), set);
        let driver = Chance {
            choices: Rc::clone(&choices),
            faults: self.faults,
        };
        quiet::install();
        let (mut outcome, schedulers, is_clean) = sim::drive(Box::new(driver), || {
            let homes = Lives::new();
            let core = Rc::new(Core::new(
                &homes,
                &build,
                choices,
                (self.faults, self.max_moves, seed),
            ));
            if let Some(first) = first {
                core.add("", first);
            }
            let played = play_all(&core, test);
            core.leave();
            drop(core);
            homes.into_items().into_iter().for_each(Home::end);
            played
        });
        let memories: Vec<_> = schedulers.iter().map(|it| it.downgrade()).collect();
        if is_clean {
            drop(schedulers);
            let is_left = |memory: &WeakHandle| memory.upgrade().is_some();
            if self.must_free && memories.iter().any(is_left) {
                outcome.failure = Some(Failure {
                    why: "the scheduler's memory is not freed".to_owned(),
                    place: String::new(),
                    given_up: false,
                    stuck: None,
                });
            }
        } else {
            // A drop would wait for processes, and no worker moves them any more.
            schedulers.into_iter().for_each(mem::forget);
        }
        outcome
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

fn play_all(core: &Rc<Core<'_>>, test: &Test<'_>) -> (Outcome, Vec<Scheduler>, bool) {
    let watching = here::watch();
    let run = || {
        (test.run)(core);
        core.finish();
    };
    let others = |call, is_in_init| core.have_others_move(call, is_in_init);
    let run = sim::interrupted_by(&others, || catch_unwind(AssertUnwindSafe(run)));
    let failure = run.err().map(|panic| {
        let why = text(&*panic);
        let given_up = core.given_up.take().is_some_and(|own| own == why);
        let is_stuck = given_up && why.ends_with(STUCK);
        let dumps = || core.seats().into_iter().map(|it| it.handle.dump());
        Failure {
            why,
            place: quiet::place().unwrap_or_default(),
            given_up,
            stuck: is_stuck.then(|| what_is_left(dumps(), &watching)),
        }
    });
    let mut recording = None;
    if failure.is_some() && failure::trace_file().is_some() {
        let seats = core.seats();
        recording = seats
            .first()
            .and_then(|it| it.handle.recording(Duration::MAX));
    }
    let outcome = Outcome {
        trace: core.trace.take(),
        moves: core.moves(),
        audits: core.audits.get(),
        made: core.choices.borrow().made().to_vec(),
        plan: core.choices.borrow().done().clone(),
        failure,
        recording,
    };
    // A failed scheduler may be in any state, and may not come to an end.
    let end = || quietly(|| catch_unwind(AssertUnwindSafe(|| core.finish())));
    let mut is_clean = outcome.failure.is_none() || end().is_ok();
    let forgotten = catch_unwind(AssertUnwindSafe(|| core.forget_timers()));
    is_clean &= forgotten.is_ok();
    (outcome, core.take_schedulers(), is_clean)
}

/// Returns the decisions of the next way, if another way exists.
fn successor(made: &[Decision]) -> Option<Vec<u32>> {
    let last = made.iter().rposition(|it| it.chose + 1 < it.of)?;
    let mut next: Vec<_> = made[..=last].iter().map(|it| it.chose).collect();
    next[last] += 1;
    Some(next)
}

/// Returns the text of a panic.
fn text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref().cloned())
        .unwrap_or_else(|| "non-string panic payload".to_owned())
}
