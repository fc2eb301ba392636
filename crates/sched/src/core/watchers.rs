//! Who is told when a process ends.
//!
//! **Problem.** Any process may monitor any other, while that one waits, runs or ends; each monitor is to give one
//! notice, whatever comes first. A process that nobody monitors is not to pay for it: not a word of memory, and no
//! read-modify-write at its end.
//!
//! **Rejected.** A list in the cell, to which anybody adds and which the end closes: one read-modify-write more for every
//! process that ends. One table for a scheduler: a lock for all, and a look into it at every end. To look, after the mailbox
//! has been closed, at a list that others add to: both sides would need a full fence.
//!
//! **Protocol.**
//! 1. Who monitors a process puts that into its mailbox ([`begin`]), as a message, but that no step is shown it and no
//!    limit counts it. Who takes a monitor back does the same ([`end`]).
//! 2. Who runs the process takes both out before its next step, in their order, and keeps the list ([`Watchers`]).
//! 3. The end of the process closes its mailbox, carries out what is left in there, and tells all that are in the list
//!    then ([`Watchers::tell`]), when the process is gone.
//! 4. A mailbox that is closed already refuses. As long as the process has its PID, what it refuses goes to a table of the
//!    scheduler (`late.rs`), where its end looks after its PID is gone. Who puts something there does so while the registry
//!    keeps the PID from going; so the end sees that there is something, and no fence is needed.
//! 5. Where there is no such PID any more, whoever monitors is told at once, by itself.
//!
//! **Proof sketch.** A mailbox takes a thing or refuses it, and what it takes leaves it once: by a drain, or by the close;
//! and the table gives a thing once, under its lock. So each monitor is in one list, or refused for good, and each list is
//! told once, since a process ends once. A notice is a system event: its process sees it unless it ends before.
//!
//! **Bounds.** Monitors of processes that have ended meanwhile are left out whenever the list has grown to twice of what
//! was left the last time: so it has at most twice as many, and [`SWEEP`], as there were at once of processes alive.

use crate::base::contain::discard;
use crate::base::stats::Counters;
use crate::core::cell::ProcessCell;
use crate::core::cell::Task;
use crate::core::owned::Item;
use crate::core::shared::Shared;
use ganger_mpsc::Batch;
use ganger_proc_api::{Event, ExitCause, ExitNotice, MonitorError, Pid, Tag};
use rustc_hash::FxHashSet;
use std::mem;
use std::sync::Arc;

/// Lists that are shorter are not gone through for those who have ended.
const SWEEP: usize = 32;

/// So many looks at monitors are worth an event.
const LOOKS: usize = 32;

/// What a mailbox has for the list: what the end of a process owes to others.
pub(crate) enum Watch {
    /// Somebody monitors the process.
    Begin(Watcher),
    /// The process with that [key](ProcessCell::key) does not any more, as far as its monitors have that tag. Not by its
    /// PID, which another process may have by now.
    End { watcher: u64, tag: Tag },
    /// It may have names: see `names.rs`.
    Named,
}

/// A monitor.
pub(crate) struct Watcher {
    /// Who is to be told.
    task: Task,
    /// Whom it monitors, by the PID that it used.
    target: Pid,
    tag: Tag,
}

/// The monitors of one process.
#[derive(Default)]
pub(crate) struct Watchers {
    list: Vec<Watcher>,
    /// From how many on they are gone through.
    sweep: usize,
    /// Whether the process may have names, which are free before anybody is told.
    is_named: bool,
}

/// Has `watcher` told when the target ends.
///
/// # Errors
/// [`MonitorError`] when it is none of the same scheduler.
pub(crate) fn begin(watcher: Task, target: Pid, tag: Tag) -> Result<(), MonitorError> {
    if !watcher.shared.is_local(target) {
        return Err(MonitorError { pid: target });
    }
    if target.id() == watcher.pid.id() {
        // When it has ended, it is told nothing any more.
        return Ok(());
    }
    let shared = Arc::clone(&watcher.shared);
    let task = watcher;
    let watch = Watch::Begin(Watcher { task, target, tag });
    if let Err(Watch::Begin(watcher)) = shared.watch(target, watch) {
        let _itself = watcher.tell(ExitCause::NotFound);
    }
    Ok(())
}

/// Takes back what `watcher` has begun with that tag.
pub(crate) fn end(watcher: &ProcessCell, target: Pid, tag: Tag) {
    let shared = &watcher.shared;
    let watcher = watcher.key();
    // One that is gone has told everybody.
    let _ = shared.watch(target, Watch::End { watcher, tag });
}

impl Shared {
    /// Has the process with that PID take that, also while it ends. It comes back when there is none.
    fn watch(&self, target: Pid, watch: Watch) -> Result<(), Watch> {
        let Some(found) = self.find(target) else {
            return Err(watch);
        };
        let mut refused = match found.push_watch(watch) {
            Ok(()) => return Ok(()),
            Err(refused) => Some(refused),
        };
        let key = found.key();
        self.registry.read(found.pid.id(), |task| {
            if task.key() == key
                && let Some(watch) = refused.take()
            {
                self.late.put(key, watch);
            }
        });
        refused.map_or(Ok(()), Err)
    }
}

impl Watcher {
    /// Tells it. Gives back the reference to it, which may be the last one, with something of a user's behind it.
    fn tell(self, cause: ExitCause) -> Task {
        let Self { task, target, tag } = self;
        task.notify_of_exit(ExitNotice::new(target, tag, cause));
        task
    }
}

impl Watchers {
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty() && !self.is_named
    }

    /// Carries out what has come out of the mailbox. O(1), or O(n) in the monitors when one is taken back, and now and then.
    /// Says how many events of a batch that is worth.
    pub(crate) fn apply(&mut self, watch: Watch, counters: &Counters) -> usize {
        let looked_at = match watch {
            Watch::Begin(watcher) => {
                let before = self.list.len();
                self.list.push(watcher);
                if before < self.sweep {
                    0
                } else {
                    self.leave_out(counters, |it| it.task.state.is_closed());
                    self.sweep = SWEEP.max(2 * self.list.len());
                    before
                }
            }
            Watch::End { watcher, tag } => {
                let before = self.list.len();
                self.leave_out(counters, |it| it.task.key() == watcher && it.tag == tag);
                before
            }
            Watch::Named => {
                self.is_named = true;
                0
            }
        };
        1 + looked_at / LOOKS
    }

    /// The process has ended: as [`apply`](Self::apply), for all that is for the list in what nobody will see, of which the
    /// rest is left there; and its names are free.
    #[cold]
    #[inline(never)]
    pub(crate) fn end(
        this: &mut Option<Box<Self>>,
        items: &mut Batch<Item>,
        task: &Task,
        counters: &Counters,
    ) {
        if items.iter().any(|item| matches!(item, Item::Watch(_))) {
            Self::apply_all(this, items, counters);
        }
        if this.as_ref().is_some_and(|this| this.is_named) {
            task.shared.names.free_all(task.pid);
        }
    }

    fn apply_all(this: &mut Option<Box<Self>>, items: &mut Batch<Item>, counters: &Counters) {
        let (mut watches, mut rest) = (Vec::new(), Batch::new());
        for item in mem::take(items) {
            match item {
                Item::Watch(watch) => watches.push(*watch),
                item => rest.push_back(item),
            }
        }
        *items = rest;
        this.get_or_insert_default()
            .apply_each(watches.into_iter(), counters);
    }

    /// As [`apply`](Self::apply), for many, in their order. O(n) in them and in the monitors.
    fn apply_each(&mut self, watches: impl DoubleEndedIterator<Item = Watch>, counters: &Counters) {
        // From the end: who is taken back is known before.
        let (mut begun, mut taken_back) = (Vec::new(), FxHashSet::default());
        for watch in watches.rev() {
            match watch {
                Watch::Begin(it) if !taken_back.contains(&(it.task.key(), it.tag)) => {
                    begun.push(it);
                }
                Watch::Begin(Watcher { task, .. }) => discard(task.pid, counters, task),
                Watch::End { watcher, tag } => {
                    taken_back.insert((watcher, tag));
                }
                Watch::Named => self.is_named = true,
            }
        }
        if !taken_back.is_empty() {
            self.leave_out(counters, |it| taken_back.contains(&(it.task.key(), it.tag)));
        }
        self.list.extend(begun.into_iter().rev());
    }

    fn leave_out(&mut self, counters: &Counters, is_out: impl Fn(&Watcher) -> bool) {
        for Watcher { task, .. } in self.list.extract_if(.., |it| is_out(it)) {
            discard(task.pid, counters, task);
        }
    }

    /// The process is gone: tells all who monitor it, and all who have come for that since its mailbox was closed. O(n).
    #[cold]
    #[inline(never)]
    pub(crate) fn tell(
        this: Option<Box<Self>>,
        task: &ProcessCell,
        cause: impl FnOnce() -> ExitCause,
        counters: &Counters,
    ) {
        let mut this = this.map_or_else(Self::default, |this| *this);
        let late = task.shared.late.take(task.key());
        this.apply_each(late.into_iter(), counters);
        if this.list.is_empty() {
            return;
        }
        let cause = cause();
        for watcher in this.list {
            let task = watcher.tell(cause.clone());
            discard(task.pid, counters, task);
        }
    }
}

impl ProcessCell {
    /// Puts in what is for the list. It comes back when the process has ended.
    pub(crate) fn push_watch(self: &Task, watch: Watch) -> Result<(), Watch> {
        match self.push(Item::Watch(Box::new(watch))) {
            Ok(()) => Ok(()),
            Err(Item::Watch(watch)) => Err(*watch),
            Err(_) => unreachable!("the mailbox gives back what was pushed"),
        }
    }

    /// Tells the process that another one has ended, unless it has ended itself.
    fn notify_of_exit(self: &Arc<Self>, notice: ExitNotice) {
        let _ended = self.push_system(Item::Event(Event::Exit(Box::new(notice))));
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
