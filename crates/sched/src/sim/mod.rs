//! Workers without threads, for `ganger-sim`: no part of the interface, and without its promises.
//!
//! A [`Machine`] has the workers and the monitor of a scheduler started without threads. A machine
//! does nothing by itself: its owner decides whose move is next, and sets the time. A machine
//! belongs to a single thread, which may have several machines, each with its own time. The
//! thread's [`Driver`] makes the random decisions of all its schedulers.

mod driver;
mod interleave;
pub(crate) mod moves;
mod note;
mod points;
mod who;

pub use driver::{Driver, begin_ids_at, drive, happens, pick, violation};
pub use interleave::interrupted_by;
pub(crate) use moves::SetClock;
pub use moves::{BLOCK, Did};
pub use note::{Actor, Given, Move, Note, noted, show, tell, within};
pub(crate) use points::Simulation;
pub use who::{Who, describe, short, tag};

use crate::accounts::Accounts;
use crate::api::handle::Handle;
use crate::api::scheduler::{Scheduler, StartError};
use crate::base::clock::Clock;
use crate::blocking::monitor;
use crate::check;
use crate::policy::LONGEST_LOOK;
use crate::progress::report::StopReport;
use crate::queues::timer_waiter::NEVER;
use crate::runtime::local::{self, LocalQueue};
use crate::runtime::shared::Shared;
use crate::runtime::token::Token;
use crate::worker::simulated::Simulated;
use ganger_deque::Worker as Deque;
use ganger_proc_api::{Pid, UpgradeRequest};
use std::cell::{OnceCell, RefCell};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The workers and the monitor of a scheduler, and its shutdown, move by move.
///
/// A move may have other actors move within: see [`interrupted_by`]. An actor in the middle of a
/// move has no further move until it is over.
pub struct Machine<'a> {
    shared: &'a Arc<Shared>,
    /// The queues of the workers, and of the spares ever needed.
    queues: &'a [OnceCell<LocalQueue>],
    /// A worker for each queue. Borrowed while it moves.
    workers: Box<[RefCell<Option<Simulated<'a>>>]>,
    monitor: RefCell<monitor::simulated::Simulated<'a, SetClock>>,
    clock: SetClock,
}

impl fmt::Debug for Machine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine")
            .field("workers", &self.workers())
            .field("now", &self.now())
            .finish_non_exhaustive()
    }
}

/// A scheduler started without threads, and the queues of its workers. A [`Machine`] borrows both.
pub struct Home {
    shared: Arc<Shared>,
    queues: Box<[OnceCell<LocalQueue>]>,
    /// Until the machine starts.
    deques: RefCell<Vec<(usize, Deque<Token>)>>,
}

impl Home {
    /// Takes the places of the scheduler's threads.
    ///
    /// # Errors
    /// When it was started or stopped before.
    ///
    /// # Panics
    /// When it does not check its promises: see `Builder::check_promises`.
    pub fn new(scheduler: &Scheduler) -> Result<Self, StartError> {
        let handle: &Handle = scheduler;
        let shared = Arc::clone(&handle.shared);
        if shared.shutdown.is_stopping() {
            return Err(StartError::Stopped);
        }
        let deques = shared
            .start
            .take_deques()
            .ok_or(StartError::AlreadyStarted)?;
        let queues = deques.iter().map(|_| OnceCell::new()).collect();
        let mut deques: Vec<_> = deques.into_iter().enumerate().collect();
        let spares = deques.split_off(shared.worker_slots.workers());
        shared.worker_slots.set_free(spares.into_iter());
        accounts(&shared).begin();
        let deques = RefCell::new(deques);
        Ok(Self {
            shared,
            queues,
            deques,
        })
    }

    /// Puts the workers to work, at this time. The thread has a [driver](drive). Called once.
    #[must_use]
    pub fn start(&self, now: Duration) -> Machine<'_> {
        let shared = &self.shared;
        let clock = SetClock::default();
        clock.0.set(now);
        driver::add_clock(shared.number, clock.clone());
        driver::set_time(clock.now());
        who::begin(shared);
        let monitor = monitor::simulated::Simulated::new(shared, clock.clone());
        let machine = Machine {
            shared,
            queues: &self.queues,
            workers: self.queues.iter().map(|_| RefCell::new(None)).collect(),
            monitor: RefCell::new(monitor),
            clock,
        };
        for (index, deque) in self.deques.take() {
            machine.put_to_work(index, deque);
        }
        shared.start.begin_to_serve();
        machine
    }

    /// Gives up the remains of the workers. The machine has [left](Machine::leave).
    pub fn end(self) {
        let shared = &self.shared;
        shared.census.pool.close();
        for queue in self.queues.into_iter().filter_map(OnceCell::into_inner) {
            queue.handlers.leave(shared.own_counters());
        }
        shared.commands.give_up(shared.own_counters());
        shared.extensions.halt(shared.own_counters());
        shared.close_timers();
    }
}

impl fmt::Debug for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Home").finish_non_exhaustive()
    }
}

/// Starts a scheduler without threads, and calls `f` with its workers.
///
/// Work left undone by `f` stays undone: its processes never end.
///
/// # Errors
/// When it was started or stopped before.
///
/// # Panics
/// When it does not check its promises: see `Builder::check_promises`.
pub fn run<R>(
    scheduler: &Scheduler,
    f: impl FnOnce(&Handle, &Machine<'_>) -> R,
) -> Result<R, StartError> {
    let home = Home::new(scheduler)?;
    let machine = home.start(Duration::ZERO);
    let result = f(scheduler, &machine);
    machine.leave();
    drop(machine);
    home.end();
    Ok(result)
}

fn accounts(shared: &Shared) -> &Accounts {
    let observers = shared.probe.0.get();
    &observers
        .expect("a simulated scheduler checks its promises")
        .1
        .0
}

impl Machine<'_> {
    /// Puts a worker to work in the slot. Where the slot's last thread has ended, the worker
    /// continues with the slot's deque.
    fn put_to_work(&self, index: usize, deque: Deque<Token>) {
        let queue = || LocalQueue::new(Arc::clone(self.shared), index, deque);
        let queue = self.queues[index].get_or_init(queue);
        let worker = Simulated::new(queue, self.clock.clone());
        if let Some(before) = self.workers[index].replace(Some(worker)) {
            debug_assert!(before.is_gone(), "the slot is another's");
            before.leave();
        }
    }

    /// Calls `f` with the workers outside of moves.
    fn of_still<'b, R>(
        &'b self,
        f: impl Fn(&Simulated<'_>) -> Option<R> + 'b,
    ) -> impl Iterator<Item = R> + 'b {
        let still = self.workers.iter().filter_map(|it| it.try_borrow().ok());
        still.filter_map(move |worker| f(worker.as_ref()?))
    }

    /// Puts spares to work whose threads would have been started.
    fn put_hired_to_work(&self) {
        for (index, deque) in driver::hired(self.shared.number) {
            self.put_to_work(index, deque);
        }
    }

    /// Has the workers drop what they keep for later processes.
    pub fn leave(&self) {
        let workers = self.workers.iter().filter_map(RefCell::take);
        workers.for_each(Simulated::leave);
    }

    /// Makes the clock of this machine that of the thread: see [`set_now`](Self::set_now).
    pub fn be_present(&self) {
        driver::set_time(self.now());
    }

    /// Lets processes of this machine be upgraded in this way at any moment, from now on.
    pub fn offer_upgrade(&self, request: impl Fn() -> UpgradeRequest + 'static) {
        interleave::offer_upgrade(self.shared, request);
    }

    /// Lets other threads of this machine do this at any moment, from now on.
    pub fn offer_act(&self, act: impl Fn() + 'static) {
        interleave::offer_act(self.shared, act);
    }

    /// Returns the number of workers and spares there can be.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.queues.len()
    }

    /// Returns the number of workers, with the spares ever needed.
    #[must_use]
    pub fn workers(&self) -> usize {
        let is_there =
            |worker: &RefCell<Option<_>>| worker.try_borrow().map_or(true, |it| it.is_some());
        self.workers.iter().filter(|it| is_there(it)).count()
    }

    /// Returns whether the worker has a move.
    #[must_use]
    pub fn can_move(&self, worker: usize) -> bool {
        let worker = self.workers[worker].try_borrow();
        worker.is_ok_and(|it| it.as_ref().is_some_and(|it| it.can_move()))
    }

    /// Makes the worker's next move. The first move freezes the command registry.
    ///
    /// # Panics
    /// When the worker is in the middle of a move.
    pub fn advance(&self, worker: usize) -> Did {
        if !self.shared.commands.is_frozen() {
            self.shared.commands.freeze();
        }
        let mut worker = self.workers[worker].borrow_mut();
        let did = worker.as_mut().map_or(Did::Nothing, Simulated::advance);
        drop(worker);
        self.put_hired_to_work();
        did
    }

    /// Returns whether the monitor has a move at this time.
    #[must_use]
    pub fn monitor_can_move(&self) -> bool {
        self.monitor.try_borrow().is_ok_and(|it| it.can_move())
    }

    /// Makes the monitor's next move.
    ///
    /// # Panics
    /// When the monitor is in the middle of a move.
    pub fn advance_monitor(&self) -> Did {
        let did = self.monitor.borrow_mut().advance();
        self.put_hired_to_work();
        did
    }

    /// Returns when something is due next: a look of the monitor, the end of a blocking step, or
    /// the end of an unneeded spare. `None` if the monitor waits for a wake-up, and nothing else is
    /// due.
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        let workers = self.of_still(|it| it.next_due());
        let look = self.monitor.try_borrow().ok().and_then(|it| it.next_look());
        workers.chain(look).min()
    }

    /// Returns when the next timer is due.
    #[must_use]
    pub fn timer_due(&self) -> Option<Duration> {
        let due = self
            .shared
            .timing
            .timer_waiter
            .dues
            .earliest(self.shared.shards_in_use());
        (due != NEVER).then(|| Duration::from_nanos(due))
    }

    /// Returns whether all workers sleep, and none has a move.
    #[must_use]
    pub fn sleeps(&self) -> bool {
        let sleeps = |it: &RefCell<Option<Simulated<'_>>>| {
            (it.try_borrow()).is_ok_and(|it| it.as_ref().is_none_or(Simulated::sleeps))
        };
        self.workers.iter().all(sleeps)
    }

    /// Returns how long processes without a free worker may wait until a spare takes the place of a
    /// worker whose step blocks (G6). None when nothing waits, or no spare is left.
    #[must_use]
    pub fn patience(&self) -> Option<Duration> {
        let shared = self.shared;
        let is_kept = shared.has_work() && shared.worker_slots.has_spare();
        let config = &shared.config;
        let limit = config.blocked_step.max(config.long_step);
        (is_kept && !shared.shutdown.is_halted()).then(|| limit.saturating_add(3 * LONGEST_LOOK))
    }

    /// Returns the time.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.clock.now()
    }

    /// Sets the time, which never goes back, and makes it the time of the thread.
    pub fn set_now(&self, now: Duration) {
        self.clock.0.set(self.now().max(now));
        driver::set_time(self.now());
    }

    /// Checks the promises, if no worker is about to look or to wake another, and returns whether
    /// it has checked them. A broken promise panics, and is [noted](violation).
    pub fn audit(&self) -> bool {
        check::checker(self.shared).is_some_and(|checker| checker.audit(self.shared))
    }

    /// Returns whether something is queued anywhere.
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.shared.has_work()
    }

    /// Returns the number of processes that have been submitted and not ended.
    #[must_use]
    pub fn live(&self) -> usize {
        self.shared.census.live.get()
    }

    /// Acts as others do between two moves, at random: see [`noted`].
    pub fn interfere(&self) {
        local::leave(|| interleave::act_outside(self.shared));
    }

    /// Returns whether a shutdown has begun, here or in the middle of a move.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.shared.shutdown.is_stopping()
    }

    /// Returns whether the deadline of a shutdown has passed, here or in the middle of a move.
    #[must_use]
    pub fn is_forced(&self) -> bool {
        self.shared.shutdown.is_terminating()
    }

    /// Begins a shutdown, its first part: submits are refused, and every process gets a cancel
    /// event.
    pub fn begin_stop(&self) {
        interleave::tell_of_stop(self.shared);
    }

    /// Takes the deadline given to `begin_stop` since the last call of this.
    #[must_use]
    pub fn take_deadline(&self) -> Option<Duration> {
        interleave::take_deadline(self.shared)
    }

    /// Has the shutdown be over by this moment of the simulation's clock. The earliest counts.
    pub fn must_stop_by(&self, end: Duration) {
        interleave::must_stop_by(self.shared, end);
    }

    /// Forces the shutdown, as its second part: the deadline has passed. The remaining processes
    /// end at their next step boundary.
    pub fn force(&self) {
        interleave::force(self.shared);
    }

    /// Halts the scheduler, the third part of a shutdown: the workers leave when nothing is queued.
    pub fn halt(&self) {
        self.shared.shutdown.halt();
        self.shared.queues.idle.notify_all();
        self.shared.queues.idle.end_monitor_wait();
    }

    /// Returns whether all workers have left.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.of_still(|it| Some(it.is_gone()))
            .all(|is_gone| is_gone)
    }

    /// Reports the ends of the processes that were alive at the begin of the stop.
    #[must_use]
    pub fn report(&self) -> StopReport {
        let before = self.shared.stopper.before();
        let before = before.unwrap_or_else(|| self.shared.counters.total());
        self.shared.report_since(&before)
    }

    /// Finds a live process so far overlooked by a shutdown: it has not been notified of the
    /// shutdown, or continues although the deadline has passed.
    #[must_use]
    pub fn overlooked(&self) -> Option<Pid> {
        let mut live = self.shared.census.registry.all();
        let task = if self.is_forced() {
            live.find(|task| !task.state.is_terminating())
        } else if self.is_stopping() {
            live.find(|task| !task.state.is_told())
        } else {
            None
        };
        task.map(|task| task.pid())
    }

    /// Describes the remains of a scheduler whose workers have left, if any.
    #[must_use]
    pub fn leftovers(&self) -> Option<String> {
        let shared = self.shared;
        let idle = shared.queues.idle.snapshot();
        let found = [
            ("live processes", shared.census.live.get()),
            ("PIDs", shared.census.registry.all().count()),
            ("queued processes", usize::from(shared.has_work())),
            ("processes inside a call", shared.running_pids().len()),
            ("places of `max_processes`", shared.census.places.get()),
            ("sleeping workers", idle.sleeping as usize),
        ];
        let found = found.iter().filter(|(_, count)| *count > 0);
        let found: Vec<_> = found
            .map(|(what, count)| format!("{what}: {count}"))
            .collect();
        (!found.is_empty()).then(|| found.join(", "))
    }

    /// Describes the differences between the accounts and the counts of a scheduler whose workers
    /// have left, if any.
    #[must_use]
    pub fn difference(&self) -> Option<String> {
        let counted = self.shared.counters.total();
        accounts(self.shared).difference(&counted)
    }
}
