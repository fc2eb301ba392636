//! Waiting jobs and idle workers, under a single lock.
//!
//! Users' values are not dropped under the lock, and wakers are called outside of it.

mod delayed;
mod line;
mod lines;
mod slot;
mod state;
mod then;

pub(super) use self::state::Next;

use self::slot::{Life, Slot};
use self::state::{Phase, State};
use self::then::Then;
use super::entry::{Entry, Limits, LineOf, PoolStats, Refusal, START};
use super::error::{OnRefused, PoolError};
use super::policy::{Overload, Routing};
use ganger_proc_api::{BoxError, EndWatch, Pid, Reply};
use ganger_sched::Instant;
use ganger_sync::sync::{Mutex, lock};
use ganger_time::Timers;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::task::Waker;

pub(crate) struct Queue<J, A> {
    state: Mutex<State<J, A>>,
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
        let state = Mutex::new(State::new(workers, limits.priorities));
        Self {
            state,
            routing,
            limits,
            on_refused,
            timers: OnceLock::new(),
        }
    }

    /// Calls `f` under the lock, and does afterwards the work that `f` has put off.
    fn with<R>(&self, f: impl FnOnce(&mut State<J, A>, &mut Then<J, A>) -> R) -> R {
        let mut then = Then::default();
        let result = f(&mut lock(&self.state), &mut then);
        then.carry_out(self.on_refused.as_ref());
        result
    }

    fn now(&self) -> Instant {
        match self.timers.get() {
            Some(timers) if self.limits.has_times() => timers.now(),
            _ => START,
        }
    }

    /// The pool begins. The processes of its predecessor have ended.
    pub(super) fn set_owner(&self, owner: Pid, timers: Timers) {
        let mut state = lock(&self.state);
        state.owner = Some(owner);
        state.workers.iter_mut().for_each(Slot::clear);
        drop(state);
        self.timers.get_or_init(|| timers);
    }

    pub(super) fn owner(&self) -> Option<Pid> {
        lock(&self.state).owner
    }

    /// The queue admits jobs from now on.
    pub(super) fn open(&self, front: Waker) {
        let mut state = lock(&self.state);
        state.front = Some(front);
        state.front_knows = true;
        state.phase = Phase::Open;
    }

    /// The number of higher priorities.
    pub(super) fn rank(&self, priority: usize) -> usize {
        (self.limits.priorities - 1).saturating_sub(priority)
    }

    /// Admits a job, or gives it back.
    pub(super) fn try_admit(
        self: &Arc<Self>,
        mut entry: Entry<J, A>,
        key: Option<u64>,
    ) -> Result<(), Refusal<J, A>> {
        entry.since = self.now();
        let limits = &self.limits;
        self.with(|state, then| {
            if state.phase != Phase::Open {
                state.stats.refused += 1;
                return Err((entry, PoolError::Stopping));
            }
            if state.stats.queued >= limits.most
                && limits.overload != Overload::Wait
                && let Err(error) = self.make_room(entry.rank, state, then)
            {
                return Err((entry, error));
            }
            state.put(entry, key, self.routing, limits, then);
            Ok(())
        })
    }

    /// Makes room for a job of this rank in a full queue, or says why it has none.
    #[cold]
    fn make_room(
        self: &Arc<Self>,
        rank: usize,
        state: &mut State<J, A>,
        then: &mut Then<J, A>,
    ) -> Result<(), PoolError> {
        state.look_at_callers(&|reply, of, number| self.watch(reply, of, number), then);
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
                then.refused.push((other, error));
                Ok(())
            }
            None => Err(error),
        }
    }

    /// Admits a job that this thread runs at once, or gives it back.
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

    /// The thread that has begun a job has run it.
    pub(super) fn done(&self, count: impl FnOnce(&mut PoolStats)) {
        self.with(|state, then| {
            state.stats.in_flight -= 1;
            count(&mut state.stats);
            state.look_at_drain(then);
        });
    }

    /// Tells the caller and the pool's handler that the pool refuses the job.
    pub(super) fn refuse(&self, refusal: Refusal<J, A>) {
        let refused = vec![refusal];
        let then = Then {
            refused,
            ..Then::default()
        };
        then.carry_out(self.on_refused.as_ref());
    }

    /// The next job for a worker, which is idle without any. `served`: the worker has completed a
    /// job since the last call.
    pub(super) fn take(&self, index: usize, served: bool) -> Option<Entry<J, A>> {
        let now = self.now();
        self.with(|state, then| {
            if served {
                state.over(index, |stats| stats.served += 1);
            }
            let taken = loop {
                let Some((of, entry)) = state.head(index) else {
                    state.rest(index);
                    break None;
                };
                let is_old = entry.tries == 0 && self.limits.expiry(entry) <= now;
                if entry.has_left() || is_old {
                    let entry = state.pop(of);
                    entry.into_iter().for_each(|it| state.give_up(it, then));
                } else {
                    state.workers[index].is_busy = true;
                    state.stats.in_flight += 1;
                    break state.pop(of);
                }
            };
            state.look_at_drain(then);
            taken
        })
    }

    /// The worker has completed a job, and takes no other job now.
    pub(super) fn served(&self, index: usize) {
        self.with(|state, then| {
            state.over(index, |stats| stats.served += 1);
            state.look_at_drain(then);
        });
    }

    /// The worker has panicked with a job.
    pub(super) fn panicked(&self, index: usize) {
        self.with(|state, then| {
            state.over(index, |stats| stats.panicked += 1);
            state.look_at_drain(then);
        });
    }

    /// The worker has failed with a job, which gets another try.
    pub(super) fn again(self: &Arc<Self>, index: usize, entry: Entry<J, A>) {
        let now = self.now();
        self.with(|state, then| {
            state.over(index, |stats| stats.retried += 1);
            let watch = |reply: &_, of, number| self.watch(reply, of, number);
            match self.limits.retry {
                None => state.put_back(entry, index, &watch, then),
                Some(back_off) => {
                    // Any number from 0 to 1 will do.
                    let chance = (now.as_nanos() % 1_000) as f64 / 999.0;
                    let wait = back_off.wait(entry.tries - 1, chance);
                    state.put_off(entry, now.after(wait), &watch, then);
                }
            }
            state.look_at_drain(then);
        });
    }

    /// The worker begins, in this process.
    pub(super) fn begin(&self, index: usize, pid: Pid, waker: Waker) -> Result<(), BoxError> {
        self.with(|state, then| {
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

    /// The worker has been idle for long, and ends if it still is.
    pub(super) fn retire(&self, index: usize) -> bool {
        let mut state = lock(&self.state);
        let is_idle = state.idle.contains(&index) && state.phase == Phase::Open;
        debug_assert!(index >= state.always, "it always runs");
        if is_idle {
            state.close(index);
        }
        is_idle
    }

    /// The process of a temporary worker has ended.
    pub(super) fn ended(&self, index: usize, pid: Pid) {
        if let Some(slot) = lock(&self.state).workers.get_mut(index)
            && slot.pid == Some(pid)
        {
            slot.clear();
        }
    }

    /// The start of a worker has failed.
    pub(super) fn not_started(&self, index: usize) {
        if let Some(slot) = lock(&self.state).workers.get_mut(index)
            && slot.life == Life::Starts
        {
            slot.life = Life::Off;
        }
    }

    /// Expires old jobs, and returns the front's next act. Without `may_start` no worker starts.
    pub(super) fn next(&self, may_start: bool) -> Next {
        let now = self.now();
        self.with(|state, then| {
            state.expire(&self.limits, now, then);
            state.release(now, then);
            state.next(&self.limits, now, may_start)
        })
    }

    /// See [`Watch`](super::entry::Watch).
    fn watch(self: &Arc<Self>, reply: &Reply<A>, of: LineOf, number: u64) -> Option<EndWatch> {
        let queue = Arc::downgrade(self);
        reply.on_end(move || {
            if let Some(queue) = queue.upgrade() {
                queue.with(|state, then| state.left(of, number, then));
            }
        })
    }

    pub(super) fn suspend(&self, is_suspended: bool) {
        self.with(|state, then| {
            if state.phase != Phase::Drains {
                state.suspend(is_suspended, then);
            }
        });
    }

    /// The queue refuses new jobs; workers complete the admitted jobs.
    pub(super) fn drain(&self) {
        self.with(|state, then| {
            if state.phase == Phase::Open {
                state.phase = Phase::Drains;
                state.release(Instant::NEVER, then);
                if state.is_suspended {
                    state.suspend(false, then);
                }
            }
            state.look_at_drain(then);
        });
    }

    /// Whether all admitted jobs are done, and no further job comes.
    pub(super) fn is_drained(&self) -> bool {
        lock(&self.state).is_drained()
    }

    /// Whether the pool is stopping on request, and not by the end of its workers.
    pub(super) fn drains(&self) -> bool {
        lock(&self.state).phase == Phase::Drains
    }

    /// The pool ends, and refuses the waiting jobs.
    pub(super) fn end(&self) {
        self.with(|state, then| {
            state.phase = Phase::Over;
            while let Some(entry) = state.pop_oldest(0).or_else(|| state.pop_delayed()) {
                state.stats.refused += 1;
                then.refused.push((entry, PoolError::Stopping));
            }
        });
    }
}

impl<J, A> Queue<J, A> {
    /// The worker has ended, and its process may get another worker. The worker's line stays.
    pub(super) fn gone(&self, index: usize) {
        lock(&self.state).close(index);
    }

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
