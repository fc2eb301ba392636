//! Single runs, and many.

use crate::choices::{Choices, Decision, Source};
use crate::failure::{self, DECISIONS, FailedRun, Failure, Outcome, SEED, STUCK};
use crate::faults::Faults;
use crate::network::{HOST, NODE, Network};
use crate::plan::Plan;
use crate::quiet::{self, quietly};
use crate::rt::Rt;
use crate::strategy::Strategy;
use crate::trace::Trace;
use ganger_sched::internal::here;
use ganger_sched::internal::sim::{self, Driver};
use ganger_sched::{Builder, Dump, Recorder, Scheduler};
use ganger_wait::watch::{self, Watching};
use std::any::Any;
use std::cell::RefCell;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use std::{env, fmt, mem};

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

    /// The same simulation with another seed.
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

    /// What goes wrong. Default: nothing.
    pub fn faults(self, faults: Faults) -> Self {
        Self { faults, ..self }
    }

    /// Sets the most moves: a run that has not ended by then fails. Default: a million.
    pub fn max_moves(self, max_moves: u64) -> Self {
        Self { max_moves, ..self }
    }

    /// The run fails when the scheduler's memory is not freed after it: either a lost value keeps
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
        let outcome = self.attempt(Source::Seed(self.seed), &mut once(test));
        self.report(outcome)
    }

    /// Runs `test` once with the decisions of another run. Beyond them the actor of the last move
    /// goes on while it can, and every other decision takes the first alternative.
    ///
    /// # Panics
    /// As [`run`](Self::run).
    #[track_caller]
    pub fn replay(&self, decisions: &[u32], test: impl FnOnce(&Rt<'_>)) -> Report {
        let outcome = self.attempt(Source::Given(decisions.to_vec()), &mut once(test));
        self.report(outcome)
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
        self.check_each(seeds, &test);
    }

    #[track_caller]
    fn check_each(&self, seeds: u64, test: &Test<'_>) {
        if let Some(given) = given() {
            self.replay(&given, test);
            return;
        }
        if let Some(seed) = variable(SEED) {
            let seed = parse(SEED, &seed);
            Self {
                seed,
                ..self.clone()
            }
            .run(test);
            return;
        }
        if let Err(failed) = self.try_each(seeds, test) {
            panic!("{failed}");
        }
    }

    /// As [`check_seeds`](Self::check_seeds), but returns the first failure and does not panic: for
    /// a search, or a test that has to fail. The environment changes nothing.
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
        self.try_each(seeds, &test)
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
        self.explore_each(max_runs, &test)
    }

    #[track_caller]
    fn explore_each(&self, max_runs: u64, test: &Test<'_>) -> Explored {
        let mut runs = 0;
        if let Some(given) = given() {
            self.replay(&given, test);
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

    /// The report of a failed run, and its simplest decisions.
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
    fn attempt(&self, source: Source, test: &mut dyn FnMut(&Rt<'_>)) -> Outcome {
        self.play(self.build(), source, test)
    }

    #[track_caller]
    fn attempt_quietly(&self, source: Source, test: &Test<'_>) -> Outcome {
        let built = self.build();
        quietly(|| self.play(built, source, &mut |rt| test(rt)))
    }

    /// The parts of a run.
    ///
    /// # Panics
    /// When the scheduler can't be built with these settings.
    #[track_caller]
    fn build(&self) -> (Network, Scheduler) {
        let network = match Network::new() {
            Ok(network) => network,
            Err(error) => panic!("the network can't be built: {error}"),
        };
        let builder = Scheduler::builder().node(NODE).host(HOST).quiet_failures();
        let builder = builder.router(Arc::new(network.way.clone()));
        let builder = match &self.set {
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

    fn play(
        &self,
        (network, scheduler): (Network, Scheduler),
        source: Source,
        test: &mut dyn FnMut(&Rt<'_>),
    ) -> Outcome {
        let seed = match source {
            Source::Seed(seed) => Some(seed),
            Source::Given(_) | Source::Plan(..) => None,
        };
        // The workers, the spares, the monitor and the timer.
        let choices = Choices::new(source, self.strategy, self.workers + self.spares + 2);
        let choices = Rc::new(RefCell::new(choices));
        let driver = Chance {
            choices: Rc::clone(&choices),
            faults: self.faults,
        };
        let (mut trace, mut moves, mut audits) = (Trace::default(), 0, 0);
        let (mut made, mut plan) = (Vec::new(), Plan::default());
        let (mut failure, mut recording) = (None, None);
        let mut is_clean = false;
        quiet::install();
        let started = sim::drive(Box::new(driver), || {
            sim::run(&scheduler, |handle, machine| {
                let host = Arc::new(handle.downgrade());
                if let Err(error) = network.router.local().add_host(handle.host_name(), host) {
                    unreachable!("there is no other host: {error}");
                }
                let choices = Rc::clone(&choices);
                let rt = Rt::new(
                    handle,
                    machine,
                    choices,
                    network,
                    self.faults,
                    self.max_moves,
                    seed,
                );
                let watching = here::watch();
                let run = || {
                    test(&rt);
                    rt.finish();
                };
                let others = |call, is_in_init| rt.have_others_move(call, is_in_init);
                let run = sim::interrupted_by(&others, || catch_unwind(AssertUnwindSafe(run)));
                failure = run.err().map(|panic| {
                    let why = text(&*panic);
                    let given_up = rt.given_up.take().is_some_and(|own| own == why);
                    let is_stuck = given_up && why.ends_with(STUCK);
                    Failure {
                        why,
                        place: quiet::place().unwrap_or_default(),
                        given_up,
                        stuck: is_stuck.then(|| what_is_left(&handle.dump(), &watching)),
                    }
                });
                if failure.is_some() && failure::trace_file().is_some() {
                    recording = handle.recording(Duration::MAX);
                }
                (trace, moves, audits) = (rt.trace.take(), rt.moves(), rt.audits.get());
                made = rt.choices.borrow().made().to_vec();
                plan = rt.choices.borrow().done().clone();
                // A failed scheduler may be in any state, and may not come to an end.
                let end = || quietly(|| catch_unwind(AssertUnwindSafe(|| rt.finish())));
                is_clean = failure.is_none() || end().is_ok();
                let forgotten = catch_unwind(AssertUnwindSafe(|| rt.forget_timers()));
                is_clean &= forgotten.is_ok();
            })
        });
        if let Err(error) = started {
            panic!("the scheduler can't be started: {error}");
        }
        let memory = scheduler.downgrade();
        if is_clean {
            drop(scheduler);
            if self.must_free && memory.upgrade().is_some() {
                failure = Some(Failure {
                    why: "the scheduler's memory is not freed".to_owned(),
                    place: String::new(),
                    given_up: false,
                    stuck: None,
                });
            }
        } else {
            // A drop would wait for processes, and no worker moves them any more.
            mem::forget(scheduler);
        }
        Outcome {
            failure,
            made,
            plan,
            moves,
            trace,
            audits,
            recording,
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

/// A test that runs many times. Without its own type, all tests of a program share the code around
/// their runs.
type Test<'a> = dyn Fn(&Rt<'_>) + 'a;

/// A test that runs once, for code that does not know its type.
fn once(test: impl FnOnce(&Rt<'_>)) -> impl FnMut(&Rt<'_>) {
    let mut test = Some(test);
    move |rt: &Rt<'_>| {
        if let Some(test) = test.take() {
            test(rt);
        }
    }
}

/// The scheduler's decisions by chance.
struct Chance {
    choices: Rc<RefCell<Choices>>,
    faults: Faults,
}

impl Driver for Chance {
    fn choose(&mut self, what: &'static str, of: usize) -> usize {
        self.choices.borrow_mut().choose(what, of)
    }

    fn happens(&mut self, what: &'static str) -> bool {
        let per_mille = match what {
            "steal fails" => self.faults.steal_fails,
            "step panics" => self.faults.step_panics,
            "handler is late" => self.faults.handler_is_late,
            "handler drops" => self.faults.handler_drops,
            "handler fails" => self.faults.handler_fails,
            "handler answers twice" => self.faults.handler_answers_twice,
            "process is upgraded" => self.faults.process_is_upgraded,
            "upgrade fails" => self.faults.upgrade_fails,
            "others act" => self.faults.others_act,
            "worker wakes in vain" => self.faults.worker_wakes_in_vain,
            "timer waiter wakes early" => self.faults.timer_waiter_wakes_early,
            "step blocks" => self.faults.step_blocks,
            "envelope is refused" => self.faults.envelope_is_refused,
            "envelope is late" => self.faults.envelope_is_late,
            "process is terminated" => self.faults.process_is_terminated,
            "process is cancelled" => self.faults.process_is_cancelled,
            "shutdown begins" => self.faults.shutdown_begins,
            "shutdown is forced" => self.faults.shutdown_is_forced,
            _ => 0,
        };
        let happens = self.choices.borrow_mut().happens(what, per_mille);
        if happens && what == "steal fails" {
            sim::tell("fault: the steal fails");
        }
        happens
    }
}

/// The decisions of the next way, if another way exists.
fn successor(made: &[Decision]) -> Option<Vec<u32>> {
    let last = made.iter().rposition(|it| it.chose + 1 < it.of)?;
    let mut next: Vec<_> = made[..=last].iter().map(|it| it.chose).collect();
    next[last] += 1;
    Some(next)
}

/// The text of a panic.
fn text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref().cloned())
        .unwrap_or_else(|| "non-string panic payload".to_owned())
}

/// The decisions in the environment, if it has any.
fn given() -> Option<Vec<u32>> {
    let decisions = variable(DECISIONS)?;
    let numbers = decisions.split(',');
    Some(numbers.map(|number| parse(DECISIONS, number)).collect())
}

fn variable(name: &str) -> Option<String> {
    let value = env::var_os(name).filter(|value| !value.is_empty())?;
    let text = value.into_string();
    Some(text.unwrap_or_else(|value| panic!("invalid {name}: {} is not a number", value.display())))
}

fn parse<N: std::str::FromStr>(name: &str, number: &str) -> N {
    let parsed = number.trim().parse();
    parsed.unwrap_or_else(|_| panic!("invalid {name}: {number:?} is not a number, or too large"))
}

/// The remaining processes, and their waits for locks or channels.
fn what_is_left(dump: &Dump, watching: &Watching) -> String {
    let mut left = dump.to_string();
    let waits = watching.own_waits();
    for cycle in watch::cycles(&waits) {
        left += "\n\nThese wait for each other:";
        cycle.iter().for_each(|it| left += &format!("\n  {it}"));
    }
    if !waits.is_empty() {
        left += "\n\nWaits:";
        waits.iter().for_each(|it| left += &format!("\n  {it}"));
    }
    left
}
