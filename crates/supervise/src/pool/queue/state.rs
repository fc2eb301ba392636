//! What the lock of the [`Queue`](super::Queue) guards: lines of jobs, and the places of the
//! workers.
//!
//! **Places.** A place has one process at a time. The front starts it, sees it in its place, and
//! hears of its end by a monitor. Until then the place is taken, also between two lives of a worker
//! that is replaced in place, which may last.
//!
//! **Lines.** A line has its jobs in the order of their admission, which is that of their numbers.
//! A job that is tried again has the number that it had: that is lower than those of the jobs that
//! wait for its worker alone, since the worker takes these first. So each line begins with its
//! oldest, and a job in its middle is found by its number when its caller leaves. With priorities,
//! each has lines of its own. A job that waits before its next try is in no line, and has a place
//! nevertheless.
//!
//! **Callers that leave.** A worker that takes a job asks whether its caller is there, which is
//! enough while there are places. When there is none, the queue looks at all callers that it has
//! not seen, and has each of them tell it of its leaving from then on: once for each job.

use super::delayed::Delayed;
use super::line::Line;
use super::lines::Lines;
use super::slot::{Life, Slot};
use super::then::Then;
use crate::pool::entry::{Entry, Limits, LineOf, PoolStats, START, Watch};
use crate::pool::error::PoolError;
use crate::pool::policy::Routing;
use ganger_proc_api::Pid;
use ganger_sched::Instant;
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::ops::Range;
use std::task::Waker;

pub(super) struct State<J, A> {
    /// Jobs for the first worker that is free.
    common: Lines<J, A>,
    /// Jobs that wait for their next try.
    delayed: Delayed<J, A>,
    pub(super) workers: Vec<Slot<J, A>>,
    /// The workers that wait for a job, the longest-waiting first: at most `workers.len()` numbers,
    /// for which a `WaitTable` would need a key in each slot.
    pub(super) idle: VecDeque<usize>,
    /// Workers from this number on are started for jobs.
    pub(super) always: usize,
    pub(super) phase: Phase,
    pub(super) is_suspended: bool,
    /// The worker that had the last turn.
    turn: usize,
    random: u64,
    admitted: u64,
    /// The callers of jobs with lower numbers tell of their leaving.
    watched: u64,
    /// With patience: when a worker was started for a job last.
    grown: Instant,
    /// The front has been told that it may have something to do, and has not looked yet.
    pub(super) front_knows: bool,
    /// When the front looks by itself.
    front_looks: Instant,
    pub(super) front: Option<Waker>,
    /// The pool's supervisor.
    pub(super) owner: Option<Pid>,
    pub(super) stats: PoolStats,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// It has not started, or has stopped.
    Over,
    Open,
    /// What has been admitted is carried out.
    Drains,
}

/// What the front does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Next {
    /// It starts that worker, for jobs.
    Start(usize),
    /// It monitors the process of that worker.
    Monitor(usize, Pid),
    /// It looks again when it is told to, or at that moment.
    Wait(Instant),
}

impl<J, A> State<J, A> {
    pub(super) fn new(workers: Range<usize>, priorities: usize) -> Self {
        Self {
            common: Lines::new(priorities),
            delayed: Delayed::new(),
            workers: (0..workers.end).map(|_| Slot::new(priorities)).collect(),
            idle: VecDeque::new(),
            always: workers.start,
            phase: Phase::Over,
            is_suspended: false,
            turn: 0,
            random: 0,
            admitted: 0,
            watched: 0,
            grown: START,
            front_knows: false,
            front_looks: Instant::NEVER,
            front: None,
            owner: None,
            stats: PoolStats::default(),
        }
    }

    fn line(&mut self, of: LineOf) -> &mut Line<J, A> {
        let lines = match of.worker {
            Some(index) => &mut self.workers[index].own,
            None => &mut self.common,
        };
        lines.line(of.rank)
    }

    fn lines(&self) -> impl Iterator<Item = &Line<J, A>> {
        let own = self.workers.iter().map(|slot| &slot.own);
        own.chain([&self.common]).flat_map(Lines::all)
    }

    fn lines_mut(&mut self) -> impl Iterator<Item = (LineOf, &mut Line<J, A>)> {
        let own = self.workers.iter_mut().map(|slot| &mut slot.own);
        let own = own.enumerate().map(|(index, lines)| (Some(index), lines));
        own.chain([(None, &mut self.common)])
            .flat_map(|(worker, lines)| {
                let all = lines.all_mut();
                all.map(move |(rank, line)| (LineOf { worker, rank }, line))
            })
    }

    /// Takes the job with that number out of its line, or out of those that wait for their next
    /// try, if it is there.
    fn remove(&mut self, of: LineOf, number: u64) -> Option<Entry<J, A>> {
        let in_line = self.line(of).remove(number);
        let entry = in_line.or_else(|| self.delayed.remove(number))?;
        self.stats.queued -= 1;
        Some(entry)
    }

    /// A caller has left. Its job gives its place up.
    pub(super) fn left(&mut self, of: LineOf, number: u64, then: &mut Then<J, A>) {
        if let Some(entry) = self.remove(of, number) {
            self.stats.left += 1;
            then.left.push(entry);
            self.look_at_drain(then);
        }
    }

    /// Gives up the places of all callers that have left, and has the others tell of it. O(1) for
    /// each job, and O(w) with w workers.
    pub(super) fn look_at_callers(&mut self, watch: Watch<'_, A>, then: &mut Then<J, A>)
    where
        A: Send + 'static,
    {
        let from = std::mem::replace(&mut self.watched, self.admitted);
        let mut gone = Vec::new();
        for (of, line) in self.lines_mut() {
            for entry in line.since(from) {
                if !entry.is_there(of, watch) {
                    gone.push((of, entry.number));
                }
            }
        }
        for (of, number) in gone {
            self.left(of, number, then);
        }
    }

    /// A job that was begun waits for its next try, at the head of its worker's line of its
    /// priority.
    pub(super) fn put_back(
        &mut self,
        entry: Entry<J, A>,
        index: usize,
        watch: Watch<'_, A>,
        then: &mut Then<J, A>,
    ) where
        A: Send + 'static,
    {
        let of = LineOf {
            worker: Some(index),
            rank: entry.rank,
        };
        let has_watch = entry.number < self.watched;
        if let Some(entry) = self.queue_again(entry, of, has_watch.then_some(watch), then) {
            self.line(of).push_front(entry);
        }
    }

    /// Counts a job that was begun as one that waits again. None when `then` has the job: the pool
    /// is over, or the caller has left by that watch.
    fn queue_again(
        &mut self,
        mut entry: Entry<J, A>,
        of: LineOf,
        watch: Option<Watch<'_, A>>,
        then: &mut Then<J, A>,
    ) -> Option<Entry<J, A>>
    where
        A: Send + 'static,
    {
        if self.phase == Phase::Over {
            self.stats.refused += 1;
            then.refused.push((entry, PoolError::Stopping));
            return None;
        }
        if watch.is_some_and(|watch| !entry.is_there(of, watch)) {
            self.stats.left += 1;
            then.left.push(entry);
            return None;
        }
        self.stats.queued += 1;
        Some(entry)
    }

    /// A job that was begun waits until that moment for its next try, or not at all when the pool
    /// is about to end. Others pass it.
    pub(super) fn put_off(
        &mut self,
        entry: Entry<J, A>,
        due: Instant,
        watch: Watch<'_, A>,
        then: &mut Then<J, A>,
    ) where
        A: Send + 'static,
    {
        let of = LineOf {
            worker: entry.worker,
            rank: entry.rank,
        };
        let Some(entry) = self.queue_again(entry, of, Some(watch), then) else {
            return;
        };
        self.delayed.insert(due, of, entry);
        if self.phase == Phase::Drains {
            self.release(Instant::NEVER, then);
        } else if due < self.front_looks {
            self.front_looks = due;
            then.wakers.extend(self.front.clone());
        }
    }

    /// Has the jobs wait in their lines whose next try is due.
    pub(super) fn release(&mut self, now: Instant, then: &mut Then<J, A>) {
        while let Some((of, entry)) = self.delayed.pop_due(now) {
            self.line(of).insert(entry);
            let woken = self.woken(of.worker, then);
            then.wakers.extend(woken);
        }
    }

    /// The waker of an idle worker, which is idle no more: of that one, or any. When there is none,
    /// the front is told.
    #[inline]
    fn woken(&mut self, index: Option<usize>, then: &mut Then<J, A>) -> Option<Waker> {
        let woken = match index {
            Some(index) => {
                if self.workers[index].life == Life::Off {
                    then.wakers.extend(self.front.clone());
                }
                let place = self.idle.iter().position(|it| *it == index);
                place.and_then(|place| self.idle.remove(place))
            }
            None => self.idle.pop_front(),
        };
        let waker = woken.and_then(|index| self.workers[index].waker.clone());
        if waker.is_none() && self.may_grow() {
            self.tell_front(then);
        }
        waker
    }

    /// Queues a job, and wakes the worker that it is for.
    #[inline]
    pub(super) fn put(
        &mut self,
        mut entry: Entry<J, A>,
        key: Option<u64>,
        by: Routing,
        limits: &Limits,
        then: &mut Then<J, A>,
    ) {
        entry.number = self.admitted;
        self.admitted += 1;
        self.stats.queued += 1;
        let index = match key {
            Some(key) => usize::try_from(key % self.workers.len() as u64).ok(),
            None => self.choose(by, limits),
        };
        let expiry = limits.expiry(&entry);
        if expiry < self.front_looks {
            self.front_looks = expiry;
            then.wakers.extend(self.front.clone());
        }
        entry.worker = index;
        let of = LineOf {
            worker: index,
            rank: entry.rank,
        };
        self.line(of).push_back(entry);
        then.waker = self.woken(index, then);
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

    /// The next job for that worker, and the line that it is in.
    #[inline]
    pub(super) fn head(&self, index: usize) -> Option<(LineOf, &Entry<J, A>)> {
        if self.is_suspended || self.phase == Phase::Over {
            return None;
        }
        let own = self.workers[index].own.head();
        // Its own one counts first among equals.
        let common = match own {
            Some((0, _)) => None,
            own => {
                let common = self.common.head();
                common.filter(|it| own.is_none_or(|own| it.0 < own.0))
            }
        };
        let (worker, (rank, entry)) = match common {
            Some(common) => (None, common),
            None => (Some(index), own?),
        };
        Some((LineOf { worker, rank }, entry))
    }

    #[inline]
    pub(super) fn pop(&mut self, of: LineOf) -> Option<Entry<J, A>> {
        let entry = self.line(of).pop_front();
        self.stats.queued -= usize::from(entry.is_some());
        entry
    }

    /// The job of the lowest priority that has waited longest, if its priority is that of `rank` or
    /// below.
    pub(super) fn pop_oldest(&mut self, rank: usize) -> Option<Entry<J, A>> {
        let heads = self.lines_mut().filter_map(|(of, line)| {
            let number = line.first()?.number;
            Some((Reverse(of.rank), number, of))
        });
        let (_, _, of) = heads.min()?;
        if of.rank < rank {
            return None;
        }
        self.pop(of)
    }

    /// The job of the lowest priority that came last, if its priority is below that of `rank`.
    pub(super) fn pop_newest(&mut self, rank: usize) -> Option<Entry<J, A>> {
        let lasts = self.lines_mut().filter_map(|(of, line)| {
            let number = line.last()?;
            Some((of.rank, number, of))
        });
        let (_, number, of) = lasts.max()?;
        if of.rank <= rank {
            return None;
        }
        self.remove(of, number)
    }

    /// A job that waits for its next try.
    pub(super) fn pop_delayed(&mut self) -> Option<Entry<J, A>> {
        let (_, entry) = self.delayed.pop_due(Instant::NEVER)?;
        self.stats.queued -= 1;
        Some(entry)
    }

    /// Gives up the jobs that have waited for too long. O(1) for each, and O(w) with w workers.
    pub(super) fn expire(&mut self, limits: &Limits, now: Instant, then: &mut Then<J, A>)
    where
        A: Send + 'static,
    {
        if self.expires_at(limits) > now {
            return;
        }
        let mut old = Vec::new();
        for (of, line) in self.lines_mut() {
            let not_begun = line.iter().filter(|it| it.tries == 0);
            let expired = not_begun.take_while(|it| limits.expiry(it) <= now);
            old.extend(expired.map(|it| (of, it.number)));
        }
        old.sort_unstable_by_key(|it| it.1);
        for (of, number) in old {
            if let Some(entry) = self.remove(of, number) {
                self.give_up(entry, then);
            }
        }
        self.look_at_drain(then);
    }

    /// A job that is too old, if its caller has not left.
    pub(super) fn give_up(&mut self, entry: Entry<J, A>, then: &mut Then<J, A>)
    where
        A: Send + 'static,
    {
        if entry.has_left() {
            self.stats.left += 1;
            then.left.push(entry);
        } else {
            self.stats.expired += 1;
            then.refused.push((entry, PoolError::Expired));
        }
    }

    /// When the first job has waited for too long, as it stands. A line has one job at the most
    /// that was begun before, its first.
    fn expires_at(&self, limits: &Limits) -> Instant {
        let first = |line: &Line<J, A>| {
            let mut not_begun = line.iter().filter(|it| it.tries == 0);
            not_begun.next().map(|it| limits.expiry(it))
        };
        let of_lines = self.lines().filter_map(first);
        of_lines.min().unwrap_or(Instant::NEVER)
    }

    /// The worker waits for a job.
    pub(super) fn rest(&mut self, index: usize) {
        if !self.idle.contains(&index) {
            self.idle.push_back(index);
        }
    }

    /// The worker's job is over.
    pub(super) fn over(&mut self, index: usize, count: impl FnOnce(&mut PoolStats)) {
        self.workers[index].is_busy = false;
        self.stats.in_flight -= 1;
        count(&mut self.stats);
    }

    /// The worker is over.
    pub(super) fn close(&mut self, index: usize) {
        self.idle.retain(|it| *it != index);
        let slot = &mut self.workers[index];
        slot.life = Life::Closed;
        slot.waker = None;
    }

    pub(super) fn starting(&self) -> usize {
        let starting = self.workers.iter().filter(|it| it.life == Life::Starts);
        starting.count()
    }

    /// Whether there is a worker that is started for jobs and does not run.
    fn may_grow(&self) -> bool {
        let some = &self.workers[self.always..];
        some.iter().any(|it| it.life == Life::Off)
    }

    /// With patience: when one more worker is to be started, as it stands.
    fn grows_at(&self, limits: &Limits) -> Option<Instant> {
        let patience = limits.patience?;
        if self.starting() > 0 || !self.idle.is_empty() || !self.may_grow() {
            return None;
        }
        let heads = self.lines().filter_map(Line::first);
        let since = heads.map(|it| it.since).min()?;
        Some(since.max(self.grown).after(patience))
    }

    /// What the front does next. It starts no worker if it may not.
    pub(super) fn next(&mut self, limits: &Limits, now: Instant, may_start: bool) -> Next {
        self.front_knows = false;
        self.front_looks = Instant::NEVER;
        let unseen = |it: &(usize, &Slot<J, A>)| it.1.pid.is_some() && !it.1.is_seen;
        let places = self.workers.iter().enumerate().skip(self.always);
        if let Some((index, pid)) = places
            .clone()
            .find(unseen)
            .and_then(|(i, it)| Some((i, it.pid?)))
        {
            self.workers[index].is_seen = true;
            return Next::Monitor(index, pid);
        }
        if self.phase == Phase::Over {
            return Next::Wait(Instant::NEVER);
        }
        let starts = if self.is_suspended || !may_start {
            Err(None)
        } else {
            self.start(limits, now)
        };
        match starts {
            Ok(index) => Next::Start(index),
            Err(grows_at) => {
                self.front_knows = grows_at.is_some();
                let grows_at = grows_at.unwrap_or(Instant::NEVER);
                let looks = grows_at.min(self.expires_at(limits));
                self.front_looks = looks.min(self.delayed.next());
                Next::Wait(self.front_looks)
            }
        }
    }

    /// The worker that is to be started, or when one is.
    fn start(&mut self, limits: &Limits, now: Instant) -> Result<usize, Option<Instant>> {
        let grows_at = self.grows_at(limits);
        let is_due = match limits.patience {
            // Those that start take jobs of all.
            None => self.common.len() > self.starting() && self.idle.is_empty(),
            Some(_) => grows_at.is_some_and(|at| at <= now),
        };
        let is_wanted =
            |slot: &Slot<J, A>| slot.life == Life::Off && (is_due || !slot.own.is_empty());
        let mut places = self.workers.iter().enumerate().skip(self.always);
        let wanted = places.find(|(_, slot)| is_wanted(slot));
        let (index, _) = wanted.ok_or(grows_at)?;
        self.workers[index].life = Life::Starts;
        self.grown = now;
        Ok(index)
    }

    pub(super) fn tell_front(&mut self, then: &mut Then<J, A>) {
        if !self.front_knows {
            self.front_knows = true;
            then.wakers.extend(self.front.clone());
        }
    }

    pub(super) fn suspend(&mut self, is_suspended: bool, then: &mut Then<J, A>) {
        self.is_suspended = is_suspended;
        if !is_suspended {
            self.idle.clear();
            let wakers = self.workers.iter().filter_map(|it| it.waker.clone());
            then.wakers.extend(wakers);
            then.wakers.extend(self.front.clone());
        }
    }

    pub(super) fn is_drained(&self) -> bool {
        self.phase != Phase::Open && self.stats.queued == 0 && self.stats.in_flight == 0
    }

    /// The front ends a pool that has nothing left to do.
    pub(super) fn look_at_drain(&mut self, then: &mut Then<J, A>) {
        if self.is_drained() {
            then.wakers.extend(self.front.clone());
        }
    }
}
