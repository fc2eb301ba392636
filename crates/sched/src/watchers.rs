//! Who is told when a process ends.
//!
//! **Problem.** Any process may monitor any other, while that one waits, runs or ends; each monitor is to give one
//! notice, whatever comes first. A process that nobody monitors is not to pay for it: not a word of memory, and not an
//! atomic operation at its end.
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
//! 4. A mailbox that is closed already refuses, or there is none: whoever monitors is told at once, by itself.
//!
//! **Proof sketch.** A mailbox takes a thing or refuses it, and what it takes leaves it once: by a drain, or by the close. So
//! each monitor is in one list, or refused, and each list is told once, since a process ends once. A notice is a system
//! event: its process sees it unless it ends before, or that is refused.
//!
//! **Bounds.** Monitors of processes that have ended meanwhile are left out whenever the list has grown to twice of what
//! was left the last time: so it has at most twice as many, and [`SWEEP`], as there were at once of processes alive.

use crate::Task;
use crate::cell::ProcessCell;
use crate::contain::{discard, text_of_chain};
use crate::core::Item;
use crate::shared::Shared;
use crate::stats::Counters;
use ganger_mpsc::Batch;
use ganger_proc_api::{Event, ExitCause, ExitNotice, ExitReason, MonitorError, Pid, Tag};
use std::mem;
use std::sync::Arc;

/// Lists that are shorter are not gone through for those who have ended.
const SWEEP: usize = 32;

/// What a mailbox has for the list: what the end of a process owes to others.
pub(crate) enum Watch {
    /// Somebody monitors the process.
    Begin(Watcher),
    /// The process with that PID does not any more, as far as its monitors have that tag.
    End { watcher: Pid, tag: Tag },
    /// It has that name: see `names.rs`.
    Name(Box<str>),
    /// It has lost that name.
    Unname(Box<str>),
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
    /// The names of the process, which are free before anybody is told.
    names: Vec<Box<str>>,
}

/// Has `watcher` told when the target ends.
///
/// # Errors
/// [`MonitorError`] when it is none of the same scheduler.
pub(crate) fn begin(watcher: Task, target: Pid, tag: Tag) -> Result<(), MonitorError> {
    if !watcher.shared.is_local(target) {
        return Err(MonitorError { pid: target });
    }
    let found = watcher.shared.find(target);
    let task = watcher;
    let watch = Watch::Begin(Watcher { task, target, tag });
    let refused = match found {
        None => watch,
        Some(found) => match found.push_watch(watch) {
            Ok(()) => return Ok(()),
            Err(watch) => watch,
        },
    };
    if let Watch::Begin(watcher) = refused {
        let _itself = watcher.tell(ExitCause::NotFound);
    }
    Ok(())
}

/// Takes back what `watcher` has begun with that tag.
pub(crate) fn end(watcher: &ProcessCell, target: Pid, tag: Tag) {
    if let Some(found) = watcher.shared.find(target) {
        let watcher = watcher.pid;
        let watch = Watch::End { watcher, tag };
        // One that has ended has told everybody.
        let _ = found.push_watch(watch);
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
        self.list.is_empty() && self.names.is_empty()
    }

    /// Carries out what has come out of the mailbox. O(1), or O(n) in the monitors when one
    /// is taken back, and now and then.
    pub(crate) fn apply(&mut self, watch: Watch, counters: &Counters) {
        match watch {
            Watch::Begin(watcher) => {
                if self.list.len() >= self.sweep {
                    self.leave_out(counters, |it| it.task.state.is_closed());
                    self.sweep = SWEEP.max(2 * self.list.len());
                }
                self.list.push(watcher);
            }
            Watch::Name(name) => {
                if !self.names.contains(&name) {
                    self.names.push(name);
                }
            }
            Watch::Unname(name) => self.names.retain(|it| *it != name),
            Watch::End { watcher, tag } => {
                self.leave_out(counters, |it| it.task.pid == watcher && it.tag == tag);
            }
        }
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
        if let Some(this) = this {
            this.free_names(&task.shared, task.pid);
        }
    }

    fn apply_all(this: &mut Option<Box<Self>>, items: &mut Batch<Item>, counters: &Counters) {
        let (watches, rest): (Batch<_>, Batch<_>) = mem::take(items)
            .into_iter()
            .partition(|item| matches!(item, Item::Watch(_)));
        *items = rest;
        for item in watches {
            if let Item::Watch(watch) = item {
                this.get_or_insert_default().apply(*watch, counters);
            }
        }
    }

    /// The process with that PID has no names any more.
    fn free_names(&mut self, shared: &Shared, pid: Pid) {
        for name in self.names.drain(..) {
            shared.names.free(&name, pid);
        }
    }

    fn leave_out(&mut self, counters: &Counters, is_out: impl Fn(&Watcher) -> bool) {
        for Watcher { task, .. } in self.list.extract_if(.., |it| is_out(it)) {
            discard(task.pid, counters, task);
        }
    }

    /// Tells all of them that the process has ended, and why. O(n).
    #[cold]
    #[inline(never)]
    pub(crate) fn tell(this: Option<Box<Self>>, reason: &ExitReason, counters: &Counters) {
        if let Some(mut this) = this {
            this.tell_cause(&ExitCause::of(reason, text_of_chain), counters);
        }
    }

    /// As [`tell`](Self::tell), with what the reason comes to.
    pub(crate) fn tell_cause(&mut self, cause: &ExitCause, counters: &Counters) {
        for watcher in self.list.drain(..) {
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
