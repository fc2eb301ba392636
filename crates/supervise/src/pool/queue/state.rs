//! The state behind the lock of the [`Queue`](super::Queue): lines of jobs, and the places of the
//! workers.
//!
//! **Places.** A place has one process at a time. The front starts the process, sees it in its
//! place, and hears of its end by a monitor. Until its end the process holds the place, also
//! between two lives of a worker with a restart in place.
//!
//! **Lines.** A line keeps its jobs in the order of their admission, by ascending numbers. A job
//! keeps its number for further tries. The number is lower than the numbers of all jobs that wait
//! for its worker alone, since the worker takes these jobs first. So each line begins with its
//! oldest job, and the queue finds a job by its number when the caller leaves. Each priority has
//! lines of its own. A job that waits for the time of its next try is in no line, but counts for
//! the limit.
//!
//! **Callers that leave.** A worker that takes a job asks whether its caller is there. This check
//! is enough while the queue has room. A full queue looks at all callers that it has not seen, and
//! registers with each of them for its leaving: once for each job.

use super::delayed::Delayed;
use super::inbox::Inbox;
use super::line::Line;
use super::lines::Lines;
use super::phase::{Next, Phase};
use super::slot::{Life, Slot};
use super::then::Then;
use crate::pool::entry::{Entry, Limits, LineOf, PoolStats, Queued, START, Watch};
use crate::pool::error::PoolError;
use crate::pool::policy::Routing;
use ganger_proc_api::Pid;
use ganger_sched::Instant;
use std::cmp::Reverse;
use std::ops::Range;
use std::task::Waker;

pub(super) struct State<J, A> {
    /// Jobs for the first free worker.
    common: Lines<J, A>,
    /// Jobs that wait for their next try.
    delayed: Delayed<J, A>,
    pub(super) workers: Vec<Slot<J, A>>,
    /// The first number of a worker that the front starts for jobs.
    pub(super) always: usize,
    pub(super) phase: Phase,
    pub(super) is_suspended: bool,
    /// The last worker of the round robin.
    turn: usize,
    random: u64,
    /// The queue hears from the callers of all jobs with lower numbers.
    watched: u64,
    /// With patience: the time of the last start for a job.
    grown: Instant,
    /// The front has been woken, and has not looked yet.
    pub(super) front_knows: bool,
    /// The time at which the front looks by itself.
    front_looks: Instant,
    pub(super) front: Option<Waker>,
    /// The pool's supervisor.
    pub(super) owner: Option<Pid>,
    pub(super) stats: PoolStats,
}

impl<J, A> State<J, A> {
    pub(super) fn new(workers: Range<usize>, priorities: usize) -> Self {
        Self {
            common: Lines::new(priorities),
            delayed: Delayed::new(),
            workers: (0..workers.end).map(|_| Slot::new(priorities)).collect(),
            always: workers.start,
            phase: Phase::Over,
            is_suspended: false,
            turn: 0,
            random: 0,
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

    /// Takes over all jobs from the inbox.
    #[inline]
    pub(super) fn let_in(&mut self, inbox: &mut Inbox<J, A>) {
        self.stats.queued += inbox.jobs.len();
        self.common.line(0).append(&mut inbox.jobs);
    }

    /// Takes over the first job from the inbox. Returns whether the inbox had a job.
    pub(super) fn let_first_in(&mut self, inbox: &mut Inbox<J, A>) -> bool {
        let Some(entry) = inbox.jobs.pop_front() else {
            return false;
        };
        self.stats.queued += 1;
        self.common.line(0).push_back(entry);
        true
    }

    /// Takes a job out of its line, or out of the delayed jobs, if it is there.
    fn remove(&mut self, of: LineOf, number: u64) -> Option<Queued<J, A>> {
        let in_line = self.line(of).remove(number);
        let entry = in_line.or_else(|| self.delayed.remove(number))?;
        self.stats.queued -= 1;
        Some(entry)
    }

    /// Removes the job of a caller that has left.
    pub(super) fn left(&mut self, of: LineOf, number: u64, then: &mut Then<J, A>) {
        if let Some(entry) = self.remove(of, number) {
            self.stats.left += 1;
            then.rare().left.push(entry);
        }
    }

    /// Removes the jobs of all callers that have left, and registers with the remaining callers of
    /// so many admitted jobs.
    /// O(1) for each job, and O(w) with w workers.
    pub(super) fn look_at_callers(
        &mut self,
        admitted: u64,
        watch: Watch<'_, A>,
        then: &mut Then<J, A>,
    ) where
        A: Send + 'static,
    {
        let from = std::mem::replace(&mut self.watched, admitted);
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

    /// Puts a job back, for another try, at the head of its worker's line of its priority.
    pub(super) fn put_back(
        &mut self,
        entry: Queued<J, A>,
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

    /// Counts a job as waiting again. None when `then` has the job: the pool has ended, or the
    /// caller has left.
    fn queue_again(
        &mut self,
        mut entry: Queued<J, A>,
        of: LineOf,
        watch: Option<Watch<'_, A>>,
        then: &mut Then<J, A>,
    ) -> Option<Queued<J, A>>
    where
        A: Send + 'static,
    {
        if self.phase == Phase::Over {
            self.stats.refused += 1;
            then.rare().refused.push((entry, PoolError::Stopping));
            return None;
        }
        if watch.is_some_and(|watch| !entry.is_there(of, watch)) {
            self.stats.left += 1;
            then.rare().left.push(entry);
            return None;
        }
        self.stats.queued += 1;
        Some(entry)
    }

    /// Puts the job off until this time, for its next try; when the pool is stopping, the job does
    /// not wait. Other jobs pass it.
    pub(super) fn put_off(
        &mut self,
        entry: Queued<J, A>,
        due: Instant,
        watch: Watch<'_, A>,
        inbox: &mut Inbox<J, A>,
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
            self.release(Instant::NEVER, inbox, then);
        } else if due < self.front_looks {
            self.front_looks = due;
            then.wake(self.front.as_ref());
        }
    }

    /// Moves the due jobs into their lines.
    pub(super) fn release(&mut self, now: Instant, inbox: &mut Inbox<J, A>, then: &mut Then<J, A>) {
        while let Some((of, entry)) = self.delayed.pop_due(now) {
            self.line(of).insert(entry);
            let woken = self.woken(of.worker, inbox, then);
            then.rare().wakers.extend(woken);
        }
    }

    /// Takes the waker of this worker, or of any, out of the idle workers. Wakes the front if no
    /// worker is idle.
    #[inline]
    fn woken(
        &mut self,
        index: Option<usize>,
        inbox: &mut Inbox<J, A>,
        then: &mut Then<J, A>,
    ) -> Option<Waker> {
        let woken = match index {
            Some(index) => {
                if self.workers[index].life == Life::Off {
                    then.wake(self.front.as_ref());
                }
                inbox.take_idle(index)
            }
            None => inbox.first_idle(),
        };
        if woken.is_none() && self.may_grow() {
            self.tell_front(then);
        }
        woken
    }

    /// Queues a job, and wakes its worker.
    #[inline]
    pub(super) fn put(
        &mut self,
        mut entry: Queued<J, A>,
        key: Option<u64>,
        by: Routing,
        limits: &Limits,
        inbox: &mut Inbox<J, A>,
        then: &mut Then<J, A>,
    ) {
        inbox.number(&mut entry);
        self.stats.queued += 1;
        let index = match key {
            Some(key) => usize::try_from(key % self.workers.len() as u64).ok(),
            None => self.choose(by, limits),
        };
        let expiry = limits.expiry(&entry);
        if expiry < self.front_looks {
            self.front_looks = expiry;
            then.wake(self.front.as_ref());
        }
        entry.worker = index;
        let of = LineOf {
            worker: index,
            rank: entry.rank,
        };
        self.line(of).push_back(entry);
        then.waker = self.woken(index, inbox, then);
    }

    /// Chooses the worker for a job without a key; `None`: the first free worker.
    fn choose(&mut self, by: Routing, limits: &Limits) -> Option<usize> {
        // Where the front starts workers by a rule, the running workers share.
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

    /// Returns the next job for a worker, and its line.
    #[inline]
    pub(super) fn head(&self, index: usize) -> Option<(LineOf, &Entry<J, A>)> {
        if self.is_suspended || self.phase == Phase::Over {
            return None;
        }
        let own = self.workers[index].own.head();
        // The worker's own line comes first among equals.
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
    pub(super) fn pop(&mut self, of: LineOf) -> Option<Queued<J, A>> {
        let entry = self.line(of).pop_front();
        self.stats.queued -= usize::from(entry.is_some());
        entry
    }

    /// Takes the oldest job of the lowest priority, if its priority is not above `rank`.
    pub(super) fn pop_oldest(&mut self, rank: usize) -> Option<Queued<J, A>> {
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

    /// Takes the newest job of the lowest priority, if its priority is below `rank`.
    pub(super) fn pop_newest(&mut self, rank: usize) -> Option<Queued<J, A>> {
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

    /// Takes a delayed job.
    pub(super) fn pop_delayed(&mut self) -> Option<Queued<J, A>> {
        let (_, entry) = self.delayed.pop_due(Instant::NEVER)?;
        self.stats.queued -= 1;
        Some(entry)
    }

    /// Expires jobs. O(1) for each, and O(w) with w workers.
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
    }

    /// Refuses an expired job, or drops it if its caller has left.
    pub(super) fn give_up(&mut self, entry: Queued<J, A>, then: &mut Then<J, A>)
    where
        A: Send + 'static,
    {
        if entry.has_left() {
            self.stats.left += 1;
            then.rare().left.push(entry);
        } else {
            self.stats.expired += 1;
            then.rare().refused.push((entry, PoolError::Expired));
        }
    }

    /// Returns the next expiry of a job, at present. Only the first job of a line may have been
    /// begun before.
    fn expires_at(&self, limits: &Limits) -> Instant {
        let first = |line: &Line<J, A>| {
            let mut not_begun = line.iter().filter(|it| it.tries == 0);
            not_begun.next().map(|it| limits.expiry(it))
        };
        let of_lines = self.lines().filter_map(first);
        of_lines.min().unwrap_or(Instant::NEVER)
    }

    /// Notes that the worker waits for a job.
    pub(super) fn rest(&self, index: usize, inbox: &mut Inbox<J, A>) {
        if let Some(waker) = &self.workers[index].waker
            && !inbox.is_idle(index)
        {
            inbox.idle.push_back((index, waker.clone()));
        }
    }

    /// Notes that the worker's job is over.
    pub(super) fn over(
        &mut self,
        index: usize,
        inbox: &mut Inbox<J, A>,
        count: impl FnOnce(&mut PoolStats),
    ) {
        self.workers[index].is_busy = false;
        inbox.in_flight -= 1;
        count(&mut self.stats);
    }

    /// Closes the place of a worker that has ended.
    #[must_use = "wakers are dropped without the locks"]
    pub(super) fn close(&mut self, index: usize, inbox: &mut Inbox<J, A>) -> [Option<Waker>; 2] {
        let slot = &mut self.workers[index];
        slot.life = Life::Closed;
        [slot.waker.take(), inbox.take_idle(index)]
    }

    pub(super) fn starting(&self) -> usize {
        let starting = self.workers.iter().filter(|it| it.life == Life::Starts);
        starting.count()
    }

    /// Returns whether the front may start another worker.
    fn may_grow(&self) -> bool {
        let some = &self.workers[self.always..];
        some.iter().any(|it| it.life == Life::Off)
    }

    /// Returns the time of the next start, at present, in a pool with patience.
    fn grows_at(&self, limits: &Limits, has_idle: bool) -> Option<Instant> {
        let patience = limits.patience?;
        if self.starting() > 0 || has_idle || !self.may_grow() {
            return None;
        }
        let heads = self.lines().filter_map(Line::first);
        let since = heads.map(|it| it.since).min()?;
        Some(since.max(self.grown).after(patience))
    }

    /// Returns the next act of the front. Without `may_start` no worker starts. `has_idle`: a
    /// worker is idle.
    pub(super) fn next(
        &mut self,
        limits: &Limits,
        now: Instant,
        may_start: bool,
        has_idle: bool,
    ) -> Next {
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
            self.start(limits, now, has_idle)
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

    /// Chooses the worker that the front starts now, or returns the time of the next start.
    fn start(
        &mut self,
        limits: &Limits,
        now: Instant,
        has_idle: bool,
    ) -> Result<usize, Option<Instant>> {
        let grows_at = self.grows_at(limits, has_idle);
        let is_due = match limits.patience {
            // Starting workers take common jobs.
            None => self.common.len() > self.starting() && !has_idle,
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
            then.wake(self.front.as_ref());
        }
    }

    pub(super) fn suspend(
        &mut self,
        is_suspended: bool,
        inbox: &mut Inbox<J, A>,
        then: &mut Then<J, A>,
    ) {
        self.is_suspended = is_suspended;
        if !is_suspended {
            // The others look for jobs before they are idle.
            let wakers = &mut then.rare().wakers;
            wakers.extend(inbox.idle.drain(..).map(|it| it.1));
            wakers.extend(self.front.clone());
        }
    }

    /// Returns whether workers need no look at the lines, in a pool where the order of the calls is
    /// the only rule.
    pub(super) fn is_direct(&self) -> bool {
        self.stats.queued == 0 && self.phase == Phase::Open && !self.is_suspended
    }

    /// Returns whether the pool is closed, and all admitted jobs are done. All admitted jobs must
    /// be in their lines.
    pub(super) fn is_drained(&self, inbox: &Inbox<J, A>) -> bool {
        self.phase != Phase::Open && self.stats.queued == 0 && inbox.in_flight == 0
    }

    /// Wakes the front when all jobs are done.
    pub(super) fn look_at_drain(&self, inbox: &Inbox<J, A>, then: &mut Then<J, A>) {
        if self.is_drained(inbox) {
            then.wake(self.front.as_ref());
        }
    }
}
