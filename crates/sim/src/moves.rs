//! The moves of a run: the choice of the next move, the time, the checks.
//!
//! A run has a single machine, or several machines, which start, crash and start again. Machines
//! take turns: each actor of each machine is an alternative of the same decision. Time passes for
//! all at once.

use crate::choices::Choices;
use crate::faults::{Faults, JUMP, LATE, MOVES};
use crate::lives::Lives;
use crate::network::Network;
use crate::plan::STALLS;
use crate::seat::Seat;
use crate::timers::SimClock;
use crate::trace::{Trace, of};
use crate::watchdog;
use ganger_proc_api::{NodeName, Pid};
use ganger_sched::internal::carrier::{Carrier, Change};
use ganger_sched::internal::sim::{self, Actor, Did, Home, Note};
use ganger_sched::{Builder, Scheduler};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// For how many moves a worker stands still at most.
const STALL: usize = 100;

/// The time of a turn by the clock of the simulation. So time passes even if some processes never
/// wait.
pub const TURN: Duration = Duration::from_micros(1);

/// Builds the parts of a machine: with this name, and further settings.
pub(crate) type Build<'a> =
    dyn Fn(NodeName, Option<&dyn Fn(Builder) -> Builder>) -> (Network, Scheduler) + 'a;

/// The schedulers of a run, with the settings of each.
pub(crate) struct Core<'a> {
    homes: &'a Lives<Home>,
    /// Builds the parts of a machine with a name.
    pub(crate) build: &'a Build<'a>,
    /// In the order of their starts. A crashed machine keeps its place.
    seats: RefCell<Vec<Rc<Seat<'a>>>>,
    schedulers: RefCell<Vec<Scheduler>>,
    /// The clock of the simulation, and the timers of the test of several machines.
    pub(crate) clock: SimClock,
    carriers: RefCell<Vec<Rc<dyn Carrier>>>,
    pub(crate) choices: Rc<RefCell<Choices>>,
    pub(crate) faults: Faults,
    pub(crate) trace: RefCell<Trace>,
    moves: Cell<u64>,
    /// After how many of the moves the promises could be checked.
    pub(crate) audits: Cell<u64>,
    /// The moving machine.
    present: RefCell<Option<Rc<Seat<'a>>>>,
    limit: u64,
    seed: Option<u64>,
    /// Why the simulation has failed the run.
    pub(crate) given_up: RefCell<Option<String>>,
}

/// An actor, and its machine. Without a machine, what carries between machines, or a timer of the
/// test.
pub(crate) type Actors<'a> = (Option<Rc<Seat<'a>>>, Actor);

impl<'a> Core<'a> {
    pub(crate) fn new(
        homes: &'a Lives<Home>,
        build: &'a Build<'a>,
        choices: Rc<RefCell<Choices>>,
        (faults, limit, seed): (Faults, u64, Option<u64>),
    ) -> Self {
        Self {
            homes,
            build,
            seats: RefCell::default(),
            schedulers: RefCell::default(),
            clock: SimClock::default(),
            carriers: RefCell::default(),
            choices,
            faults,
            trace: RefCell::default(),
            moves: Cell::new(0),
            audits: Cell::new(0),
            present: RefCell::default(),
            limit,
            seed,
            given_up: RefCell::default(),
        }
    }

    /// Adds a machine, with this scheduler.
    ///
    /// # Panics
    /// When the scheduler can't be started.
    #[track_caller]
    pub(crate) fn add(
        &self,
        name: &'static str,
        (network, scheduler): (Network, Scheduler),
    ) -> Rc<Seat<'a>> {
        let home = match Home::new(&scheduler) {
            Ok(home) => self.homes.add(home),
            Err(error) => panic!("the scheduler can't be started: {error}"),
        };
        let machine = home.start(self.now());
        let host = Arc::new(scheduler.downgrade());
        let local = network.router.local();
        if let Err(error) = local.add_host(scheduler.host_name(), host) {
            unreachable!("there is no other host: {error}");
        }
        let seats = self.seats.borrow();
        // The first number behind the numbers of the first machine belongs to the carriers.
        let ids = seats.iter().map(|seat| seat.ids()).sum::<usize>();
        let first = ids + usize::from(ids > 0);
        drop(seats);
        let seat = Rc::new(Seat::new(name, &scheduler, machine, network, first));
        seat.set_now(self.now());
        self.seats.borrow_mut().push(Rc::clone(&seat));
        self.schedulers.borrow_mut().push(scheduler);
        seat
    }

    pub(crate) fn seats(&self) -> Vec<Rc<Seat<'a>>> {
        self.seats.borrow().clone()
    }

    /// Has the workers of all machines leave.
    pub(crate) fn leave(&self) {
        self.seats().iter().for_each(|seat| seat.machine.leave());
    }

    /// Takes the schedulers out, for the end of the run.
    pub(crate) fn take_schedulers(&self) -> Vec<Scheduler> {
        self.schedulers.take()
    }

    /// Returns the machines that may move at this moment.
    fn on(&self) -> Vec<Rc<Seat<'a>>> {
        let seats = self.seats.borrow();
        seats.iter().filter(|it| it.is_on()).cloned().collect()
    }

    pub(crate) fn add_carrier(&self, carrier: Rc<dyn Carrier>) {
        carrier.set_now(self.now());
        for seat in self.seats().iter().filter(|seat| seat.lives()) {
            carrier.changed(Change::Started(seat.name));
        }
        self.carriers.borrow_mut().push(carrier);
    }

    pub(crate) fn tell_carriers(&self, change: Change<'_>) {
        for carrier in &*self.carriers.borrow() {
            carrier.changed(change);
        }
    }

    /// Has the machine stand still until then.
    pub(crate) fn pause(&self, seat: &Seat<'a>, until: Duration) {
        seat.pause(Some(until));
        self.tell_carriers(Change::Paused(seat.name));
    }

    /// Has the machine go on, if it stands still.
    pub(crate) fn resume(&self, seat: &Seat<'a>) {
        if seat.take_pause() {
            self.tell_carriers(Change::Resumed(seat.name));
        }
    }

    /// Adds the notes to the trace.
    pub(crate) fn add_notes(&self) {
        self.trace.borrow_mut().add_between(sim::noted());
    }

    /// Returns the time since the simulation began.
    pub(crate) fn now(&self) -> Duration {
        self.clock.now()
    }

    pub(crate) fn moves(&self) -> u64 {
        self.moves.get()
    }

    /// Makes a decision of the simulation's own, among `of` alternatives.
    pub(crate) fn choose_for(&self, what: &'static str, of: usize) -> usize {
        self.choices.borrow_mut().choose(what, of)
    }

    pub(crate) fn happens(&self, what: &'static str, per_mille: u32) -> bool {
        self.choices.borrow_mut().happens(what, per_mille)
    }

    /// Calls `f` as on a thread of the machine.
    pub(crate) fn enter<R>(&self, seat: &Rc<Seat<'a>>, f: impl FnOnce() -> R) -> R {
        let before = self.present.replace(Some(Rc::clone(seat)));
        let result = seat.enter(f);
        if let Some(before) = &before {
            before.machine.be_present();
        }
        self.present.replace(before);
        result
    }

    /// Makes a move of the next actor. Returns `false` when no actor can move and no timer is set
    /// any more.
    #[track_caller]
    pub(crate) fn step(&self) -> bool {
        self.choices.borrow_mut().begin_move();
        self.inject();
        for seat in self.on() {
            self.go_on_stopping(&seat);
        }
        let Some((seat, actor)) = self.next_actor() else {
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
        let (at, did) = self.advance(seat.as_ref(), actor);
        self.choices.borrow_mut().end_move(process(did));
        self.trace.borrow_mut().add(at, actor, did, sim::noted());
        if let Did::Ran(_) = did {
            self.set_now(self.now().saturating_add(TURN));
        }
        if let Some(seat) = seat {
            let audited = seat.machine.audit();
            if let Some(pid) = seat.machine.overlooked() {
                self.fail(format!("D1 is broken: the shutdown has overlooked {pid}"));
            }
            self.audits.set(self.audits.get() + u64::from(audited));
        }
        self.assert_kept();
        true
    }

    /// Makes the actor's move. Returns the name of its machine as well.
    fn advance(&self, seat: Option<&Rc<Seat<'a>>>, actor: Actor) -> (&'static str, Did) {
        let Some(seat) = seat else {
            return self.carry();
        };
        let machine = &seat.machine;
        let did = self.enter(seat, || match actor {
            Actor::Worker(worker) => {
                seat.kept.set(Duration::ZERO);
                machine.advance(worker)
            }
            Actor::Monitor => machine.advance_monitor(),
            Actor::Timer => {
                seat.clock.fire();
                Did::Nothing
            }
            _ => Did::Nothing,
        });
        (seat.name, did)
    }

    /// Carries out what is due between the machines, or by the clock of the test.
    fn carry(&self) -> (&'static str, Did) {
        let now = self.now();
        if self.clock.next_due().is_some_and(|due| due <= now) {
            self.clock.fire();
            return ("", Did::Nothing);
        }
        let carriers = self.carriers.borrow().clone();
        let arrival = carriers.iter().find_map(|carrier| {
            let is_due = carrier.next_due().is_some_and(|due| due <= now);
            is_due.then(|| carrier.take_due()).flatten()
        });
        let Some(arrival) = arrival else {
            return ("", Did::Nothing);
        };
        let seats = self.seats();
        let to = seats.iter().rev().find(|seat| *seat.name == *arrival.to);
        match to.filter(|seat| seat.lives()) {
            Some(seat) => {
                self.enter(seat, arrival.act);
                (seat.name, Did::Nothing)
            }
            None => ("", Did::Nothing),
        }
    }

    /// Returns the next time at which something is due between the machines, or by the clock of the
    /// test.
    fn carriers_due(&self) -> Option<Duration> {
        let carriers = self.carriers.borrow();
        let carried = carriers.iter().filter_map(|carrier| carrier.next_due());
        carried.chain(self.clock.next_due()).min()
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
            able.retain(|actor| !is_stalled(actor, self.moves.get()));
            if able.is_empty() || self.moves.get() >= self.limit {
                return;
            }
            if nth == 0 {
                let place = if is_in_init { " in an `init`" } else { "" };
                sim::tell(format!("others move after a `{call}`{place}:"));
            }
            let (seat, actor) = able.swap_remove(self.pick(&able));
            self.moves.set(self.moves.get() + 1);
            let at = seat.as_ref().map_or("", |seat| seat.name);
            sim::within(at, actor, || {
                watchdog::watch(self.seed, || self.advance(seat.as_ref(), actor).1)
            });
            if let Some(seat) = seat {
                seat.machine.audit();
            }
        }
    }

    /// Picks the actor of the next move, and returns its place.
    fn pick(&self, able: &[Actors<'a>]) -> usize {
        let ids: Vec<_> = able.iter().map(|actor| self.id(actor)).collect();
        self.choices.borrow_mut().actor(&ids, self.moves.get())
    }

    fn id(&self, (seat, actor): &Actors<'a>) -> usize {
        match seat {
            Some(seat) => seat.id(*actor),
            None => self.seats.borrow().first().map_or(0, |first| first.ids()),
        }
    }

    /// Asserts that the scheduler has kept its promises.
    ///
    /// # Panics
    /// When a promise of the scheduler has been broken.
    #[track_caller]
    pub(crate) fn assert_kept(&self) {
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

    /// Ends a run without a failure. Drops the remains of the crashed machines' processes: nothing
    /// looks any more.
    #[track_caller]
    pub(crate) fn finish(&self) {
        self.choices.borrow_mut().calm_down();
        for seat in self.seats() {
            self.resume(&seat);
            seat.set_crashed(false);
            seat.set_now(self.now());
            if !seat.machine.is_over() {
                self.stop(&seat, Duration::ZERO);
            }
        }
        for seat in self.seats() {
            if let Some(left) = seat.machine.leftovers() {
                self.fail(format!("the shutdown has left something behind: {left}"));
            }
        }
        self.assert_kept();
        for seat in self.seats() {
            if let Some(difference) = seat.machine.difference() {
                self.fail(format!(
                    "the accounts do not agree with the counts: {difference}"
                ));
            }
        }
    }

    /// Forgets all timers: their actions hold completers, and these hold the schedulers.
    pub(crate) fn forget_timers(&self) {
        self.seats().iter().for_each(|seat| seat.clock.clear());
        self.clock.clear();
        drop(self.carriers.take());
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
        for seat in self.on() {
            if self.happens("place disappears", self.faults.place_disappears)
                && let Some(name) = self.lose_a_place(&seat)
            {
                sim::tell(format!("fault: {name} disappears for a while"));
            }
            self.enter(&seat, || seat.machine.interfere());
        }
        self.add_notes();
    }

    /// Picks the actor of the next move. Lets time pass when none can move; returns `None` when no
    /// timer is set either.
    #[track_caller]
    fn next_actor(&self) -> Option<Actors<'a>> {
        loop {
            let able = self.able();
            let nth = self.moves.get();
            let mut awake = able.clone();
            awake.retain(|actor| !is_stalled(actor, nth));
            if awake.is_empty() && !able.is_empty() {
                // No other actor can move, so the stalls end.
                self.seats().iter().for_each(|seat| seat.end_stalls());
                awake = able;
            }
            if !awake.is_empty() {
                let (seat, actor) = awake[self.pick(&awake)].clone();
                if let (Some(seat), Actor::Worker(worker)) = (&seat, actor)
                    && awake.len() > 1
                    && self.happens(STALLS, self.faults.worker_stalls)
                {
                    let moves = self.choose_for("stalls for", STALL) as u64 + 1;
                    seat.stall(worker, nth + moves);
                    let stalls = format!(
                        "fault: {}worker {worker} stands still until move {}",
                        of(seat.name),
                        nth + moves
                    );
                    self.trace
                        .borrow_mut()
                        .add_between(vec![Note::Told(stalls.into())]);
                    continue;
                }
                return Some((seat, actor));
            }
            let on = self.on();
            let seats = self.seats();
            let paused = seats.iter().filter(|seat| seat.lives());
            let paused = paused.filter_map(|seat| seat.paused());
            let due = (on.iter().filter_map(|seat| seat.next_due()))
                .chain(self.carriers_due())
                .chain(paused.filter(|&until| until < Duration::MAX))
                .min();
            for seat in &on {
                self.assert_watched(seat, due);
            }
            let Some(due) = due else {
                if on.iter().any(|seat| seat.machine.has_work()) {
                    self.fail("G2 is broken: processes are ready, and everybody sleeps".into());
                }
                return None;
            };
            let due = due.saturating_add(self.stall(&on, due));
            for seat in &on {
                self.keep_waiting(seat, due.saturating_sub(self.now()));
            }
            self.set_now(due);
        }
    }

    /// Returns how much later than `due` the machine wakes for its timer.
    fn stall(&self, on: &[Rc<Seat<'a>>], due: Duration) -> Duration {
        let is_due = |seat: &Rc<Seat<'a>>| seat.timer_due().is_some_and(|source| source <= due);
        let is_source = on.iter().any(is_due);
        if !is_source || !self.happens("delivery stalls", self.faults.delivery_stalls) {
            return Duration::ZERO;
        }
        let micros = usize::try_from(LATE.as_micros()).unwrap_or(usize::MAX);
        let late = Duration::from_micros(self.choose_for("delivery stalls by", micros) as u64);
        sim::tell(format!("fault: a due timer is delivered {late:?} late"));
        late
    }

    /// Checks that the workers wake in time for a source; no actor can move before `due`. A machine
    /// that has stopped has no workers, and its timers are over.
    ///
    /// # Panics
    /// When a source has something due before, and all workers sleep longer.
    #[track_caller]
    fn assert_watched(&self, seat: &Seat<'a>, due: Option<Duration>) {
        if let Some(source) = seat.timer_due()
            && !seat.shutdown.is_halted.get()
            && seat.machine.sleeps()
            && due.is_none_or(|due| due > source.max(self.now()))
        {
            self.fail(format!(
                "T1 is broken: something is due at {source:?}, and all workers sleep until {due:?}"
            ));
        }
    }

    /// Notes a time without a move.
    ///
    /// # Panics
    /// When processes have waited for too long behind blocking steps although a spare is free.
    #[track_caller]
    fn keep_waiting(&self, seat: &Seat<'a>, time: Duration) {
        let Some(patience) = seat.machine.patience() else {
            return;
        };
        let kept = seat.kept.get().saturating_add(time);
        seat.kept.set(kept);
        if kept > patience {
            self.fail(format!(
                "G6 is broken: processes wait behind steps that block for {kept:?}, and a spare \
                 is left"
            ));
        }
    }

    fn able(&self) -> Vec<Actors<'a>> {
        let mut able = Vec::new();
        for seat in self.on() {
            let own = seat.able().map(|actor| (Some(Rc::clone(&seat)), actor));
            able.extend(own.collect::<Vec<_>>());
        }
        if self.carriers_due().is_some_and(|due| due <= self.now()) {
            able.push((None, Actor::Timer));
        }
        able
    }

    /// Sets the time of the simulation. It never goes back.
    pub(crate) fn set_now(&self, now: Duration) {
        let now = now.max(self.now());
        self.clock.set_now(now);
        for seat in self.seats.borrow().iter().filter(|seat| seat.lives()) {
            seat.set_now(now);
            if seat.paused().is_some_and(|until| until <= now) {
                self.resume(seat);
            }
        }
        for carrier in &*self.carriers.borrow() {
            carrier.set_now(now);
        }
    }
}

fn is_stalled((seat, actor): &Actors<'_>, nth: u64) -> bool {
    seat.as_ref()
        .is_some_and(|seat| seat.is_stalled(*actor, nth))
}

/// Returns the process of a move.
fn process(did: Did) -> Option<Pid> {
    match did {
        Did::Found(pid) | Did::TookUp(pid) | Did::Ran(pid) | Did::Blocked(pid) => Some(pid),
        _ => None,
    }
}
