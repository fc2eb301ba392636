//! Waiting jobs and idle workers, under two locks: see [`inbox`].
//!
//! Users' values are not dropped under a lock, and wakers are called outside of both.

mod delayed;
mod inbox;
mod line;
mod lines;
mod phase;
mod slot;
mod state;
mod then;

pub(super) use self::phase::Next;

use self::inbox::Inbox;
use self::phase::Phase;
use self::slot::{Life, Slot};
use self::state::State;
use self::then::Then;
use super::entry::{Limits, LineOf, PoolStats, Queued, Refusal, START};
use super::error::{OnRefused, PoolError};
use super::policy::{Overload, Routing};
use crate::log::contain;
use ganger_proc_api::{BoxError, EndWatch, Pid, Reply};
use ganger_sched::Instant;
use ganger_sync::sync::{Mutex, lock};
use ganger_time::Timers;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::task::Waker;

pub(crate) struct Queue<J, A> {
    inbox: Apart<Mutex<Inbox<J, A>>>,
    state: Apart<Mutex<State<J, A>>>,
    /// Jobs without a key come through the inbox alone: all workers run, and the order of the calls
    /// is the only rule.
    is_plain: bool,
    routing: Routing,
    limits: Limits,
    on_refused: Option<OnRefused<J>>,
    /// Known when the pool has been started.
    timers: OnceLock<Timers>,
}

impl<J: Send + 'static, A: Send + 'static> Queue<J, A> {
    pub(super) fn new(
        routing: Routing,
        workers: Range<usize>,
        limits: Limits,
        on_refused: Option<OnRefused<J>>,
    ) -> Self {
        let is_plain = routing == Routing::Free && limits.is_plain() && workers.is_empty();
        Self {
            inbox: Apart(Mutex::new(Inbox::new())),
            state: Apart(Mutex::new(State::new(workers, limits.priorities))),
            is_plain,
            routing,
            limits,
            on_refused,
            timers: OnceLock::new(),
        }
    }

    /// Calls `f` under both locks, and does afterwards the work that `f` has put off.
    fn with<R>(
        &self,
        f: impl FnOnce(&mut State<J, A>, &mut Inbox<J, A>, &mut Then<J, A>) -> R,
    ) -> R {
        let mut then = Then::new();
        let mut state = lock(&self.state.0);
        let mut inbox = lock(&self.inbox.0);
        let result = f(&mut state, &mut inbox, &mut then);
        inbox.is_direct = self.is_plain && state.is_direct();
        inbox.has_idle = !inbox.idle.is_empty();
        drop((inbox, state));
        then.carry_out(self.on_refused.as_ref());
        result
    }

    /// Calls `f` as [`with`](Self::with) does, with all admitted jobs in their lines.
    fn with_lines<R>(
        &self,
        f: impl FnOnce(&mut State<J, A>, &mut Inbox<J, A>, &mut Then<J, A>) -> R,
    ) -> R {
        self.with(|state, inbox, then| {
            state.let_in(inbox);
            f(state, inbox, then)
        })
    }

    fn now(&self) -> Instant {
        match self.timers.get() {
            Some(timers) if self.limits.has_times() => timers.now(),
            _ => START,
        }
    }

    /// Sets the owner of the pool, which begins. The processes of its predecessor have ended.
    pub(super) fn set_owner(&self, owner: Pid, timers: Timers) {
        let mut state = lock(&self.state.0);
        state.owner = Some(owner);
        state.workers.iter_mut().for_each(Slot::clear);
        drop(state);
        self.timers.get_or_init(|| timers);
    }

    pub(super) fn owner(&self) -> Option<Pid> {
        lock(&self.state.0).owner
    }

    /// Opens the queue, which admits jobs from now on.
    pub(super) fn open(&self, front: Waker) {
        self.with(|state, inbox, _| {
            state.front = Some(front);
            state.front_knows = true;
            state.phase = Phase::Open;
            inbox.is_open = true;
        });
    }

    /// Returns the number of higher priorities.
    pub(super) fn rank(&self, priority: usize) -> usize {
        (self.limits.priorities - 1).saturating_sub(priority)
    }

    /// Admits a job, or gives it back.
    pub(super) fn try_admit(
        self: &Arc<Self>,
        mut entry: Queued<J, A>,
        key: Option<u64>,
    ) -> Result<(), Refusal<J, A>> {
        if self.is_plain && key.is_none() {
            let added = inbox::pass(&self.inbox.0).add(entry);
            match added {
                Ok(waker) => {
                    if let Some(waker) = waker {
                        waker.wake();
                    }
                    return Ok(());
                }
                Err(refused) => entry = refused,
            }
        }
        self.try_put(entry, key)
    }

    /// Puts a job into its line, or gives it back.
    fn try_put(
        self: &Arc<Self>,
        mut entry: Queued<J, A>,
        key: Option<u64>,
    ) -> Result<(), Refusal<J, A>> {
        entry.since = self.now();
        let limits = &self.limits;
        self.with_lines(|state, inbox, then| {
            if state.phase != Phase::Open {
                state.stats.refused += 1;
                return Err((entry, PoolError::Stopping));
            }
            if state.stats.queued >= limits.most
                && limits.overload != Overload::Wait
                && let Err(error) = self.make_room(entry.rank, inbox.admitted, state, then)
            {
                return Err((entry, error));
            }
            state.put(entry, key, self.routing, limits, inbox, then);
            Ok(())
        })
    }

    /// Makes room for a job of this rank in a full queue, or says why it has none.
    #[cold]
    fn make_room(
        self: &Arc<Self>,
        rank: usize,
        admitted: u64,
        state: &mut State<J, A>,
        then: &mut Then<J, A>,
    ) -> Result<(), PoolError> {
        let watch = |reply: &_, of, number| self.watch(reply, of, number);
        state.look_at_callers(admitted, &watch, then);
        let queued = state.stats.queued;
        if queued < self.limits.most {
            return Ok(());
        }
        state.stats.refused += 1;
        let error = PoolError::Full { queued };
        let other = match self.limits.overload {
            Overload::RefuseOldest => state.pop_oldest(rank),
            Overload::RefuseNewest => state.pop_newest(rank),
            Overload::Wait => None,
        };
        match other {
            Some(other) => {
                then.rare().refused.push((other, error));
                Ok(())
            }
            None => Err(error),
        }
    }

    /// Admits a job that this thread runs at once, or gives it back.
    pub(super) fn try_begin(&self, entry: Queued<J, A>) -> Result<Queued<J, A>, Refusal<J, A>> {
        self.with(|state, inbox, _| {
            let queued = inbox.in_flight;
            let waits = self.limits.overload == Overload::Wait;
            let error = match state.phase {
                Phase::Open if waits || queued < self.limits.most => {
                    inbox.in_flight += 1;
                    return Ok(entry);
                }
                Phase::Open => PoolError::Full { queued },
                Phase::Over | Phase::Drains => PoolError::Stopping,
            };
            state.stats.refused += 1;
            Err((entry, error))
        })
    }

    /// Counts a job as run, by the thread that has begun the job.
    pub(super) fn done(&self, count: impl FnOnce(&mut PoolStats)) {
        self.with(|state, inbox, then| {
            inbox.in_flight -= 1;
            count(&mut state.stats);
            state.look_at_drain(inbox, then);
        });
    }

    /// Tells the caller and the pool's handler that the pool refuses the job.
    pub(super) fn refuse(&self, refusal: Refusal<J, A>) {
        let mut then = Then::new();
        then.rare().refused.push(refusal);
        then.carry_out(self.on_refused.as_ref());
    }

    /// Takes the next job for a worker, which is idle without any. `served`: the worker has
    /// completed a job since the last call.
    pub(super) fn take(&self, index: usize, served: bool) -> Option<Queued<J, A>> {
        let mut served = served;
        while let Some(entry) = self.take_direct(&mut served) {
            if !entry.has_left() {
                return Some(entry);
            }
            self.over(index, |stats| stats.left += 1);
            // Its destructor may be a user's.
            let _ = contain(|| drop(entry));
        }
        self.take_from_lines(index, served)
    }

    /// Takes the first job, if any, and if all jobs are in the inbox.
    #[inline]
    fn take_direct(&self, served: &mut bool) -> Option<Queued<J, A>> {
        if !self.is_plain {
            return None;
        }
        let mut inbox = inbox::pass_worker(&self.inbox.0);
        if !inbox.is_direct {
            return None;
        }
        if std::mem::take(served) {
            inbox.count_served();
        }
        inbox.begin_first()
    }

    fn take_from_lines(&self, index: usize, served: bool) -> Option<Queued<J, A>> {
        let now = self.now();
        self.with(|state, inbox, then| {
            if served {
                state.over(index, inbox, |stats| stats.served += 1);
            }
            let taken = loop {
                let Some((of, entry)) = state.head(index) else {
                    if !state.is_suspended && state.let_first_in(inbox) {
                        continue;
                    }
                    state.rest(index, inbox);
                    break None;
                };
                let is_old = entry.tries == 0 && self.limits.expiry(entry) <= now;
                if entry.has_left() || is_old {
                    let entry = state.pop(of);
                    entry.into_iter().for_each(|it| state.give_up(it, then));
                } else {
                    state.workers[index].is_busy = true;
                    inbox.in_flight += 1;
                    break state.pop(of);
                }
            };
            state.look_at_drain(inbox, then);
            taken
        })
    }

    /// Notes that the worker has completed a job, and takes no other job now.
    pub(super) fn served(&self, index: usize) {
        let mut inbox = lock(&self.inbox.0);
        if inbox.is_direct {
            inbox.count_served();
        } else {
            drop(inbox);
            self.over(index, |stats| stats.served += 1);
        }
    }

    /// Notes that the worker has panicked with a job.
    pub(super) fn panicked(&self, index: usize) {
        self.over(index, |stats| stats.panicked += 1);
    }

    #[cold]
    fn over(&self, index: usize, count: impl FnOnce(&mut PoolStats)) {
        self.with(|state, inbox, then| {
            state.over(index, inbox, count);
            state.look_at_drain(inbox, then);
        });
    }

    /// Gives another try to a job with which the worker has failed.
    pub(super) fn again(self: &Arc<Self>, index: usize, entry: Queued<J, A>) {
        let now = self.now();
        self.with_lines(|state, inbox, then| {
            state.over(index, inbox, |stats| stats.retried += 1);
            let watch = |reply: &_, of, number| self.watch(reply, of, number);
            match self.limits.retry {
                None => state.put_back(entry, index, &watch, then),
                Some(back_off) => {
                    // Any number from 0 to 1 will do.
                    let chance = (now.as_nanos() % 1_000) as f64 / 999.0;
                    let wait = back_off.wait(entry.tries - 1, chance);
                    state.put_off(entry, now.after(wait), &watch, inbox, then);
                }
            }
            state.look_at_drain(inbox, then);
        });
    }

    /// Notes that the worker begins, in this process.
    pub(super) fn begin(&self, index: usize, pid: Pid, waker: Waker) -> Result<(), BoxError> {
        self.with(|state, _, then| {
            let slot = &mut state.workers[index];
            if slot.life == Life::Runs {
                return Err("another process has the place of this worker".into());
            }
            if slot.pid != Some(pid) {
                slot.clear();
                slot.pid = Some(pid);
                if index >= state.always {
                    state.tell_front(then);
                }
            }
            let slot = &mut state.workers[index];
            (slot.life, slot.waker) = (Life::Runs, Some(waker));
            Ok(())
        })
    }

    /// Ends a worker that has been idle for long, if the worker still is idle.
    pub(super) fn retire(&self, index: usize) -> bool {
        let (is_idle, _wakers) = self.with(|state, inbox, _| {
            debug_assert!(index >= state.always, "it always runs");
            let is_idle = inbox.is_idle(index) && state.phase == Phase::Open;
            (is_idle, is_idle.then(|| state.close(index, inbox)))
        });
        is_idle
    }

    /// Notes that the process of a temporary worker has ended.
    pub(super) fn ended(&self, index: usize, pid: Pid) {
        if let Some(slot) = lock(&self.state.0).workers.get_mut(index)
            && slot.pid == Some(pid)
        {
            slot.clear();
        }
    }

    /// Notes that the start of a worker has failed.
    pub(super) fn not_started(&self, index: usize) {
        if let Some(slot) = lock(&self.state.0).workers.get_mut(index)
            && slot.life == Life::Starts
        {
            slot.life = Life::Off;
        }
    }

    /// Expires old jobs, and returns the front's next act. Without `may_start` no worker starts.
    pub(super) fn next(&self, may_start: bool) -> Next {
        let now = self.now();
        self.with_lines(|state, inbox, then| {
            state.expire(&self.limits, now, then);
            state.release(now, inbox, then);
            state.next(&self.limits, now, may_start, !inbox.idle.is_empty())
        })
    }

    /// Watches for the caller's leave: see [`Watch`](super::entry::Watch).
    fn watch(self: &Arc<Self>, reply: &Reply<A>, of: LineOf, number: u64) -> Option<EndWatch> {
        let queue = Arc::downgrade(self);
        reply.on_end(move || {
            if let Some(queue) = queue.upgrade() {
                queue.with(|state, inbox, then| {
                    state.left(of, number, then);
                    state.look_at_drain(inbox, then);
                });
            }
        })
    }

    pub(super) fn suspend(&self, is_suspended: bool) {
        self.with_lines(|state, inbox, then| {
            if state.phase != Phase::Drains {
                state.suspend(is_suspended, inbox, then);
            }
        });
    }

    /// Drains the queue, which refuses new jobs; workers complete the admitted jobs.
    pub(super) fn drain(&self) {
        self.with_lines(|state, inbox, then| {
            if state.phase == Phase::Open {
                state.phase = Phase::Drains;
                inbox.is_open = false;
                state.release(Instant::NEVER, inbox, then);
                if state.is_suspended {
                    state.suspend(false, inbox, then);
                }
            }
            state.look_at_drain(inbox, then);
        });
    }

    /// Returns whether all admitted jobs are done, and no further job comes.
    pub(super) fn is_drained(&self) -> bool {
        self.with(|state, inbox, _| state.is_drained(inbox))
    }

    /// Returns whether the pool is stopping on request, and not by the end of its workers.
    pub(super) fn drains(&self) -> bool {
        lock(&self.state.0).phase == Phase::Drains
    }

    /// Ends the pool, and refuses the waiting jobs.
    pub(super) fn end(&self) {
        self.with_lines(|state, inbox, then| {
            state.phase = Phase::Over;
            inbox.is_open = false;
            while let Some(entry) = state.pop_oldest(0).or_else(|| state.pop_delayed()) {
                state.stats.refused += 1;
                then.rare().refused.push((entry, PoolError::Stopping));
            }
        });
    }
}

impl<J, A> Queue<J, A> {
    /// Notes that the worker has ended; its process may get another worker. The worker's line
    /// stays.
    pub(super) fn gone(&self, index: usize) {
        let mut state = lock(&self.state.0);
        let wakers = state.close(index, &mut lock(&self.inbox.0));
        drop(state);
        drop(wakers);
    }

    pub(super) fn stats(&self) -> PoolStats {
        let state = lock(&self.state.0);
        let inbox = lock(&self.inbox.0);
        let running = state.workers.iter().filter(|it| it.life == Life::Runs);
        PoolStats {
            queued: state.stats.queued + inbox.jobs.len(),
            in_flight: inbox.in_flight,
            served: state.stats.served + inbox.served,
            workers: running.count(),
            idle: inbox.idle.len(),
            ..state.stats
        }
    }
}

/// A value on cache lines of its own, with the line that the processor fetches beside it.
#[repr(align(128))]
struct Apart<T>(T);
