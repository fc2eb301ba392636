//! What the end of a process owes to others: its exit actions, and calls for those that keep its
//! completers.
//!
//! **Bounds.** A sweep leaves out what is over when a list has doubled since the last sweep, and
//! has at least [`SWEEP`] entries. So the list has at most twice as many entries as there were at
//! once of those that were not over, or [`SWEEP`] if that is more. Both lists are also swept when
//! so many events have come for the process as the last sweep has left entries
//! ([`ExitActions::pass`]). The room that a sweep or a take-back leaves is at most four times the
//! entries, or four times [`SWEEP`].

use crate::base::burst::shrink_after_burst;
use crate::base::contain::{contain_and_report, discard};
use crate::base::stats::Counters;
use crate::process::exit_action::{ExitAction, ExitKey};
use ganger_proc_api::{EndCall, ExitCause, Pid};
use std::collections::HashSet;
use std::sync::Weak;

/// Shorter lists are not swept.
const SWEEP: usize = 32;

/// So many looks at entries count as one event.
const LOOKS: usize = 32;

/// What others ask of the end of a process.
pub(crate) enum ExitRequest {
    Add(Box<dyn ExitAction>),
    /// Takes back the actions with that key.
    Remove(Box<ExitKey>),
    Call(Box<YieldCall>),
}

/// A call that is made for the completer of the yield with that number, unless it is taken back.
pub(crate) struct YieldCall {
    pub(crate) token: u64,
    pub(crate) call: Weak<EndCall>,
}

/// See the head of this file.
#[derive(Default)]
pub(crate) struct ExitActions {
    actions: Swept<Box<dyn ExitAction>>,
    calls: Swept<YieldCall>,
    /// After how many events both are swept.
    due: usize,
}

/// Entries in the order of their arrival, some of which may be over.
struct Swept<T> {
    list: Vec<T>,
    /// The length from which the list is swept.
    sweep: usize,
}

/// What may have nothing left to do before the process ends.
trait Over {
    fn is_over(&self, counters: &Counters) -> bool;
}

impl Over for Box<dyn ExitAction> {
    fn is_over(&self, counters: &Counters) -> bool {
        let mut is_over = false;
        contain_and_report("exit action", None, counters, || {
            is_over = (**self).is_over();
        });
        is_over
    }
}

impl Over for YieldCall {
    fn is_over(&self, _: &Counters) -> bool {
        self.call.strong_count() == 0
    }
}

fn has_key(
    action: &dyn ExitAction,
    counters: &Counters,
    is_key: impl Fn(&ExitKey) -> bool,
) -> bool {
    let mut key = None;
    contain_and_report("exit action", None, counters, || key = action.key());
    key.is_some_and(|key| is_key(&key))
}

impl<T> Default for Swept<T> {
    fn default() -> Self {
        let list = Vec::new();
        Self { list, sweep: SWEEP }
    }
}

impl<T: Over> Swept<T> {
    /// Adds an entry. O(1), and O(n) for a sweep. Returns how many entries it has looked at.
    fn push(&mut self, entry: T, counters: &Counters) -> usize {
        let before = self.list.len();
        self.list.push(entry);
        if before < self.sweep {
            return 0;
        }
        self.leave_out(counters, |it| it.is_over(counters));
        self.sweep = SWEEP.max(2 * self.list.len());
        before
    }

    /// Leaves entries out. O(n). Returns how many entries it has looked at.
    fn leave_out(&mut self, counters: &Counters, is_out: impl Fn(&T) -> bool) -> usize {
        let before = self.list.len();
        for entry in self.list.extract_if(.., |it| is_out(it)) {
            discard(None, counters, entry);
        }
        shrink_after_burst(&mut self.list, 4 * SWEEP);
        before
    }
}

impl ExitActions {
    pub(crate) fn is_empty(&self) -> bool {
        self.actions.list.is_empty() && self.calls.list.is_empty()
    }

    /// Carries out a request. O(1); O(n) for a take-back or a sweep. Returns how many events of a
    /// batch that counts for.
    pub(crate) fn apply(&mut self, request: ExitRequest, counters: &Counters) -> usize {
        let looked_at = match request {
            ExitRequest::Add(action) => self.actions.push(action, counters),
            ExitRequest::Remove(key) => (self.actions).leave_out(counters, |it| {
                has_key(&**it, counters, |other| *other == *key)
            }),
            ExitRequest::Call(call) => self.calls.push(*call, counters),
        };
        1 + looked_at / LOOKS
    }

    /// So many events have come for the process. Now and then leaves out what is over. O(events),
    /// amortised.
    pub(crate) fn pass(&mut self, events: usize, counters: &Counters) {
        let entries = |this: &Self| this.actions.list.len() + this.calls.list.len();
        self.due = self.due.saturating_sub(events);
        if self.due == 0 && entries(self) > SWEEP {
            self.actions.leave_out(counters, |it| it.is_over(counters));
            self.calls.leave_out(counters, |it| it.is_over(counters));
            self.due = entries(self);
        }
    }

    /// Takes the calls out that are for these yields, which are in order. O(n) in the calls.
    pub(crate) fn take_calls(&mut self, tokens: &[u64]) -> Vec<Weak<EndCall>> {
        let is_for = |it: &mut YieldCall| tokens.binary_search(&it.token).is_ok();
        let taken = self.calls.list.extract_if(.., is_for);
        let taken = taken.map(|it| it.call).collect();
        shrink_after_burst(&mut self.calls.list, 4 * SWEEP);
        taken
    }

    /// As [`apply`](Self::apply), for many, in their order. O(n) in them and in the actions.
    pub(crate) fn apply_all(&mut self, requests: Vec<ExitRequest>, counters: &Counters) {
        let added = self.settle(requests, counters);
        self.actions.list.extend(added);
    }

    /// As [`apply_all`](Self::apply_all), for requests that come when the process has released
    /// everything.
    #[cold]
    #[inline(never)]
    pub(crate) fn apply_late(
        this: &mut Option<Box<Self>>,
        requests: Vec<ExitRequest>,
        process: Pid,
        counters: &Counters,
    ) {
        if requests.is_empty() {
            return;
        }
        let this = this.get_or_insert_default();
        let mut added = this.settle(requests, counters);
        release_each(&mut added, process, counters);
        this.actions.list.extend(added);
    }

    /// Carries out all requests but for the additions, which it returns.
    fn settle(
        &mut self,
        requests: Vec<ExitRequest>,
        counters: &Counters,
    ) -> Vec<Box<dyn ExitAction>> {
        // From the end: so a take-back is known before the action that it removes.
        let (mut added, mut removed) = (Vec::new(), HashSet::new());
        for request in requests.into_iter().rev() {
            match request {
                ExitRequest::Add(action)
                    if !removed.is_empty()
                        && has_key(&*action, counters, |it| removed.contains(it)) =>
                {
                    discard(None, counters, action);
                }
                ExitRequest::Add(action) => added.push(action),
                ExitRequest::Remove(key) => _ = removed.insert(*key),
                ExitRequest::Call(call) => self.calls.list.push(*call),
            }
        }
        if !removed.is_empty() {
            self.actions.leave_out(counters, |it| {
                has_key(&**it, counters, |it| removed.contains(it))
            });
        }
        added.reverse();
        added
    }

    /// The process has been closed: releases what others can see. O(n).
    pub(crate) fn release(&mut self, process: Pid, counters: &Counters) {
        release_each(&mut self.actions.list, process, counters);
    }

    /// The process is gone: tells others, and then makes the calls. O(n).
    #[cold]
    #[inline(never)]
    pub(crate) fn tell(self, process: Pid, cause: impl FnOnce() -> ExitCause, counters: &Counters) {
        let cause = (!self.actions.list.is_empty()).then(cause);
        self.tell_each(process, counters, |action| {
            if let Some(cause) = &cause {
                action.tell(process, cause);
            }
        });
    }

    /// As [`tell`](Self::tell), where the process was not started after all.
    pub(crate) fn not_started(self, process: Pid, counters: &Counters) {
        self.tell_each(process, counters, |action| action.not_started(process));
    }

    fn tell_each(self, process: Pid, counters: &Counters, tell: impl Fn(Box<dyn ExitAction>)) {
        let Self { actions, calls, .. } = self;
        for action in actions.list {
            contain_and_report("exit action", process, counters, || tell(action));
        }
        for call in calls.list.iter().filter_map(|it| it.call.upgrade()) {
            contain_and_report("on_end", process, counters, move || call.call());
        }
    }
}

fn release_each(actions: &mut [Box<dyn ExitAction>], process: Pid, counters: &Counters) {
    for action in actions {
        contain_and_report("exit action", process, counters, || action.release(process));
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests;
