//! A machine of a run: its scheduler, its clock, its network, and how far its shutdown has come.

use crate::network::Network;
use crate::pace::Pace;
use crate::timers::SimClock;
use ganger_sched::internal::sim::{Actor, Machine};
use ganger_sched::internal::{Around, HandleInternals as _};
use ganger_sched::{Handle, Scheduler};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

pub(crate) struct Seat<'a> {
    /// Empty for the only machine of a run.
    pub(crate) name: &'static str,
    pub(crate) handle: Handle,
    pub(crate) machine: Machine<'a>,
    pub(crate) clock: SimClock,
    pub(crate) network: Network,
    pub(crate) shutdown: Shutdown,
    /// Each worker and spare stands still until its move in this list.
    stalled: RefCell<Vec<u64>>,
    /// For how long processes have waited behind blocking steps since a worker has last moved.
    pub(crate) kept: Cell<Duration>,
    /// The number of its first actor.
    first: usize,
    has_crashed: Cell<bool>,
    /// Until when it stands still.
    paused: Cell<Option<Duration>>,
    pace: Cell<Pace>,
    /// The surroundings of its threads, such as a network.
    around: Option<Arc<Around>>,
}

/// How far the shutdown has come.
#[derive(Default)]
pub(crate) struct Shutdown {
    /// The deadline, once it has begun.
    pub(crate) end: Cell<Option<Duration>>,
    pub(crate) is_halted: Cell<bool>,
}

impl<'a> Seat<'a> {
    pub(crate) fn new(
        name: &'static str,
        scheduler: &Scheduler,
        machine: Machine<'a>,
        network: Network,
        first: usize,
    ) -> Self {
        let stalled = RefCell::new(vec![0; machine.slots()]);
        Self {
            name,
            handle: scheduler.handle(),
            machine,
            clock: network.clock.clone(),
            network,
            shutdown: Shutdown::default(),
            stalled,
            kept: Cell::default(),
            first,
            has_crashed: Cell::default(),
            paused: Cell::default(),
            pace: Cell::default(),
            around: scheduler.find_extension(),
        }
    }

    /// Returns whether the machine has not crashed.
    pub(crate) fn lives(&self) -> bool {
        !self.has_crashed.get()
    }

    pub(crate) fn set_crashed(&self, has_crashed: bool) {
        self.has_crashed.set(has_crashed);
    }

    /// Returns the end of the machine's pause, if the machine stands still.
    pub(crate) fn paused(&self) -> Option<Duration> {
        self.paused.get()
    }

    pub(crate) fn pause(&self, until: Option<Duration>) {
        self.paused.set(until);
    }

    /// Returns whether it stood still. From now on it does not.
    pub(crate) fn take_pause(&self) -> bool {
        self.paused.take().is_some()
    }

    /// Returns whether the machine may move.
    pub(crate) fn is_on(&self) -> bool {
        self.lives() && self.paused().is_none()
    }

    #[track_caller]
    pub(crate) fn set_rate(&self, now: Duration, rate: f64) {
        self.pace.set(self.pace.get().from(now, rate));
    }

    /// Sets the time of the simulation, which this machine's clock shows in its own way.
    pub(crate) fn set_now(&self, now: Duration) {
        let shown = self.pace.get().shows(now).max(self.clock.now());
        self.clock.set_now(shown);
        self.machine.set_now(shown);
    }

    /// Returns the time of the machine's next own work, by the clock of the simulation.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        let due = [self.clock.next_due(), self.machine.next_due()];
        let due = due.into_iter().flatten().min()?;
        Some(self.pace.get().reaches(due))
    }

    /// Returns the time of the machine's next timer, by the clock of the simulation.
    pub(crate) fn timer_due(&self) -> Option<Duration> {
        Some(self.pace.get().reaches(self.machine.timer_due()?))
    }

    /// Calls `f` as on a thread of this machine.
    pub(crate) fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        self.machine.be_present();
        let Some(around) = &self.around else {
            return f();
        };
        let (mut f, mut result) = (Some(f), None);
        around.call(&mut || result = f.take().map(|f| f()));
        result.unwrap_or_else(|| unreachable!("what is around calls its function"))
    }

    pub(crate) fn able(&self) -> impl Iterator<Item = Actor> {
        let machine = &self.machine;
        let is_due = (self.clock.next_due()).is_some_and(|due| due <= self.clock.now());
        let workers = (0..machine.workers()).filter(|&worker| machine.can_move(worker));
        let monitor = machine.monitor_can_move().then_some(Actor::Monitor);
        let timer = is_due.then_some(Actor::Timer);
        workers.map(Actor::Worker).chain(monitor).chain(timer)
    }

    /// Returns the number of an actor of a machine with `slots` places for workers, behind `first`.
    pub(crate) fn id(&self, actor: Actor) -> usize {
        let slots = self.machine.slots();
        let own = match actor {
            Actor::Worker(worker) => worker,
            Actor::Monitor => slots,
            Actor::Timer => slots + 1,
            _ => slots + 2,
        };
        self.first + own
    }

    /// Returns the count of its actors' numbers.
    pub(crate) fn ids(&self) -> usize {
        self.machine.slots() + 2
    }

    pub(crate) fn is_stalled(&self, actor: Actor, nth: u64) -> bool {
        matches!(actor, Actor::Worker(worker) if self.stalled.borrow()[worker] > nth)
    }

    pub(crate) fn stall(&self, worker: usize, until: u64) {
        self.stalled.borrow_mut()[worker] = until;
    }

    pub(crate) fn end_stalls(&self) {
        self.stalled.borrow_mut().fill(0);
    }
}
