//! The jobs that wait, and the workers that wait for jobs: all under one lock.
//!
//! Users' values are not dropped under the lock, and wakers are called outside of it.

use super::{Overload, PoolError, Routing};
use crate::log::contain;
use ganger_proc_api::Reply;
use ganger_sched::Moment;
use ganger_sync::sync::{Mutex, lock};
use std::collections::VecDeque;
use std::ops::Range;
use std::task::Waker;
use std::time::Duration;

/// A job that has been admitted.
pub(crate) struct Entry<J, A> {
    pub(crate) job: J,
    pub(crate) reply: Option<Reply<A>>,
    pub(crate) since: Moment,
    /// How often it was tried before.
    pub(crate) tries: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) most: usize,
    pub(super) overload: Overload,
    pub(super) time_to_live: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            most: usize::MAX,
            overload: Overload::Wait,
            time_to_live: None,
        }
    }
}

/// What has become of the jobs of a pool, and what is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PoolStats {
    /// Jobs that wait.
    pub queued: usize,
    /// Jobs that are being carried out.
    pub in_flight: usize,
    /// Workers that run.
    pub workers: usize,
    /// Those of them that wait for a job.
    pub idle: usize,
    /// Jobs that were carried out, with an answer or an error.
    pub served: u64,
    /// Jobs with which a worker panicked for good.
    pub panicked: u64,
    /// Jobs that were put back after a panic.
    pub retried: u64,
    /// Jobs that were refused because too many waited, or the pool was stopping.
    pub refused: u64,
    /// Jobs that had waited too long.
    pub expired: u64,
    /// Jobs whose callers had left before they were begun.
    pub left: u64,
}

pub(crate) struct Queue<J, A> {
    state: Mutex<State<J, A>>,
    routing: Routing,
    limits: Limits,
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
    next: usize,
    front: Option<Waker>,
    stats: PoolStats,
}

struct Slot<J, A> {
    /// Jobs for this worker alone.
    own: VecDeque<Entry<J, A>>,
    life: Life,
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
    Open,
    /// What has been admitted is carried out.
    Drains,
    Over,
}

/// What is to be done outside of the lock.
struct Then<J, A> {
    wakers: Vec<Waker>,
    refused: Vec<(Entry<J, A>, PoolError)>,
    left: Vec<Entry<J, A>>,
}

impl<J, A> Default for Then<J, A> {
    fn default() -> Self {
        Self {
            wakers: Vec::new(),
            refused: Vec::new(),
            left: Vec::new(),
        }
    }
}

impl<J, A: Send + 'static> Then<J, A> {
    fn carry_out(self) {
        for (entry, error) in self.refused {
            let Entry { job, reply, .. } = entry;
            if let Some(reply) = reply {
                reply.fail(error);
            }
            // A destructor that panics takes nothing else along.
            let _ = contain(|| drop(job));
        }
        for entry in self.left {
            let _ = contain(|| drop(entry));
        }
        for waker in self.wakers {
            waker.wake();
        }
    }
}

impl<J: Send + 'static, A: Send + 'static> Queue<J, A> {
    pub(super) fn new(routing: Routing, workers: Range<usize>, limits: Limits) -> Self {
        let slot = |_| Slot {
            own: VecDeque::new(),
            life: Life::Off,
            is_busy: false,
            waker: None,
        };
        let state = Mutex::new(State {
            common: VecDeque::new(),
            workers: (0..workers.end).map(slot).collect(),
            idle: VecDeque::new(),
            always: workers.start,
            phase: Phase::Open,
            is_suspended: false,
            next: 0,
            front: None,
            stats: PoolStats::default(),
        });
        Self {
            state,
            routing,
            limits,
        }
    }

    pub(super) fn set_front(&self, front: Waker) {
        lock(&self.state).front = Some(front);
    }

    /// Admits a job, or refuses it.
    pub(super) fn admit(&self, entry: Entry<J, A>, key: Option<u64>) {
        let mut then = Then::<J, A>::default();
        let mut state = lock(&self.state);
        let queued = state.stats.queued;
        if state.phase != Phase::Open {
            state.stats.refused += 1;
            then.refused.push((entry, PoolError::Stopping));
        } else if queued >= self.limits.most && self.limits.overload == Overload::RefuseNewest {
            state.stats.refused += 1;
            then.refused.push((entry, PoolError::Full { queued }));
        } else {
            if queued >= self.limits.most
                && self.limits.overload == Overload::RefuseOldest
                && let Some(oldest) = state.pop_oldest()
            {
                state.stats.refused += 1;
                then.refused.push((oldest, PoolError::Full { queued }));
            }
            state.put(entry, key, self.routing, &mut then);
        }
        drop(state);
        then.carry_out();
    }

    /// The next job for that worker, which is idle if there is none.
    pub(super) fn take(&self, index: usize, now: Moment) -> Option<Entry<J, A>> {
        let mut then = Then::<J, A>::default();
        let mut state = lock(&self.state);
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
        state.look_at_drain(&mut then);
        drop(state);
        then.carry_out();
        taken
    }

    /// The worker has carried a job out.
    pub(super) fn served(&self, index: usize) {
        self.over(index, |stats| stats.served += 1, None);
    }

    /// The worker has panicked with a job, which is to be tried again if it is here.
    pub(super) fn panicked(&self, index: usize, again: Option<Entry<J, A>>) {
        let is_again = again.is_some();
        let count = |stats: &mut PoolStats| {
            stats.retried += u64::from(is_again);
            stats.panicked += u64::from(!is_again);
        };
        self.over(index, count, again);
    }

    fn over(&self, index: usize, count: impl FnOnce(&mut PoolStats), again: Option<Entry<J, A>>) {
        let mut then = Then::<J, A>::default();
        let mut state = lock(&self.state);
        state.workers[index].is_busy = false;
        state.stats.in_flight -= 1;
        count(&mut state.stats);
        if let Some(entry) = again {
            state.stats.queued += 1;
            state.workers[index].own.push_front(entry);
        }
        state.look_at_drain(&mut then);
        drop(state);
        then.carry_out();
    }

    /// The worker begins.
    pub(super) fn begin(&self, index: usize, waker: Waker) {
        let slot = &mut lock(&self.state).workers[index];
        slot.life = Life::Runs;
        slot.waker = Some(waker);
    }

    /// The worker has ended. What waits for it waits for the next one.
    pub(super) fn gone(&self, index: usize) {
        let mut then = Then::<J, A>::default();
        let mut state = lock(&self.state);
        state.leave(index);
        if !state.workers[index].own.is_empty() || !state.common.is_empty() {
            then.wakers.extend(state.front.clone());
        }
        drop(state);
        then.carry_out();
    }

    /// The worker has been idle for long, and ends if it still is.
    pub(super) fn retire(&self, index: usize) -> bool {
        let mut state = lock(&self.state);
        let is_idle = state.idle.contains(&index) && state.phase == Phase::Open;
        if is_idle {
            state.leave(index);
        }
        is_idle
    }

    /// The next worker that is to be started, because there are jobs for it.
    pub(super) fn next_to_start(&self) -> Option<usize> {
        let mut state = lock(&self.state);
        let state = &mut *state;
        if state.phase == Phase::Over || state.is_suspended {
            return None;
        }
        // Those that start take jobs of all.
        let starting = state.workers.iter().filter(|it| it.life == Life::Starts);
        let has_common = state.common.len() > starting.count() && state.idle.is_empty();
        let always = state.always;
        let mut slots = state.workers.iter_mut().enumerate().skip(always);
        let (index, slot) = slots
            .find(|(_, slot)| slot.life == Life::Off && (has_common || !slot.own.is_empty()))?;
        slot.life = Life::Starts;
        Some(index)
    }

    pub(super) fn not_started(&self, index: usize) {
        if let Some(slot) = lock(&self.state).workers.get_mut(index)
            && slot.life == Life::Starts
        {
            slot.life = Life::Off;
        }
    }

    pub(super) fn suspend(&self, is_suspended: bool) {
        let mut then = Then::<J, A>::default();
        let mut state = lock(&self.state);
        state.is_suspended = is_suspended;
        if !is_suspended {
            state.idle.clear();
            let wakers = state.workers.iter().filter_map(|it| it.waker.clone());
            then.wakers.extend(wakers);
            then.wakers.extend(state.front.clone());
        }
        drop(state);
        then.carry_out();
    }

    /// No job is admitted any more.
    pub(super) fn drain(&self) {
        let mut then = Then::<J, A>::default();
        let mut state = lock(&self.state);
        if state.phase == Phase::Open {
            state.phase = Phase::Drains;
        }
        state.look_at_drain(&mut then);
        drop(state);
        then.carry_out();
    }

    pub(super) fn is_drained(&self) -> bool {
        let state = lock(&self.state);
        state.phase == Phase::Drains && state.stats.queued == 0 && state.stats.in_flight == 0
    }

    /// The pool ends: what waits is refused.
    pub(super) fn end(&self) {
        let mut then = Then::<J, A>::default();
        let mut state = lock(&self.state);
        state.phase = Phase::Over;
        while let Some(entry) = state.pop_oldest() {
            state.stats.refused += 1;
            then.refused.push((entry, PoolError::Stopping));
        }
        drop(state);
        then.carry_out();
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
    fn put(&mut self, entry: Entry<J, A>, key: Option<u64>, by: Routing, then: &mut Then<J, A>) {
        self.stats.queued += 1;
        let workers = self.workers.len();
        let index = match (key, by) {
            (Some(key), _) => usize::try_from(key % workers as u64).ok(),
            (None, Routing::Free) => None,
            (None, Routing::RoundRobin) => {
                self.next = (self.next + 1) % workers;
                Some(self.next)
            }
            (None, Routing::LeastLoaded) => {
                let load = |slot: &Slot<J, A>| slot.own.len() + usize::from(slot.is_busy);
                (0..workers).min_by_key(|index| load(&self.workers[*index]))
            }
        };
        let woken = match index {
            Some(index) => {
                self.workers[index].own.push_back(entry);
                let place = self.idle.iter().position(|it| *it == index);
                place.and_then(|place| self.idle.remove(place))
            }
            None => {
                self.common.push_back(entry);
                self.idle.pop_front()
            }
        };
        let waker = woken.and_then(|index| self.workers[index].waker.clone());
        then.wakers.extend(waker);
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

    /// The job that has waited longest.
    fn pop_oldest(&mut self) -> Option<Entry<J, A>> {
        let first = |queue: &VecDeque<Entry<J, A>>| queue.front().map(|it| it.since);
        let queues = self.workers.iter_mut().map(|slot| &mut slot.own);
        let queues = queues.chain([&mut self.common]);
        let oldest = queues
            .filter(|it| !it.is_empty())
            .min_by_key(|it| first(it))?;
        let entry = oldest.pop_front()?;
        self.stats.queued -= 1;
        Some(entry)
    }

    /// The worker waits for a job.
    fn rest(&mut self, index: usize) {
        if !self.idle.contains(&index) {
            self.idle.push_back(index);
        }
    }

    fn leave(&mut self, index: usize) {
        self.idle.retain(|it| *it != index);
        let slot = &mut self.workers[index];
        slot.life = Life::Off;
        slot.waker = None;
    }

    /// The front ends a pool that has nothing left to do.
    fn look_at_drain(&mut self, then: &mut Then<J, A>) {
        if self.phase == Phase::Drains && self.stats.queued == 0 && self.stats.in_flight == 0 {
            then.wakers.extend(self.front.clone());
        }
    }
}
