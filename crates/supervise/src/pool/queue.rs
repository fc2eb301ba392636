//! The jobs that wait, and the workers that wait for jobs: all under one lock.
//!
//! Users' values are not dropped under the lock, and wakers are called outside of it.

use super::entry::{Entry, Limits, PoolStats, Refusal, START};
use super::then::Then;
use super::{OnRefused, Overload, PoolError, Routing};
use ganger_proc_api::{Pid, Reply};
use ganger_sched::Moment;
use ganger_sync::sync::{Mutex, lock};
use ganger_time::Timers;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::task::Waker;

pub(crate) struct Queue<J, A> {
    state: Mutex<State<J, A>>,
    routing: Routing,
    limits: Limits,
    on_refused: Option<OnRefused<J>>,
    /// Known when the pool has been started.
    timers: OnceLock<Arc<Timers>>,
}

struct State<J, A> {
    /// Jobs for the first worker that is free.
    common: VecDeque<Entry<J, A>>,
    workers: Vec<Slot<J, A>>,
    /// Those that wait for a job, the one that has waited longest first.
    idle: VecDeque<usize>,
    /// Workers from this number on are started for jobs.
    always: usize,
    phase: Phase,
    is_suspended: bool,
    /// The worker that had the last turn.
    turn: usize,
    random: u64,
    admitted: u64,
    /// With patience: when a worker was started for a job last.
    grown: Moment,
    /// The front has been told that it may have a worker to start, and has not looked yet.
    front_knows: bool,
    front: Option<Waker>,
    /// The pool's supervisor.
    owner: Option<Pid>,
    stats: PoolStats,
}

struct Slot<J, A> {
    /// Jobs for this worker alone.
    own: VecDeque<Entry<J, A>>,
    life: Life,
    /// How many have begun.
    epoch: u64,
    is_busy: bool,
    waker: Option<Waker>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Off,
    /// It has been asked for.
    Starts,
    Runs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// It has not started, or has stopped.
    Over,
    Open,
    /// What has been admitted is carried out.
    Drains,
}

/// What the front does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(super) enum Next {
    /// It starts that worker, for jobs.
    Start(usize),
    /// It looks again when it is told to, or at that moment.
    Wait(Option<Moment>),
}

impl<J: Send + 'static, A: Send + 'static> Queue<J, A> {
    pub(super) fn new(
        routing: Routing,
        workers: Range<usize>,
        limits: Limits,
        on_refused: Option<OnRefused<J>>,
    ) -> Self {
        let slot = |_| Slot {
            own: VecDeque::new(),
            life: Life::Off,
            epoch: 0,
            is_busy: false,
            waker: None,
        };
        let state = Mutex::new(State {
            common: VecDeque::new(),
            workers: (0..workers.end).map(slot).collect(),
            idle: VecDeque::new(),
            always: workers.start,
            phase: Phase::Over,
            is_suspended: false,
            turn: 0,
            random: 0,
            admitted: 0,
            grown: START,
            front_knows: false,
            front: None,
            owner: None,
            stats: PoolStats::default(),
        });
        Self {
            state,
            routing,
            limits,
            on_refused,
            timers: OnceLock::new(),
        }
    }

    /// Does something under the lock, and afterwards what is to be done outside.
    fn with<R>(&self, f: impl FnOnce(&mut State<J, A>, &mut Then<J, A>) -> R) -> R {
        let mut then = Then::default();
        let result = f(&mut lock(&self.state), &mut then);
        then.carry_out(self.on_refused.as_ref());
        result
    }

    fn now(&self) -> Moment {
        match self.timers.get() {
            Some(timers) if self.limits.has_times() => timers.now(),
            _ => START,
        }
    }

    pub(super) fn set_owner(&self, owner: Pid, timers: Option<Arc<Timers>>) {
        lock(&self.state).owner = Some(owner);
        if let Some(timers) = timers {
            self.timers.get_or_init(|| timers);
        }
    }

    pub(super) fn owner(&self) -> Option<Pid> {
        lock(&self.state).owner
    }

    /// From now on jobs are admitted.
    pub(super) fn open(&self, front: Waker) {
        let mut state = lock(&self.state);
        state.front = Some(front);
        state.front_knows = true;
        state.phase = Phase::Open;
    }

    /// Admits a job, or gives it back.
    pub(super) fn try_admit(
        &self,
        mut entry: Entry<J, A>,
        key: Option<u64>,
    ) -> Result<(), Refusal<J, A>> {
        entry.since = self.now();
        let limits = &self.limits;
        self.with(|state, then| {
            let queued = state.stats.queued;
            if state.phase != Phase::Open {
                state.stats.refused += 1;
                return Err((entry, PoolError::Stopping));
            }
            if queued >= limits.most && limits.overload != Overload::Wait {
                state.stats.refused += 1;
                let error = PoolError::Full { queued };
                let oldest = match limits.overload {
                    Overload::RefuseOldest => state.pop_oldest(),
                    _ => None,
                };
                match oldest {
                    Some(oldest) => then.refused.push((oldest, error)),
                    None => return Err((entry, error)),
                }
            }
            entry.number = state.admitted;
            state.admitted += 1;
            state.put(entry, key, self.routing, limits, then);
            Ok(())
        })
    }

    /// Admits a job that is carried out at once, by this thread, or gives it back.
    pub(super) fn try_begin(&self, entry: Entry<J, A>) -> Result<Entry<J, A>, Refusal<J, A>> {
        self.with(|state, _| {
            let queued = state.stats.in_flight;
            let waits = self.limits.overload == Overload::Wait;
            let error = match state.phase {
                Phase::Open if waits || queued < self.limits.most => {
                    state.stats.in_flight += 1;
                    return Ok(entry);
                }
                Phase::Open => PoolError::Full { queued },
                Phase::Over | Phase::Drains => PoolError::Stopping,
            };
            state.stats.refused += 1;
            Err((entry, error))
        })
    }

    /// That job was carried out by the thread that has begun it.
    pub(super) fn ended(&self, count: impl FnOnce(&mut PoolStats)) {
        self.with(|state, then| {
            state.stats.in_flight -= 1;
            count(&mut state.stats);
            state.look_at_drain(then);
        });
    }

    /// Tells those that wait for the job, and the pool's handler, that it is not carried out.
    pub(super) fn refuse(&self, refusal: Refusal<J, A>) {
        let refused = vec![refusal];
        let then = Then {
            refused,
            ..Then::default()
        };
        then.carry_out(self.on_refused.as_ref());
    }

    /// The next job for that worker, which is idle if there is none. `served` says that it has
    /// carried one out since the last call.
    pub(super) fn take(&self, index: usize, served: bool) -> Option<Entry<J, A>> {
        let now = self.now();
        self.with(|state, then| {
            if served {
                state.over(index, |stats| stats.served += 1);
            }
            let taken = loop {
                let Some(entry) = state.pop(index) else {
                    state.rest(index);
                    break None;
                };
                let is_old = |time| now.since(entry.since) >= time;
                if entry.reply.as_ref().is_some_and(Reply::is_cancelled) {
                    state.stats.left += 1;
                    then.left.push(entry);
                } else if entry.tries == 0 && self.limits.time_to_live.is_some_and(is_old) {
                    state.stats.expired += 1;
                    then.refused.push((entry, PoolError::Expired));
                } else {
                    state.workers[index].is_busy = true;
                    state.stats.in_flight += 1;
                    break Some(entry);
                }
            };
            state.look_at_drain(then);
            taken
        })
    }

    /// The worker has carried a job out, and takes no other one now.
    pub(super) fn served(&self, index: usize) {
        self.with(|state, then| {
            state.over(index, |stats| stats.served += 1);
            state.look_at_drain(then);
        });
    }

    /// The worker has panicked with a job, which is to be tried again if it is here.
    pub(super) fn panicked(&self, index: usize, again: Option<Entry<J, A>>) {
        self.with(|state, then| {
            state.over(index, |stats| match again {
                Some(_) => stats.retried += 1,
                None => stats.panicked += 1,
            });
            if let Some(entry) = again {
                state.stats.queued += 1;
                state.workers[index].own.push_front(entry);
            }
            state.look_at_drain(then);
        });
    }

    /// The worker begins. What is returned tells it from those before it.
    pub(super) fn begin(&self, index: usize, waker: Waker) -> u64 {
        let slot = &mut lock(&self.state).workers[index];
        slot.life = Life::Runs;
        slot.waker = Some(waker);
        slot.epoch += 1;
        slot.epoch
    }

    /// The worker has ended. What waits for it waits for the next one.
    pub(super) fn gone(&self, index: usize, epoch: u64) {
        self.with(|state, then| {
            if state.workers[index].epoch == epoch {
                state.leave(index);
                if !state.workers[index].own.is_empty() || !state.common.is_empty() {
                    state.tell_front(then);
                }
            }
        });
    }

    /// The worker has been idle for long, and ends if it still is.
    pub(super) fn retire(&self, index: usize) -> bool {
        let mut state = lock(&self.state);
        let is_idle = state.idle.contains(&index) && state.phase == Phase::Open;
        debug_assert!(index >= state.always, "it always runs");
        if is_idle {
            state.leave(index);
        }
        is_idle
    }

    /// What the front does next: starts a worker, or waits.
    pub(super) fn next(&self) -> Next {
        let now = self.now();
        let mut state = lock(&self.state);
        let state = &mut *state;
        state.front_knows = false;
        if state.phase == Phase::Over || state.is_suspended {
            return Next::Wait(None);
        }
        let grows_at = state.grows_at(&self.limits);
        let is_due = match self.limits.patience {
            // Those that start take jobs of all.
            None => state.common.len() > state.starting() && state.idle.is_empty(),
            Some(_) => grows_at.is_some_and(|at| at <= now),
        };
        let is_wanted =
            |slot: &Slot<J, A>| slot.life == Life::Off && (is_due || !slot.own.is_empty());
        let mut slots = state.workers.iter().enumerate().skip(state.always);
        let Some((index, _)) = slots.find(|(_, slot)| is_wanted(slot)) else {
            state.front_knows = grows_at.is_some();
            return Next::Wait(grows_at);
        };
        state.workers[index].life = Life::Starts;
        state.grown = now;
        Next::Start(index)
    }

    pub(super) fn not_started(&self, index: usize) {
        if let Some(slot) = lock(&self.state).workers.get_mut(index)
            && slot.life == Life::Starts
        {
            slot.life = Life::Off;
        }
    }

    pub(super) fn suspend(&self, is_suspended: bool) {
        self.with(|state, then| {
            if state.phase != Phase::Drains {
                state.suspend(is_suspended, then);
            }
        });
    }

    /// No job is admitted any more, and those that were are carried out.
    pub(super) fn drain(&self) {
        self.with(|state, then| {
            if state.phase == Phase::Open {
                state.phase = Phase::Drains;
                if state.is_suspended {
                    state.suspend(false, then);
                }
            }
            state.look_at_drain(then);
        });
    }

    /// Whether nothing is left to do: what was admitted is done, and no more will be.
    pub(super) fn is_drained(&self) -> bool {
        lock(&self.state).is_drained()
    }

    /// Whether a stop was asked for, and not only the end of the workers.
    pub(super) fn drains(&self) -> bool {
        lock(&self.state).phase == Phase::Drains
    }

    /// The pool ends: what waits is refused.
    pub(super) fn end(&self) {
        self.with(|state, then| {
            state.phase = Phase::Over;
            while let Some(entry) = state.pop_oldest() {
                state.stats.refused += 1;
                then.refused.push((entry, PoolError::Stopping));
            }
        });
    }
}

impl<J, A> Queue<J, A> {
    pub(super) fn stats(&self) -> PoolStats {
        let state = lock(&self.state);
        let running = state.workers.iter().filter(|it| it.life == Life::Runs);
        PoolStats {
            workers: running.count(),
            idle: state.idle.len(),
            ..state.stats
        }
    }
}

impl<J, A> State<J, A> {
    /// Queues a job, and wakes the worker that it is for.
    fn put(
        &mut self,
        entry: Entry<J, A>,
        key: Option<u64>,
        by: Routing,
        limits: &Limits,
        then: &mut Then<J, A>,
    ) {
        self.stats.queued += 1;
        let index = match key {
            Some(key) => usize::try_from(key % self.workers.len() as u64).ok(),
            None => self.choose(by, limits),
        };
        let woken = match index {
            Some(index) => {
                self.workers[index].own.push_back(entry);
                if self.workers[index].life == Life::Off {
                    then.wakers.extend(self.front.clone());
                }
                let place = self.idle.iter().position(|it| *it == index);
                place.and_then(|place| self.idle.remove(place))
            }
            None => {
                self.common.push_back(entry);
                self.idle.pop_front()
            }
        };
        match woken.and_then(|index| self.workers[index].waker.clone()) {
            Some(waker) => then.waker = Some(waker),
            None if self.may_grow() => self.tell_front(then),
            None => {}
        }
    }

    /// The worker that gets a job without a key; `None` for the first that is free.
    fn choose(&mut self, by: Routing, limits: &Limits) -> Option<usize> {
        // Where workers are started by a rule, those that run share.
        let takes =
            |index: &usize| limits.patience.is_none() || self.workers[*index].life != Life::Off;
        let all = self.workers.len();
        match by {
            Routing::Free => None,
            Routing::RoundRobin => {
                let mut others = (1..=all).map(|step| (self.turn + step) % all);
                let index = others.find(takes)?;
                self.turn = index;
                Some(index)
            }
            Routing::Random => {
                let those = (0..all).filter(takes).count().max(1) as u64;
                // Of a linear congruential generator, the upper bits. (Knuth's MMIX)
                let random = self.random.wrapping_mul(6_364_136_223_846_793_005);
                let random = random.wrapping_add(1_442_695_040_888_963_407);
                let place = usize::try_from((random >> 32) % those).ok()?;
                let index = (0..all).filter(takes).nth(place);
                self.random = random;
                index
            }
            Routing::LeastLoaded => {
                let load = |index: &usize| {
                    let slot = &self.workers[*index];
                    slot.own.len() + usize::from(slot.is_busy)
                };
                (0..all).filter(takes).min_by_key(load)
            }
        }
    }

    fn pop(&mut self, index: usize) -> Option<Entry<J, A>> {
        if self.is_suspended || self.phase == Phase::Over {
            return None;
        }
        let own = self.workers[index].own.pop_front();
        let entry = own.or_else(|| self.common.pop_front())?;
        self.stats.queued -= 1;
        Some(entry)
    }

    /// The jobs that wait at the head of a queue.
    fn heads(&self) -> impl Iterator<Item = &Entry<J, A>> {
        let queues = self.workers.iter().map(|slot| &slot.own);
        queues.chain([&self.common]).filter_map(VecDeque::front)
    }

    /// The job that has waited longest.
    fn pop_oldest(&mut self) -> Option<Entry<J, A>> {
        let oldest = self.heads().map(|it| it.number).min()?;
        let queues = self.workers.iter_mut().map(|slot| &mut slot.own);
        let mut queues = queues.chain([&mut self.common]);
        let has_it =
            |it: &&mut VecDeque<Entry<J, A>>| it.front().is_some_and(|it| it.number == oldest);
        let entry = queues.find(has_it)?.pop_front()?;
        self.stats.queued -= 1;
        Some(entry)
    }

    /// The worker waits for a job.
    fn rest(&mut self, index: usize) {
        if !self.idle.contains(&index) {
            self.idle.push_back(index);
        }
    }

    /// The worker's job is over.
    fn over(&mut self, index: usize, count: impl FnOnce(&mut PoolStats)) {
        self.workers[index].is_busy = false;
        self.stats.in_flight -= 1;
        count(&mut self.stats);
    }

    fn leave(&mut self, index: usize) {
        self.idle.retain(|it| *it != index);
        let slot = &mut self.workers[index];
        slot.life = Life::Off;
        slot.waker = None;
    }

    fn starting(&self) -> usize {
        let starting = self.workers.iter().filter(|it| it.life == Life::Starts);
        starting.count()
    }

    /// Whether there is a worker that is started for jobs and does not run.
    fn may_grow(&self) -> bool {
        let some = &self.workers[self.always..];
        some.iter().any(|it| it.life == Life::Off)
    }

    /// With patience: when one more worker is to be started, as it stands.
    fn grows_at(&self, limits: &Limits) -> Option<Moment> {
        let patience = limits.patience?;
        if self.starting() > 0 || !self.idle.is_empty() || !self.may_grow() {
            return None;
        }
        let since = self.heads().map(|it| it.since).min()?;
        Some(since.max(self.grown).after(patience))
    }

    fn tell_front(&mut self, then: &mut Then<J, A>) {
        if !self.front_knows {
            self.front_knows = true;
            then.wakers.extend(self.front.clone());
        }
    }

    fn suspend(&mut self, is_suspended: bool, then: &mut Then<J, A>) {
        self.is_suspended = is_suspended;
        if !is_suspended {
            self.idle.clear();
            let wakers = self.workers.iter().filter_map(|it| it.waker.clone());
            then.wakers.extend(wakers);
            then.wakers.extend(self.front.clone());
        }
    }

    fn is_drained(&self) -> bool {
        self.phase != Phase::Open && self.stats.queued == 0 && self.stats.in_flight == 0
    }

    /// The front ends a pool that has nothing left to do.
    fn look_at_drain(&mut self, then: &mut Then<J, A>) {
        if self.is_drained() {
            then.wakers.extend(self.front.clone());
        }
    }
}
