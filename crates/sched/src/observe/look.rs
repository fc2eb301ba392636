//! How a reader sees processes and workers.

use super::{Distributions, Observation, ProcessCounts, Record};
use crate::api::handle::{Handle, ProcessInfo};
use crate::base::clock::nanos;
use crate::base::level::{NotAllowed, Observe};
use crate::base::shares::WorkerTimes;
use crate::probe::{Decide, Decider};
use crate::process::asked::Asked;
use crate::process::exit_action::Watcher;
use crate::process::state::{Leave, ProcessState, Waiting};
use crate::runtime::cell::{Core, ProcessCell, Task};
use crate::runtime::shared::Shared;
use crate::runtime::token::Token;
use ganger_proc_api::{CommandId, Instant, Pid, Symbol, Tag};
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

impl Shared {
    pub(super) fn observation(&self) -> &Observation {
        &self.probe.1.0
    }
}

impl ProcessCell {
    fn record(&self) -> &Option<Box<Record>> {
        &self.probe.1.0
    }

    /// Returns the outstanding yields of a waiting process.
    fn outstanding(self: &Task) -> SmallVec<[(Tag, Asked); 4]> {
        let mut seen = SmallVec::new();
        let _waits =
            self.in_place_of_worker(|core| core.yields.each(|tag, asked| seen.push((tag, asked))));
        seen
    }

    /// Calls `look` with the part of a waiting process for its runner alone, for which this thread
    /// stands in meanwhile: see `process/state.rs`. `None`, without a call, where the process does
    /// not wait.
    fn in_place_of_worker<R>(self: &Task, look: impl FnOnce(&mut Core) -> R) -> Option<R> {
        if !self.state.begin_look() {
            return None;
        }
        // SAFETY: this thread owns the run token until the look ends.
        let (seen, is_blocked) =
            unsafe { self.with_core(|core| (look(core), !core.yields.is_empty())) };
        let leave = self.state.end_look(match is_blocked {
            true => Waiting::Blocked,
            false => Waiting::Idle,
        });
        // SAFETY: the process has not been parked, so this thread still owns the token. A visible
        // process is in the registry.
        let token = || unsafe { Token::new(self) };
        match leave {
            Leave::Parked => {}
            // A worker ends a terminated process.
            Leave::Requeue | Leave::Terminate => self.shared.schedule(token()),
            Leave::RequeueUrgent => self.shared.schedule_urgent(token()),
        }
        Some(seen)
    }
}

/// A command that the process waits for: yielded, and not completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wait {
    /// The command; `None` where the answer has come, and its step has not.
    pub command: Option<CommandId>,
    /// The registered name of its handler, if any.
    pub name: Option<Symbol>,
    /// The tag of the yield.
    pub tag: Tag,
    /// How long ago the command was yielded. Exact to about two milliseconds.
    pub since: Duration,
}

/// The processes and threads to be told of the end of a process, as far as a reader has looked: see
/// [`ProcessLook::watchers`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Watchers {
    /// The processes, in the order of their requests. A process with several monitors is among them
    /// several times.
    pub processes: Vec<Pid>,
    /// The number of waits of threads, and of other code outside of processes. The handle of a
    /// process is no watcher.
    pub outside: usize,
    /// How many exit actions the reader has not looked at. Each may notify a watcher.
    pub unseen: usize,
}

/// A live process, as [`Handle::each_process`] sees it. Each call reads the present state, without
/// a lock except for the label.
#[derive(Clone, Copy)]
pub struct ProcessLook<'a>(&'a Task);

impl fmt::Debug for ProcessLook<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessLook")
            .field("pid", &self.pid())
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

impl ProcessLook<'_> {
    /// Returns the process's PID.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.0.pid()
    }

    /// Returns the present state of the process.
    #[must_use]
    pub fn state(&self) -> ProcessState {
        self.0.state.snapshot().state()
    }

    /// Returns the method of the process's submission.
    #[must_use]
    pub fn method(&self) -> Symbol {
        self.0.method
    }

    /// Returns the name of the process's type.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        self.0.about.type_name()
    }

    /// Returns the label for the process's account: its own, or its parent's at the moment of the
    /// start.
    #[must_use]
    pub fn label(&self) -> Option<Arc<str>> {
        self.0.shared.observation().label(self.0.record())
    }

    /// Calls `look` with each yielded command that has not completed, if the process waits.
    ///
    /// This thread stands in for the process's worker while it reads: some nanoseconds, in
    /// which a sender does not wake the process and this thread does so afterwards.
    pub fn each_wait(&self, look: impl FnMut(Wait)) {
        let shared = &self.0.shared;
        let now = nanos(Decider::time().unwrap_or_else(|| shared.timing.time.read()));
        let wait = |(tag, asked): (Tag, Asked)| Wait {
            command: asked.command(),
            name: asked.command().and_then(|id| shared.commands.name(id)),
            tag,
            since: Duration::from_nanos(match asked.command() {
                Some(_) => asked.before(now),
                None => 0,
            }),
        };
        self.0.outstanding().into_iter().map(wait).for_each(look);
    }

    /// Returns the processes and threads that are told of its end, by the first `most` of its exit
    /// actions; `None` while it is ready or runs. Links are no watchers. A new monitor may be
    /// missing for a moment.
    ///
    /// As [`each_wait`](Self::each_wait), this thread stands in for the process's worker while it
    /// reads. O(`most`). Allocates for the watchers.
    ///
    /// ```
    /// use ganger_proc_api::{BoxError, actor_fn, process_fn};
    /// use ganger_sched::{ContextExt as _, Observe, Scheduler};
    ///
    /// let scheduler = Scheduler::builder().observe(Observe::Counts).start()?;
    /// let watched = scheduler.spawn(process_fn(|_, _, _| Ok(())))?;
    /// let pid = watched.pid();
    /// let watcher = scheduler.spawn(actor_fn(move |ctx, (): (), _| Ok(ctx.monitor(pid, 1)?)))?;
    /// watcher.send(())?;
    /// let watchers = || scheduler.look_at(pid, |it| it.watchers(100)).flatten();
    /// while watchers().is_none_or(|it| it.processes.is_empty()) {
    ///     std::thread::yield_now();
    /// }
    /// assert_eq!(watchers().unwrap().processes, [watcher.pid()]);
    /// # Ok::<(), BoxError>(())
    /// ```
    #[must_use]
    pub fn watchers(&self, most: usize) -> Option<Watchers> {
        let counters = self.0.shared.counters.of(None);
        self.0.in_place_of_worker(|core| {
            let mut watchers = Watchers::default();
            let unseen = core.each_watcher(most, counters, |watcher| match watcher {
                Watcher::Process(pid) => watchers.processes.push(pid),
                Watcher::Outside => watchers.outside += 1,
            });
            Watchers { unseen, ..watchers }
        })
    }

    /// Counts how often `watcher` is among its watchers, as [`watchers`](Self::watchers) finds
    /// them.
    #[must_use]
    pub fn watched_by(&self, watcher: Pid, most: usize) -> Option<usize> {
        let counters = self.0.shared.counters.of(None);
        self.0.in_place_of_worker(|core| {
            let mut found = 0;
            core.each_watcher(most, counters, |it| {
                found += usize::from(it == Watcher::Process(watcher));
            });
            found
        })
    }

    /// Returns the bytes of its state and of the scheduler's part of it, without the mailbox and
    /// what the state points to; `None` while it is ready or runs, as in
    /// [`watchers`](Self::watchers).
    #[must_use]
    pub fn bytes(&self) -> Option<usize> {
        let record = self.0.record().as_deref().map_or(0, size_of_val);
        let part = size_of::<ProcessCell>() + 2 * size_of::<usize>() + record;
        let state = |core: &mut Core| core.process.as_ref().map_or(0, |it| size_of_val(&**it));
        Some(part + self.0.in_place_of_worker(state)?)
    }

    /// Returns the parent, which has started the process by its context, or in its step or `init`.
    /// The parent may have ended.
    #[must_use]
    pub fn parent(&self) -> Option<Pid> {
        let parent = self.0.origin.parent()?;
        Some(Pid::new(self.0.shared.host, parent))
    }

    /// Returns whether `holds` accepts any of its names. `holds` runs under a lock: it must be
    /// short, and must not call the scheduler.
    pub fn any_name(&self, holds: impl FnMut(&str) -> bool) -> bool {
        self.0.shared.names.any_of(self.0.pid(), holds)
    }

    /// Returns the number of events that wait for it: the events left by its steps, and, where
    /// mailboxes have a limit, those in its mailbox. [`counts`](Self::counts) know the number
    /// without a limit, too.
    #[must_use]
    pub fn waiting(&self) -> usize {
        let queued = self.0.limit().map_or(0, |_| self.0.room.messages());
        // Messages left by steps are in both.
        self.0.about.left().max(queued)
    }

    /// Returns how long ago its last step began: see [`ProcessInfo::ran_before`].
    #[must_use]
    pub fn ran_before(&self) -> Option<Duration> {
        let time = &self.0.shared.timing.time;
        let now = nanos(Decider::time().unwrap_or_else(|| time.read()));
        self.0.about.ran_before(now).map(Duration::from_nanos)
    }

    /// Returns the view of the process in a scheduler without observation. Allocates for its names.
    #[must_use]
    pub fn info(&self) -> ProcessInfo {
        ProcessInfo::of(self.0)
    }

    pub(super) fn is_of(&self, scheduler: *const Shared) -> bool {
        std::ptr::eq(&raw const *self.0.shared, scheduler)
    }

    pub(super) fn record(&self) -> Option<&Record> {
        self.0.record().as_deref()
    }

    /// Returns the counts as [`counts`](Self::counts) does, with the age at `now`: so a reader of
    /// many processes reads the clock once.
    #[must_use]
    pub fn counts_at(&self, now: Instant) -> Option<ProcessCounts> {
        Some(self.with_left(self.record()?.counts(now.as_nanos())))
    }

    /// Returns the counts of the process; `None` where the scheduler is not observed.
    #[must_use]
    pub fn counts(&self) -> Option<ProcessCounts> {
        let counts = self.0.shared.observation().counts(self.0.record());
        counts.map(|counts| self.with_left(counts))
    }

    /// Adds the events left by steps, which wait, too.
    fn with_left(&self, counts: ProcessCounts) -> ProcessCounts {
        ProcessCounts {
            waiting: counts.waiting + self.0.about.left() as u64,
            ..counts
        }
    }
}

/// The calls of an observed scheduler: see [`Builder::observe`](crate::Builder::observe).
impl Handle {
    /// Returns how much is counted and measured at the moment.
    #[must_use]
    pub fn observes(&self) -> Observe {
        self.shared.observation().level()
    }

    /// Counts and measures at this level from now on.
    ///
    /// # Errors
    /// [`NotAllowed`] when the level is higher than the builder's, or when counts already begun
    /// would end.
    pub fn set_observe(&self, level: Observe) -> Result<(), NotAllowed> {
        self.shared.observation().set_level(level)
    }

    /// Calls `look` with each live process. Processes that start or end meanwhile may be missing.
    ///
    /// O(n), where n is the most processes alive at any time. No worker waits for it, and nothing
    /// is allocated for a process, except for those with chosen PIDs. A process that ends while
    /// `look` sees it is freed by this thread.
    ///
    /// ```
    /// use ganger_proc_api::{BoxError, actor_fn};
    /// use ganger_sched::{Observe, Scheduler};
    ///
    /// let scheduler = Scheduler::builder().observe(Observe::Counts).start()?;
    /// let counter = scheduler.spawner().labelled("tenant-7");
    /// let counter = counter.spawn(actor_fn(|_, (): (), out| Ok(out.done(()))))?;
    /// let mut waiting = 0;
    /// scheduler.each_process(|process| {
    ///     assert_eq!(process.label().as_deref(), Some("tenant-7"));
    ///     waiting += process.counts().map_or(0, |counts| counts.waiting);
    /// });
    /// assert_eq!(waiting, 0);
    /// # counter.send(())?;
    /// # Ok::<(), BoxError>(())
    /// ```
    pub fn each_process(&self, mut look: impl FnMut(ProcessLook<'_>)) {
        for task in self.shared.census.registry.all() {
            if !task.state.is_closed() {
                look(ProcessLook(&task));
            }
        }
    }

    /// Calls `look` with the live process of this PID, if any. O(1).
    pub fn look_at<R>(&self, pid: Pid, look: impl FnOnce(ProcessLook<'_>) -> R) -> Option<R> {
        let task = self.shared.find(pid)?;
        (!task.state.is_closed()).then(|| look(ProcessLook(&task)))
    }

    /// Calls `look` with the live processes of a portion, and returns where the next portion
    /// begins: so a reader rests between two portions. The first begins at 0, and `None` follows
    /// the last. All portions together are as [`each_process`](Self::each_process).
    ///
    /// O(`most`): a portion has this many places for processes. The first portion has all processes
    /// with chosen PIDs, too.
    ///
    /// ```
    /// use ganger_proc_api::{BoxError, actor_fn};
    /// use ganger_sched::Scheduler;
    ///
    /// let scheduler = Scheduler::builder().build()?;
    /// let actor = || actor_fn(|_, (): (), out| Ok(out.done(())));
    /// let started = [scheduler.spawn(actor())?, scheduler.spawn(actor())?];
    /// let (mut seen, mut from) = (0, Some(0));
    /// while let Some(portion) = from {
    ///     from = scheduler.each_process_from(portion, 1, |_| seen += 1);
    /// }
    /// assert_eq!(seen, started.len());
    /// # Ok::<(), BoxError>(())
    /// ```
    pub fn each_process_from(
        &self,
        from: u32,
        most: u32,
        mut look: impl FnMut(ProcessLook<'_>),
    ) -> Option<u32> {
        let (tasks, next) = self.shared.census.registry.portion(from, most);
        for task in tasks {
            if !task.state.is_closed() {
                look(ProcessLook(&task));
            }
        }
        next
    }

    /// Returns how each worker has spent its time, in the order of
    /// [`worker_stats`](Self::worker_stats); empty where the scheduler is not observed. No worker
    /// waits for it.
    #[must_use]
    pub fn worker_times(&self) -> Vec<WorkerTimes> {
        let used = self.shared.worker_slots.used();
        self.shared.observation().times(used)
    }

    /// Returns the number of new events given to steps since the scheduler was built, as
    /// [`ProcessCounts::events`]; `None` where the scheduler is not observed. Exact. No worker
    /// waits for it. O(workers).
    #[must_use]
    pub fn events(&self) -> Option<u64> {
        self.shared.observation().events()
    }

    /// Returns the distributions of durations since the scheduler was built; `None` where the
    /// scheduler is not observed. No worker waits for it. O(workers and types).
    #[must_use]
    pub fn distributions(&self) -> Option<Distributions> {
        self.shared.observation().distributions()
    }
}
