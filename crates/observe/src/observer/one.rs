//! The details of a process.

use super::Observer;
use ganger_link::links_of;
use ganger_proc_api::{ExitCause, Pid};
use ganger_sched::{Handle, ProcessCounts, ProcessInfo, ProcessLook, Wait, Watchers};
use ganger_supervise::supervisors;
use std::sync::Arc;

/// The number of exit actions that a reader looks at. Meanwhile no worker can run the process.
pub(crate) const WATCHERS: usize = 1_000;

/// A live process, as [`Observer::process`] finds it. Each value was right at a moment of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessDetails {
    /// Its state, type, names, parent and marks.
    pub info: ProcessInfo,
    /// The label for its accounts.
    pub label: Option<Arc<str>>,
    /// Turns, steps, events, busy time, mailbox and age; `None` where the scheduler does not count.
    pub counts: Option<ProcessCounts>,
    /// The yielded commands that have not completed, and since when it waits for them.
    pub waits: Vec<Wait>,
    /// The linked processes.
    pub links: Vec<Pid>,
    /// The processes that it has monitors of, once for each monitor, as far as these processes wait
    /// at the moment.
    pub monitors: Vec<Pid>,
    /// The watchers of its end; `None` while the process is ready or runs.
    pub watched_by: Option<Watchers>,
    /// How often its supervisor has started it again; `None` where it has no supervisor.
    pub restarts: Option<u64>,
    /// Its last end or failure, where its supervisor knows it.
    pub last_cause: Option<ExitCause>,
    /// The bytes of its state and of the scheduler's part of it, without the mailbox and what the
    /// state points to; `None` while it is ready or runs.
    pub bytes: Option<usize>,
}

impl Observer {
    /// Returns the details of a process; `None` where no live process of this scheduler has the
    /// PID.
    ///
    /// O(processes), at the observer's pace, because a monitor is kept with its target. This thread
    /// stands in for the worker of a waiting process while it reads.
    ///
    /// ```
    /// use ganger_observe::Observer;
    /// use ganger_proc_api::{BoxError, process_fn};
    /// use ganger_sched::{Observe, Scheduler};
    ///
    /// let scheduler = Scheduler::builder().observe(Observe::Counts).start()?;
    /// let idle = scheduler.spawn(process_fn(|_, _, _| Ok(())))?;
    /// let details = Observer::of(&scheduler).process(idle.pid()).unwrap();
    /// assert_eq!((details.info.pid, details.restarts), (idle.pid(), None));
    /// assert!(details.links.is_empty() && details.counts.is_some());
    /// # Ok::<(), BoxError>(())
    /// ```
    #[must_use]
    pub fn process(&self, pid: Pid) -> Option<ProcessDetails> {
        let handle = self.handle();
        let mut details = handle.look_at(pid, ProcessDetails::of)?;
        details.links = links_of(handle, pid);
        if let Some((restarts, last)) = restarts_of(handle, pid) {
            details.restarts = Some(restarts);
            details.last_cause = last;
        }
        self.each(|it| add_monitors(&mut details.monitors, pid, it));
        details.monitors.sort_unstable();
        Some(details)
    }
}

/// Adds the process once for each of its monitors by `watcher`.
pub(crate) fn add_monitors(monitors: &mut Vec<Pid>, watcher: Pid, process: ProcessLook<'_>) {
    let found = process.watched_by(watcher, WATCHERS).unwrap_or_default();
    monitors.extend((0..found).map(|_| process.pid()));
}

/// Returns how often the supervisor of a process has started it again, and why the last time.
/// O(supervisors and their children).
pub(crate) fn restarts_of(scheduler: &Handle, pid: Pid) -> Option<(u64, Option<ExitCause>)> {
    let pid = pid.with_node(None);
    let mut children = supervisors(scheduler)
        .into_iter()
        .flat_map(|it| it.children);
    let child = children.find(|it| it.pid == Some(pid))?;
    Some((child.restarts, child.last))
}

impl ProcessDetails {
    fn of(process: ProcessLook<'_>) -> Self {
        let mut waits = Vec::new();
        process.each_wait(|it| waits.push(it));
        Self {
            info: process.info(),
            label: process.label(),
            counts: process.counts(),
            waits,
            links: Vec::new(),
            monitors: Vec::new(),
            watched_by: process.watchers(WATCHERS),
            restarts: None,
            last_cause: None,
            bytes: process.bytes(),
        }
    }
}
