//! The scheduler of a run, from the side of its test.

use crate::choices::Choices;
use crate::failure::STUCK;
use crate::faults::{Faults, JUMP, LATE, MOVES};
use crate::network::Network;
use crate::plan::STALLS;
use crate::timers::SimClock;
use crate::trace::Trace;
use crate::watchdog;
use ganger_proc_api::{CommandError, ExitReason, Pid};
use ganger_sched::internal::sim::{self, Actor, Did, Machine, Note};
use ganger_sched::{Call, Handle, ProcessHandle};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// For how many moves a worker stands still at most.
const STALL: usize = 100;

/// A scheduler in a simulation, as its test sees it. Actors move only inside of the test's calls:
/// see [`settle`](Self::settle) and [`wait`](Self::wait).
///
/// It dereferences to the scheduler's [`Handle`]. A call that would block the thread panics,
/// because no other thread moves the actors. Such calls are a send that waits for room,
/// `Handle::stop`, `Call::wait`, and `ProcessHandle::wait` of a live process. The last three have
/// counterparts here.
pub struct Rt<'a> {
    handle: Handle,
    machine: &'a dyn Moves,
    pub(crate) clock: SimClock,
    pub(crate) network: Network,
    pub(crate) choices: Rc<RefCell<Choices>>,
    pub(crate) faults: Faults,
    pub(crate) shutdown: Shutdown,
    pub(crate) trace: RefCell<Trace>,
    /// Each worker and spare stands still until its move in this list.
    stalled: RefCell<Vec<u64>>,
    moves: Cell<u64>,
    /// After how many of the moves the promises could be checked.
    pub(crate) audits: Cell<u64>,
    /// For how long processes have waited behind blocking steps since a worker has last moved.
    kept: Cell<Duration>,
    limit: u64,
    seed: Option<u64>,
    /// Why the simulation has failed the run.
    pub(crate) given_up: RefCell<Option<String>>,
}

/// How far the shutdown has come.
#[derive(Default)]
pub(crate) struct Shutdown {
    /// The deadline, once it has begun.
    pub(crate) end: Cell<Option<Duration>>,
    pub(crate) is_halted: Cell<bool>,
}

/// The time of a turn by the clock of the simulation. So time passes even if some processes never
/// wait.
pub const TURN: Duration = Duration::from_micros(1);

/// A [`Machine`] without its lifetime.
pub(crate) trait Moves {
    fn with(&self, f: &mut dyn FnMut(&Machine<'_>));
}

impl Moves for Machine<'_> {
    fn with(&self, f: &mut dyn FnMut(&Machine<'_>)) {
        f(self);
    }
}

impl<'a> Rt<'a> {
    pub(crate) fn new(
        handle: &Handle,
        machine: &'a dyn Moves,
        choices: Rc<RefCell<Choices>>,
        network: Network,
        faults: Faults,
        limit: u64,
        seed: Option<u64>,
    ) -> Self {
        let rt = Self {
            handle: handle.clone(),
            machine,
            clock: network.clock.clone(),
            network,
            choices,
            faults,
            shutdown: Shutdown::default(),
            trace: RefCell::default(),
            stalled: RefCell::default(),
            moves: Cell::new(0),
            audits: Cell::new(0),
            kept: Cell::default(),
            limit,
            seed,
            given_up: RefCell::default(),
        };
        let slots = rt.machine(|machine| machine.slots());
        rt.stalled.borrow_mut().resize(slots, 0);
        rt
    }

    pub(crate) fn machine<R>(&self, f: impl FnOnce(&Machine<'_>) -> R) -> R {
        let (mut f, mut result) = (Some(f), None);
        self.machine.with(&mut |machine| {
            result = f.take().map(|f| f(machine));
        });
        result.unwrap_or_else(|| unreachable!("it is called once"))
    }

    /// A handle of the scheduler, for processes and other crates to keep, as of
    /// [`Scheduler::handle`](ganger_sched::Scheduler::handle).
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// The clock of the simulation, for processes and handlers to keep.
    #[must_use]
    pub fn clock(&self) -> SimClock {
        self.clock.clone()
    }

    /// Time since the simulation began.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.clock.now()
    }

    /// How many moves there have been.
    #[must_use]
    pub fn moves(&self) -> u64 {
        self.moves.get()
    }

    /// A number below `of`, decided by the seed.
    ///
    /// # Panics
    /// When `of` is zero.
    #[must_use]
    #[track_caller]
    pub fn choose(&self, of: usize) -> usize {
        assert!(of > 0, "there is nothing to choose from");
        self.choices.borrow_mut().choose("test", of)
    }

    /// Makes a decision of the simulation's own, among `of` alternatives.
    pub(crate) fn choose_for(&self, what: &'static str, of: usize) -> usize {
        self.choices.borrow_mut().choose(what, of)
    }

    /// Makes a move of the next actor. Returns `false` when no actor can move and no timer is set
    /// any more.
    ///
    /// # Panics
    /// When a promise of the scheduler is broken, or the run takes more moves than it may.
    #[track_caller]
    pub fn step(&self) -> bool {
        self.choices.borrow_mut().begin_move();
        self.inject();
        self.go_on_stopping();
        let Some(actor) = self.next_actor() else {
            self.choices.borrow_mut().end_move(None);
            return false;
        };
        let nth = self.moves.get();
        if nth >= self.limit {
            self.fail(format!(
                "no end after {nth} moves; see `Rt::settle` and `Sim::max_moves`"
            ));
        }
        self.moves.set(nth + 1);
        let did = self.advance(actor);
        self.choices.borrow_mut().end_move(process(did));
        self.trace.borrow_mut().add(actor, did, sim::noted());
        if let Did::Ran(_) = did {
            self.set_now(self.now().saturating_add(TURN));
        }
        let audited = self.machine(|machine| machine.audit());
        if let Some(pid) = self.machine(|machine| machine.overlooked()) {
            self.fail(format!("D1 is broken: the shutdown has overlooked {pid}"));
        }
        self.audits.set(self.audits.get() + u64::from(audited));
        self.assert_kept();
        true
    }

    fn advance(&self, actor: Actor) -> Did {
        match actor {
            Actor::Worker(worker) => {
                self.kept.set(Duration::ZERO);
                self.machine(|machine| machine.advance(worker))
            }
            Actor::Monitor => self.machine(|machine| machine.advance_monitor()),
            Actor::Timer => {
                self.clock.fire();
                Did::Nothing
            }
            Actor::Outside => Did::Nothing,
        }
    }

    /// Lets other actors move in the middle of a move, by chance, after a call of a step or of an
    /// `init`. None of their moves fails the run by a panic, because the running step would contain
    /// it.
    pub(crate) fn have_others_move(&self, call: &'static str, is_in_init: bool) {
        if !self.happens("others move", self.faults.others_move) {
            return;
        }
        self.choices.borrow_mut().enter();
        self.move_others(call, is_in_init);
        self.choices.borrow_mut().leave();
    }

    fn move_others(&self, call: &'static str, is_in_init: bool) {
        for nth in 0..=self.choose_for("moves of others", MOVES) {
            let mut able = self.able();
            able.retain(|actor| !self.is_stalled(*actor, self.moves.get()));
            if able.is_empty() || self.moves.get() >= self.limit {
                return;
            }
            if nth == 0 {
                let place = if is_in_init { " in an `init`" } else { "" };
                sim::tell(format!("others move after a `{call}`{place}:"));
            }
            let actor = able[self.pick(&able)];
            self.moves.set(self.moves.get() + 1);
            sim::within(actor, || watchdog::watch(self.seed, || self.advance(actor)));
            self.machine(|machine| machine.audit());
        }
    }

    /// Picks the actor of the next move, and returns its place.
    fn pick(&self, able: &[Actor]) -> usize {
        let ids: Vec<_> = able.iter().map(|actor| self.id(*actor)).collect();
        self.choices.borrow_mut().actor(&ids, self.moves.get())
    }

    /// Goes on until no actor can move and no timer is set any more: all live processes wait.
    ///
    /// A process that wakes itself again and again, by the clock for example, keeps this call from
    /// returning: the run fails after [`Sim::max_moves`](crate::Sim::max_moves). Use
    /// [`run_for`](Self::run_for) with such a process.
    ///
    /// # Panics
    /// As [`step`](Self::step).
    #[track_caller]
    pub fn settle(&self) {
        while self.step() {}
    }

    /// Goes on until `time` has passed.
    ///
    /// # Panics
    /// As [`step`](Self::step).
    #[track_caller]
    pub fn run_for(&self, time: Duration) {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        // Ordering: Relaxed, for both accesses: the same thread makes them.
        self.clock
            .after(time, move || over.store(true, Ordering::Relaxed));
        while !is_over.load(Ordering::Relaxed) && self.step() {}
    }

    /// Goes on until the process has ended; returns how it ended.
    ///
    /// # Panics
    /// When no actor can move and the process has not ended, and as [`step`](Self::step).
    #[track_caller]
    pub fn wait<M>(&self, process: ProcessHandle<M>) -> ExitReason {
        while !process.is_finished() {
            let pid = process.pid();
            if !self.step() {
                self.fail(format!("{pid} has not ended, and {STUCK}"));
            }
        }
        process.wait()
    }

    /// Calls a process, and goes on until the answer is here: the counterpart of `Call::wait`.
    ///
    /// # Errors
    /// As for [`Call::wait`].
    ///
    /// # Panics
    /// When no actor can move and no answer has come, and as [`step`](Self::step).
    #[track_caller]
    pub fn answer<T: Send + 'static>(&self, call: Call<T>) -> Result<T, CommandError> {
        let pid = call.pid();
        let answer = call.begin();
        while !answer.is_ready() {
            if !self.step() {
                let who = pid.map_or_else(|| "a call".to_owned(), |pid| pid.to_string());
                self.fail(format!("{who} has not answered, and {STUCK}"));
            }
        }
        answer.wait()
    }

    /// # Panics
    /// When a promise of the scheduler has been broken.
    #[track_caller]
    fn assert_kept(&self) {
        if let Some(violation) = sim::violation() {
            self.fail(violation);
        }
    }

    /// Fails the run, at the call in the test that can't go on.
    #[track_caller]
    pub(crate) fn fail(&self, why: String) -> ! {
        self.given_up.replace(Some(why.clone()));
        panic!("{why}");
    }

    /// Ends a run that has gone well.
    #[track_caller]
    pub(crate) fn finish(&self) {
        self.choices.borrow_mut().calm_down();
        if !self.machine(|machine| machine.is_over()) {
            self.stop(Duration::ZERO);
        }
        if let Some(left) = self.machine(|machine| machine.leftovers()) {
            self.fail(format!("the shutdown has left something behind: {left}"));
        }
        self.assert_kept();
        if let Some(difference) = self.machine(|machine| machine.difference()) {
            self.fail(format!(
                "the accounts do not agree with the counts: {difference}"
            ));
        }
    }

    /// Forgets all timers: their actions hold completers, and these hold the scheduler.
    pub(crate) fn forget_timers(&self) {
        self.clock.clear();
    }

    /// Lets faults happen before a move.
    #[track_caller]
    fn inject(&self) {
        if self.happens("clock jumps", self.faults.clock_jumps) {
            let micros = usize::try_from(JUMP.as_micros()).unwrap_or(usize::MAX);
            let jump = Duration::from_micros(self.choose_for("clock jumps by", micros) as u64);
            sim::tell(format!("fault: the clock jumps by {jump:?}"));
            self.set_now(self.now().saturating_add(jump));
        }
        if self.happens("place disappears", self.faults.place_disappears)
            && let Some(name) = self.lose_a_place()
        {
            sim::tell(format!("fault: {name} disappears for a while"));
        }
        self.machine(|machine| machine.interfere());
        self.trace.borrow_mut().add_between(sim::noted());
    }

    pub(crate) fn happens(&self, what: &'static str, per_mille: u32) -> bool {
        self.choices.borrow_mut().happens(what, per_mille)
    }

    /// Picks the actor that moves next. Lets time pass when none can move; returns `None` when no
    /// timer is set either.
    #[track_caller]
    fn next_actor(&self) -> Option<Actor> {
        loop {
            let able = self.able();
            let nth = self.moves.get();
            let mut awake = able.clone();
            awake.retain(|actor| !self.is_stalled(*actor, nth));
            if awake.is_empty() && !able.is_empty() {
                // No other actor can move, so the stalls end.
                self.stalled.borrow_mut().fill(0);
                awake = able;
            }
            if !awake.is_empty() {
                let actor = awake[self.pick(&awake)];
                if let Actor::Worker(worker) = actor
                    && awake.len() > 1
                    && self.happens(STALLS, self.faults.worker_stalls)
                {
                    let moves = self.choose_for("stalls for", STALL) as u64 + 1;
                    self.stalled.borrow_mut()[worker] = nth + moves;
                    let stalls = format!(
                        "fault: worker {worker} stands still until move {}",
                        nth + moves
                    );
                    self.trace
                        .borrow_mut()
                        .add_between(vec![Note::Told(stalls.into())]);
                    continue;
                }
                return Some(actor);
            }
            let due = [
                self.clock.next_due(),
                self.machine(|machine| machine.next_due()),
            ];
            let due = due.into_iter().flatten().min();
            self.assert_watched(due);
            let Some(due) = due else {
                let has_work = self.machine(|machine| machine.has_work());
                if has_work {
                    self.fail("G2 is broken: processes are ready, and everybody sleeps".into());
                }
                return None;
            };
            let due = due.saturating_add(self.stall(due));
            self.keep_waiting(due.saturating_sub(self.now()));
            self.set_now(due);
        }
    }

    /// How much later than `due` the machine wakes for its timer.
    fn stall(&self, due: Duration) -> Duration {
        let source = self.machine(|machine| machine.timer_due());
        let is_source = source.is_some_and(|source| source <= due);
        if !is_source || !self.happens("delivery stalls", self.faults.delivery_stalls) {
            return Duration::ZERO;
        }
        let micros = usize::try_from(LATE.as_micros()).unwrap_or(usize::MAX);
        let late = Duration::from_micros(self.choose_for("delivery stalls by", micros) as u64);
        sim::tell(format!("fault: a due timer is delivered {late:?} late"));
        late
    }

    /// Checks that the workers wake in time for a source; no actor can move before `due`.
    ///
    /// # Panics
    /// When a source has something due before, and all workers sleep longer.
    #[track_caller]
    fn assert_watched(&self, due: Option<Duration>) {
        let (sleeps, source) = self.machine(|machine| (machine.sleeps(), machine.timer_due()));
        if let Some(source) = source
            && sleeps
            && due.is_none_or(|due| due > source.max(self.now()))
        {
            self.fail(format!(
                "T1 is broken: something is due at {source:?}, and all workers sleep until {due:?}"
            ));
        }
    }

    /// Takes note that no actor moves for `time`.
    ///
    /// # Panics
    /// When processes have waited for too long behind blocking steps although a spare is free.
    #[track_caller]
    fn keep_waiting(&self, time: Duration) {
        let Some(patience) = self.machine(|machine| machine.patience()) else {
            return;
        };
        let kept = self.kept.get().saturating_add(time);
        self.kept.set(kept);
        if kept > patience {
            self.fail(format!(
                "G6 is broken: processes wait behind steps that block for {kept:?}, and a spare \
                 is left"
            ));
        }
    }

    fn able(&self) -> Vec<Actor> {
        let is_due = self.clock.next_due().is_some_and(|due| due <= self.now());
        self.machine(|machine| {
            let workers = (0..machine.workers()).filter(|&worker| machine.can_move(worker));
            let monitor = machine.monitor_can_move().then_some(Actor::Monitor);
            let timer = is_due.then_some(Actor::Timer);
            workers
                .map(Actor::Worker)
                .chain(monitor)
                .chain(timer)
                .collect()
        })
    }

    fn id(&self, actor: Actor) -> usize {
        let slots = self.stalled.borrow().len();
        match actor {
            Actor::Worker(worker) => worker,
            Actor::Monitor => slots,
            Actor::Timer => slots + 1,
            Actor::Outside => slots + 2,
        }
    }

    fn is_stalled(&self, actor: Actor, nth: u64) -> bool {
        matches!(actor, Actor::Worker(worker) if self.stalled.borrow()[worker] > nth)
    }

    fn set_now(&self, now: Duration) {
        let now = now.max(self.now());
        self.clock.set_now(now);
        self.machine(|machine| machine.set_now(now));
    }
}

/// The process of a move.
fn process(did: Did) -> Option<Pid> {
    match did {
        Did::Found(pid) | Did::TookUp(pid) | Did::Ran(pid) | Did::Blocked(pid) => Some(pid),
        _ => None,
    }
}

impl Deref for Rt<'_> {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.handle
    }
}

impl fmt::Debug for Rt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rt")
            .field("now", &self.now())
            .field("moves", &self.moves())
            .finish_non_exhaustive()
    }
}
