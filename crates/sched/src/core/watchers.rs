//! The monitors of a process, which are told when it ends; and calls that are made then.
//!
//! **Problem.** Any process may monitor any other, while the target waits, runs or ends. Each
//! monitor gives one notice, in every order of events. A process without monitors must not pay
//! for them: no word of memory, and no read-modify-write at its end.
//!
//! **Rejected.**
//! - A list in the cell, to which monitors add and which the end closes: one read-modify-write
//!   more for every process that ends.
//! - One table for a scheduler: a lock for all, and a look into it at every end.
//! - To look at a list of the monitors after the mailbox is closed: both sides need a full fence.
//!
//! **Protocol.**
//! 1. A monitor puts its request into the mailbox of the target ([`begin`]). No step sees that
//!    request, and no limit counts it. The monitor takes it back in the same way ([`end`]).
//! 2. The worker that runs the process takes these requests out before the next step, in their
//!    order. It keeps the list ([`Watchers`]).
//! 3. The end of the process closes the mailbox and carries out the requests that are left there.
//!    When the process is gone, it tells all monitors in the list ([`Watchers::tell`]).
//! 4. A closed mailbox refuses requests. As long as the process has its PID, a refused request
//!    goes to a table of the scheduler (`late.rs`). The end looks there after the PID is gone. The
//!    monitor puts its request there while the registry keeps the PID from going. So the end sees
//!    that there is something, and no fence is needed.
//! 5. If the PID is gone, the monitor tells itself at once.
//!
//! **Proof sketch.** A mailbox takes a request or refuses it. A request leaves the mailbox once:
//! by a drain, or by the close. The table gives a request once, under its lock. So each monitor is
//! in one list, or refused for good. A process ends once, so each list is told once. A notice is
//! a system event: its process sees it unless that process ends before.
//!
//! **Bounds.** A sweep removes monitors of ended processes when the list has doubled since the
//! last sweep, and has at least [`SWEEP`] entries. So the list has at most twice as many entries as
//! monitors were alive at once, or [`SWEEP`] if that is more. The same holds of calls, and of those
//! that have been taken back. Both are also swept when so many events have come for the process as
//! the last sweep has left entries ([`Watchers::pass`]). The room that a sweep or a take-back
//! leaves is at most four times the entries, or four times [`SWEEP`].

use crate::base::burst::shrink_after_burst;
use crate::base::contain::{contain_and_report, discard};
use crate::base::stats::Counters;
use crate::core::cell::ProcessCell;
use crate::core::cell::Task;
use crate::core::item::Item;
use crate::core::shared::Shared;
use crate::probe::Probe;
use ganger_mpsc::Batch;
use ganger_proc_api::{EndCall, Event, ExitCause, ExitNotice, MonitorError, Pid, Tag};
use std::collections::HashSet;
use std::mem;
use std::sync::{Arc, Weak};

/// Shorter lists are not swept for ended monitors.
const SWEEP: usize = 32;

/// So many looks at monitors count as one event.
const LOOKS: usize = 32;

/// What a mailbox has for the list: what the end of a process owes to others.
pub(crate) enum Watch {
    /// A monitor begins to watch the process.
    Begin(Watcher),
    /// The process with that [key](ProcessCell::key) takes back its monitors with that tag. The
    /// key is used because another process may have the PID by now.
    End { watcher: u64, tag: Tag },
    /// A call is to be made, for the completer of that yield, unless the call has been taken back.
    Call(u64, Weak<EndCall>),
    /// It may have names: see `names.rs`.
    Named,
}

/// A monitor.
pub(crate) struct Watcher {
    /// The process that is told.
    task: Task,
    /// The PID by which it monitors the target.
    target: Pid,
    tag: Tag,
}

/// The monitors of one process.
#[derive(Default)]
pub(crate) struct Watchers {
    list: Vec<Watcher>,
    /// The list length from which it is swept.
    sweep: usize,
    /// Each with the number of its yield.
    calls: Vec<(u64, Weak<EndCall>)>,
    /// The number of calls from which they are swept.
    sweep_calls: usize,
    /// After how many events both are swept.
    due: usize,
    /// Whether the process may have names, which are free before a monitor is told.
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
    shared.probe.called(&shared, "monitor");
    Ok(())
}

/// Takes back what `watcher` has begun with that tag.
pub(crate) fn end(watcher: &ProcessCell, target: Pid, tag: Tag) {
    let shared = &watcher.shared;
    let watcher = watcher.key();
    // A process that is gone has told its monitors.
    let _ = shared.watch(target, Watch::End { watcher, tag });
}

impl Shared {
    /// Puts that into the process with that PID, also while the process ends. Gives it back when
    /// there is no such process.
    fn watch(&self, target: Pid, watch: Watch) -> Result<(), Watch> {
        match self.find(target) {
            Some(found) => self.watch_found(&found, watch),
            None => Err(watch),
        }
    }

    /// As [`watch`](Self::watch), for that process.
    fn watch_found(&self, found: &Task, watch: Watch) -> Result<(), Watch> {
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
    /// Tells the monitor. Gives back the reference to it, which may be the last one: its drop may
    /// run user code.
    fn tell(self, cause: ExitCause) -> Task {
        let Self { task, target, tag } = self;
        task.notify_of_exit(ExitNotice::new(target, tag, cause));
        task
    }
}

impl Watchers {
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty() && self.calls.is_empty() && !self.is_named
    }

    /// Carries out a request from the mailbox. O(1); O(n) in the monitors for a take-back, and in
    /// these or the calls for a sweep. Returns how many events of a batch that counts for.
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
            Watch::Call(token, call) => {
                let before = self.calls.len();
                self.calls.push((token, call));
                if before < self.sweep_calls {
                    0
                } else {
                    self.leave_out_calls();
                    self.sweep_calls = SWEEP.max(2 * self.calls.len());
                    before
                }
            }
            Watch::Named => {
                self.is_named = true;
                0
            }
        };
        1 + looked_at / LOOKS
    }

    /// So many events have come for the process. Now and then leaves out monitors that have ended,
    /// and calls that were taken back. O(events), amortised.
    pub(crate) fn pass(&mut self, events: usize, counters: &Counters) {
        self.due = self.due.saturating_sub(events);
        if self.due == 0 && self.list.len() + self.calls.len() > SWEEP {
            self.leave_out(counters, |it| it.task.state.is_closed());
            self.leave_out_calls();
            self.due = self.list.len() + self.calls.len();
        }
    }

    /// The process has ended. Does as [`apply`](Self::apply) for all requests in the items that no
    /// step will see, and leaves the other items there. Then frees the names of the process.
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

    /// Takes the calls out that are for these yields, which are in order. O(n) in the calls.
    pub(crate) fn take_calls(&mut self, tokens: &[u64]) -> Vec<Weak<EndCall>> {
        let is_for = |(token, _): &mut (u64, _)| tokens.binary_search(token).is_ok();
        let taken = self.calls.extract_if(.., is_for);
        let taken = taken.map(|(_, call)| call).collect();
        shrink_after_burst(&mut self.calls, 4 * SWEEP);
        taken
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
        // From the end: so a take-back is known before the monitor that it removes.
        let (mut begun, mut taken_back) = (Vec::new(), HashSet::new());
        for watch in watches.rev() {
            match watch {
                Watch::Begin(it) if !taken_back.contains(&(it.task.key(), it.tag)) => {
                    begun.push(it);
                }
                Watch::Begin(Watcher { task, .. }) => discard(task.pid, counters, task),
                Watch::End { watcher, tag } => {
                    taken_back.insert((watcher, tag));
                }
                Watch::Call(token, call) => self.calls.push((token, call)),
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
        shrink_after_burst(&mut self.list, 4 * SWEEP);
    }

    fn leave_out_calls(&mut self) {
        self.calls.retain(|(_, call)| call.strong_count() > 0);
        shrink_after_burst(&mut self.calls, 4 * SWEEP);
    }

    /// The process is gone. Tells all its monitors, also those that came after its mailbox was
    /// closed, and then makes the calls. O(n).
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
        if !this.list.is_empty() {
            let cause = cause();
            for watcher in this.list {
                let task = watcher.tell(cause.clone());
                discard(task.pid, counters, task);
            }
        }
        for call in this.calls.iter().filter_map(|(_, call)| call.upgrade()) {
            contain_and_report("on_end", task.pid, counters, move || call.call());
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

    /// Has a call made when the process has ended, or has taken the yield back. `false` when it has
    /// ended already.
    pub(crate) fn call_at_end(self: &Task, token: u64, call: Weak<EndCall>) -> bool {
        let watch = Watch::Call(token, call);
        self.shared.watch_found(self, watch).is_ok()
    }

    /// Tells the process that another one has ended, unless it has ended itself.
    fn notify_of_exit(self: &Arc<Self>, notice: ExitNotice) {
        let _ended = self.push_system(Item::Event(Event::Exit(Box::new(notice))));
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests;
