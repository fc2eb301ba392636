//! Several machines under one seed and one clock.

use crate::moves::Core;
use crate::rt::Rt;
use crate::seat::Seat;
use crate::timers::SimClock;
use ganger_proc_api::NodeName;
use ganger_sched::Builder;
use ganger_sched::internal::HandleInternals as _;
use ganger_sched::internal::carrier::{Arrival, Carrier, Change};
use ganger_sched::internal::sim;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The time that a start of a machine takes. So each start of a machine is later than the start
/// before it, by any clock with milliseconds.
const START: Duration = Duration::from_millis(1);

/// How many generations of ids a life of a machine has for itself.
const GENERATIONS: u32 = 1 << 20;

/// How many lives of machines a run may have.
const LIVES: u32 = 1 << 10;

type Set = Rc<dyn Fn(Builder) -> Builder>;
type Boot = Rc<dyn Fn(&Rt<'_>)>;

/// Several machines, each with a scheduler of its own, under one seed and one clock. Machines take
/// turns: the seed decides whose actor moves next.
///
/// Between two moves the test has machines crash, start again, stand still, or lose each other.
/// Machines share no memory but what the test shares itself; a [`Carrier`] carries between them.
///
/// ```
/// use ganger_proc_api::actor_fn;
/// use ganger_sim::Sim;
/// use std::time::Duration;
///
/// Sim::new(0).check_worlds(20, |world| {
///     world.start("alpha", |machine| {
///         let clerk = actor_fn(|_, price: u64, out| Ok(out.done(price)));
///         machine.spawner().named("clerk").spawn(clerk).unwrap();
///     });
///     let first = world.machine("alpha").whereis("clerk").unwrap();
///     world.crash("alpha");
///     world.run_for(Duration::from_secs(1));
///     world.restart("alpha");
///     let second = world.machine("alpha").whereis("clerk").unwrap();
///     assert_ne!(first, second); // A PID of before finds no process.
///     assert!(world.machine("alpha").process(first).is_none());
/// });
/// ```
pub struct World<'a> {
    core: Rc<Core<'a>>,
    boots: RefCell<BTreeMap<&'static str, Boot>>,
    set: RefCell<Option<Set>>,
}

impl<'a> World<'a> {
    pub(crate) fn new(core: Rc<Core<'a>>) -> Self {
        Self {
            core,
            boots: RefCell::default(),
            set: RefCell::default(),
        }
    }

    /// Sets the settings of the schedulers of machines that start from now on, behind those of
    /// [`Sim::builder`](crate::Sim::builder): a network between the machines, for instance.
    pub fn builder(&self, set: impl Fn(Builder) -> Builder + 'static) {
        self.set.replace(Some(Rc::new(set)));
    }

    /// Starts a machine, whose scheduler has this node name. `boot` is what its program does at its
    /// start: it starts the first processes, and joins a cluster. Each [`restart`](Self::restart)
    /// calls it again. A start takes a millisecond.
    ///
    /// # Panics
    /// When the name is not a valid name of a node, or the machine has started before.
    #[track_caller]
    pub fn start(&self, name: &str, boot: impl Fn(&Rt<'_>) + 'static) {
        let name = match NodeName::new(name) {
            Ok(name) => name,
            Err(error) => panic!("{name:?} names no machine: {error}"),
        };
        let boot: Boot = Rc::new(boot);
        let before = (self.boots.borrow_mut()).insert(name.as_str(), Rc::clone(&boot));
        assert!(before.is_none(), "the machine {name} has started before");
        self.boot(name, &boot);
    }

    #[track_caller]
    fn boot(&self, name: NodeName, boot: &Boot) {
        let core = &self.core;
        core.set_now(core.now().saturating_add(START));
        let lives = u32::try_from(core.seats().len()).unwrap_or(u32::MAX);
        assert!(lives < LIVES, "a run has at most {LIVES} starts");
        sim::begin_ids_at(1 + lives * GENERATIONS);
        let set = self.set.borrow().clone();
        let built = (core.build)(name, set.as_deref());
        let router = Arc::clone(&built.0.router);
        let seat = core.add(name.as_str(), built);
        let _kept = seat.handle.extension(|_| router);
        core.tell_carriers(Change::Started(name.as_str()));
        let rt = Rt::new(Rc::clone(core), Rc::clone(&seat));
        core.enter(&seat, || boot(&rt));
    }

    #[track_caller]
    fn seat(&self, name: &str) -> Rc<Seat<'a>> {
        let seats = self.core.seats();
        let seat = seats.into_iter().rev().find(|seat| seat.name == name);
        seat.unwrap_or_else(|| panic!("no machine {name:?} has started"))
    }

    #[track_caller]
    fn up(&self, name: &str) -> Rc<Seat<'a>> {
        let seat = self.seat(name);
        assert!(seat.lives(), "the machine {name} has crashed");
        seat
    }

    /// Returns the scheduler of a machine, in its present life. Until the next move the test goes
    /// by the clock of this machine.
    ///
    /// # Panics
    /// When the machine has not started, or has crashed.
    #[must_use]
    #[track_caller]
    pub fn machine(&self, name: &str) -> Rt<'a> {
        let seat = self.up(name);
        seat.machine.be_present();
        Rt::new(Rc::clone(&self.core), seat)
    }

    /// Returns whether the machine has started, and has not crashed since.
    #[must_use]
    pub fn is_up(&self, name: &str) -> bool {
        let seats = self.core.seats();
        let seat = seats.iter().rev().find(|seat| seat.name == name);
        seat.is_some_and(|seat| seat.lives())
    }

    /// Ends the machine at once: its processes take no further step, nothing of it closes, and
    /// nothing arrives at it. The machine loses all messages to it.
    ///
    /// The memory of its processes is freed at the end of the run.
    ///
    /// # Panics
    /// As [`machine`](Self::machine).
    #[track_caller]
    pub fn crash(&self, name: &str) {
        let seat = self.up(name);
        self.tell(format!("{name} crashes"));
        seat.set_crashed(true);
        self.core.tell_carriers(Change::Crashed(seat.name));
    }

    /// Starts a machine again under the same name, with a new scheduler. A running machine crashes
    /// first.
    ///
    /// # Panics
    /// When the machine has not started.
    #[track_caller]
    pub fn restart(&self, name: &str) {
        let seat = self.seat(name);
        if seat.lives() {
            self.crash(name);
        }
        self.tell(format!("{name} starts again"));
        let boot = self.boots.borrow().get(name).map(Rc::clone);
        if let (Ok(node), Some(boot)) = (NodeName::new(name), boot) {
            self.boot(node, &boot);
        }
    }

    /// Stops the machine for this time, while time goes on. What arrives waits.
    ///
    /// # Panics
    /// As [`machine`](Self::machine).
    #[track_caller]
    pub fn pause(&self, name: &str, time: Duration) {
        let seat = self.up(name);
        self.tell(format!("{name} stands still for {time:?}"));
        let until = self.core.now().saturating_add(time);
        self.core.pause(&seat, until);
    }

    /// Ends the machine's pause early.
    ///
    /// # Panics
    /// As [`machine`](Self::machine).
    #[track_caller]
    pub fn resume(&self, name: &str) {
        let seat = self.up(name);
        self.tell(format!("{name} goes on"));
        self.core.resume(&seat);
    }

    /// Loses all that `from` sends to `to` from now on. The other direction is not cut.
    pub fn cut(&self, from: &str, to: &str) {
        self.tell(format!("the way from {from} to {to} is cut"));
        self.core.tell_carriers(Change::Cut(from, to));
    }

    /// Ends a [`cut`](Self::cut).
    pub fn heal(&self, from: &str, to: &str) {
        self.tell(format!("the way from {from} to {to} is whole"));
        self.core.tell_carriers(Change::Healed(from, to));
    }

    /// Cuts a machine off from these others, in both directions.
    pub fn isolate(&self, name: &str, others: &[&str]) {
        for other in others {
            self.cut(name, other);
            self.cut(other, name);
        }
    }

    /// Ends an [`isolate`](Self::isolate).
    pub fn join(&self, name: &str, others: &[&str]) {
        for other in others {
            self.heal(name, other);
            self.heal(other, name);
        }
    }

    /// Delays all that `from` sends to `to` from now on, by at least this time.
    pub fn delay(&self, from: &str, to: &str, time: Duration) {
        self.tell(format!("the way from {from} to {to} takes {time:?}"));
        self.core.tell_carriers(Change::Delayed(from, to, time));
    }

    /// Cuts the machine off from the store of its cluster from now on, where the store is a
    /// [carrier](Self::carrier). Other ways are as before.
    pub fn store_down(&self, name: &str) {
        self.tell(format!("{name} can't reach its store"));
        self.core.tell_carriers(Change::StoreDown(name));
    }

    /// Ends a [`store_down`](Self::store_down).
    pub fn store_up(&self, name: &str) {
        self.tell(format!("{name} reaches its store again"));
        self.core.tell_carriers(Change::StoreUp(name));
    }

    /// Sets the rate of the machine's clock from now on: 0.9 loses six seconds in a minute.
    ///
    /// Timers and [`Instant`](ganger_proc_api::Instant)s of its processes go by it.
    ///
    /// # Panics
    /// When the rate is below 0.01 or above 100, and as [`machine`](Self::machine).
    #[track_caller]
    pub fn clock_rate(&self, name: &str, rate: f64) {
        let seat = self.up(name);
        self.tell(format!("the clock of {name} goes at {rate}"));
        seat.set_rate(self.core.now(), rate);
    }

    /// Adds a carrier between the machines.
    pub fn carrier(&self, carrier: impl Carrier + 'static) {
        self.core.add_carrier(Rc::new(carrier));
    }

    /// Has `act` told of each change between the machines from now on: for networks that are no
    /// [`Carrier`].
    pub fn on_change(&self, act: impl Fn(Change<'_>) + 'static) {
        self.core.add_carrier(Rc::new(Listener(act)));
    }

    fn tell(&self, text: String) {
        sim::tell(format!("world: {text}"));
        self.core.add_notes();
    }

    /// Returns the clock of the simulation, for timers of the test.
    #[must_use]
    pub fn clock(&self) -> SimClock {
        self.core.clock.clone()
    }

    /// Returns the time since the simulation began.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.core.now()
    }

    /// Returns the number of moves so far.
    #[must_use]
    pub fn moves(&self) -> u64 {
        self.core.moves()
    }

    /// Returns a number below `of`, decided by the seed.
    ///
    /// # Panics
    /// When `of` is zero.
    #[must_use]
    #[track_caller]
    pub fn choose(&self, of: usize) -> usize {
        assert!(of > 0, "there is nothing to choose from");
        self.core.choose_for("test", of)
    }

    /// Makes a move of the next actor of any machine. Returns `false` when no actor can move and no
    /// timer is set any more.
    ///
    /// # Panics
    /// As [`Rt::step`].
    #[track_caller]
    pub fn step(&self) -> bool {
        self.core.step()
    }

    /// Goes on until no actor can move and no timer is set any more. Nodes of a cluster keep timers
    /// for their peers: use [`run_for`](Self::run_for) with them.
    ///
    /// # Panics
    /// As [`Rt::step`].
    #[track_caller]
    pub fn settle(&self) {
        while self.step() {}
    }

    /// Goes on until `time` has passed.
    ///
    /// # Panics
    /// As [`Rt::step`].
    #[track_caller]
    pub fn run_for(&self, time: Duration) {
        let end = self.now().saturating_add(time);
        // A timer without an action, so that time goes on until then.
        self.core.clock.after(time, || {});
        while self.now() < end && self.step() {}
    }

    /// Goes on until `has_come` says so.
    ///
    /// # Panics
    /// When it has not come within `time`, or nothing moves any more, and as [`Rt::step`].
    #[track_caller]
    pub fn run_until(&self, time: Duration, mut has_come: impl FnMut() -> bool) {
        let end = self.now().saturating_add(time);
        self.core.clock.after(time, || {});
        while !has_come() {
            if self.now() >= end || !self.step() {
                self.core
                    .fail(format!("what is waited for has not come within {time:?}"));
            }
        }
    }
}

/// Carries nothing.
struct Listener<F>(F);

impl<F: Fn(Change<'_>)> Carrier for Listener<F> {
    fn set_now(&self, _: Duration) {}

    fn next_due(&self) -> Option<Duration> {
        None
    }

    fn take_due(&self) -> Option<Arrival> {
        None
    }

    fn changed(&self, change: Change<'_>) {
        (self.0)(change);
    }
}

impl fmt::Debug for World<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seats = self.core.seats();
        let up = seats.iter().filter(|seat| seat.lives());
        let up: Vec<_> = up.map(|seat| seat.name).collect();
        f.debug_struct("World")
            .field("now", &self.now())
            .field("moves", &self.moves())
            .field("up", &up)
            .finish_non_exhaustive()
    }
}
