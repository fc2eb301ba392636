//! The duties at the end of a process: its exit actions, and calls for the holders of its
//! completers.
//!
//! **Bounds.** A sweep drops finished entries when a list has doubled since the last sweep, and has
//! at least [`SWEEP`] entries. So the list has at most twice as many entries as were unfinished at
//! any time, or [`SWEEP`] if that is more. Both lists are also swept after as many events of the
//! process as the last sweep has left entries ([`ExitActions::pass`]). The room left by a sweep or
//! a take-back is at most four times the entries, or four times [`SWEEP`].
//!
//! **Take-backs.** A look for the key at all entries would cost n looks each. So a long list notes
//! the taken keys, with its length at the moment of the take-back. The list drops earlier entries
//! with these keys after as many additions and take-backs, since the last time, as half of its
//! entries. A sweep and the end do so too.
//!
//! **Portions.** The end may have millions of watchers to notify. A turn notifies [`PORTION`] of
//! the watchers. Between two turns the process is queued behind other processes (`turn/finish.rs`).

use crate::base::contain::{contain_and_report, discard};
use crate::base::stats::Counters;
#[cfg(feature = "observe")]
use crate::process::exit_action::Watcher;
use crate::process::exit_action::{ExitAction, ExitKey};
use ganger_proc_api::{EndCall, ExitCause, Pid};
use ganger_sync::shrink_after_burst;
use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::Weak;
use std::vec;

/// Shorter lists are not swept.
const SWEEP: usize = 32;

/// This many looks at entries count as one event.
const LOOKS: usize = 32;

/// The most entries released, or notified, in a turn.
pub(crate) const PORTION: usize = 256;

/// A request to the end of a process.
pub(crate) enum ExitRequest {
    Add(Box<dyn ExitAction>),
    /// Takes back the actions with the key.
    Remove(Box<ExitKey>),
    Call(Box<YieldCall>),
}

/// A call for the completer of a yield, unless the yield is taken back.
pub(crate) struct YieldCall {
    pub(crate) token: u64,
    pub(crate) call: Weak<EndCall>,
}

/// See the head of this file.
#[derive(Default)]
pub(crate) struct ExitActions {
    actions: Swept<Box<dyn ExitAction>>,
    calls: Swept<YieldCall>,
    /// The taken keys, each with the number of actions at the take-back.
    removed: HashMap<ExitKey, usize>,
    /// How many were added or taken back since all entries were looked at for these keys.
    changes: usize,
    /// After how many events both are swept.
    due: usize,
}

/// Runs the actions of a finished incarnation: all release, and then all notify.
#[cold]
pub(crate) fn run_all(
    mut actions: Vec<Box<dyn ExitAction>>,
    process: Pid,
    cause: &ExitCause,
    counters: &Counters,
) {
    release_each(&mut actions, process, counters);
    let mut telling = Telling {
        cause: Some(cause.clone()),
        begun: None,
        actions: actions.into_iter(),
        calls: Vec::new().into_iter(),
    };
    while telling.go_on(process, counters) {}
}

/// The notices still to send at an end.
pub(crate) struct Telling {
    /// None without actions.
    cause: Option<ExitCause>,
    /// The action with some of its notices sent.
    begun: Option<Box<dyn ExitAction>>,
    actions: vec::IntoIter<Box<dyn ExitAction>>,
    calls: vec::IntoIter<YieldCall>,
}

/// Entries in the order of their arrival, some of them possibly finished.
struct Swept<T> {
    list: Vec<T>,
    /// The length for the next sweep of the list.
    sweep: usize,
}

/// An entry that may have nothing left to do before the process ends.
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
    /// Adds an entry. Says whether a sweep is due.
    fn push(&mut self, entry: T) -> bool {
        let before = self.list.len();
        self.list.push(entry);
        before >= self.sweep
    }

    /// Drops finished entries. O(n).
    fn sweep(&mut self, counters: &Counters) {
        self.leave_out(counters, |_, it| it.is_over(counters));
        self.sweep = SWEEP.max(2 * self.list.len());
    }

    /// Leaves entries out, by their places. O(n). Returns how many entries it has looked at.
    fn leave_out(&mut self, counters: &Counters, is_out: impl Fn(usize, &T) -> bool) -> usize {
        let before = self.list.len();
        let mut places = 0..;
        let is_out = |it: &mut T| places.next().is_some_and(|place| is_out(place, it));
        for entry in self.list.extract_if(.., is_out) {
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

    /// Carries out a request. O(1), amortised. Returns its cost in events of a batch.
    pub(crate) fn apply(&mut self, request: ExitRequest, counters: &Counters) -> usize {
        let looked_at = match request {
            ExitRequest::Add(action) => {
                let before = self.actions.list.len();
                self.changes += 1;
                if self.actions.push(action) {
                    self.sweep_actions(counters);
                    before
                } else {
                    0
                }
            }
            ExitRequest::Remove(key) => {
                let before = self.actions.list.len();
                self.removed.insert(*key, before);
                self.changes += 1;
                if before > SWEEP && before > 2 * self.changes {
                    0
                } else {
                    self.leave_removed_out(counters)
                }
            }
            ExitRequest::Call(call) => {
                let before = self.calls.list.len();
                if self.calls.push(*call) {
                    self.calls.sweep(counters);
                    before
                } else {
                    0
                }
            }
        };
        1 + looked_at / LOOKS
    }

    fn sweep_actions(&mut self, counters: &Counters) {
        self.leave_removed_out(counters);
        self.actions.sweep(counters);
    }

    /// Drops the actions taken back. O(n). Returns how many entries it has looked at.
    fn leave_removed_out(&mut self, counters: &Counters) -> usize {
        if self.removed.is_empty() {
            return 0;
        }
        let removed = mem::take(&mut self.removed);
        self.changes = 0;
        self.actions.leave_out(counters, |place, it| {
            has_key(&**it, counters, |key| {
                removed.get(key).is_some_and(|before| place < *before)
            })
        })
    }

    /// Counts `events` events of the process. Now and then drops finished entries. O(events),
    /// amortised.
    pub(crate) fn pass(&mut self, events: usize, counters: &Counters) {
        let entries = |this: &Self| this.actions.list.len() + this.calls.list.len();
        self.due = self.due.saturating_sub(events);
        if self.due == 0 && entries(self) > SWEEP {
            self.leave_removed_out(counters);
            self.actions
                .leave_out(counters, |_, it| it.is_over(counters));
            self.calls.leave_out(counters, |_, it| it.is_over(counters));
            self.due = entries(self);
        }
    }

    /// Takes the calls for these yields, which are in order. O(n) in the calls.
    pub(crate) fn take_calls(&mut self, tokens: &[u64]) -> Vec<Weak<EndCall>> {
        let is_for = |it: &mut YieldCall| tokens.binary_search(&it.token).is_ok();
        let taken = self.calls.list.extract_if(.., is_for);
        let taken = taken.map(|it| it.call).collect();
        shrink_after_burst(&mut self.calls.list, 4 * SWEEP);
        taken
    }

    /// Carries out many requests as [`apply`](Self::apply) does, in their order. O(n) in them and
    /// in the actions.
    pub(crate) fn apply_all(&mut self, requests: Vec<ExitRequest>, counters: &Counters) {
        let added = self.settle(requests, counters);
        self.actions.list.extend(added);
    }

    /// Carries out requests as [`apply_all`](Self::apply_all) does, after the process has released
    /// everything.
    #[cold]
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

    /// Carries out all requests except for the additions, which it returns.
    fn settle(
        &mut self,
        requests: Vec<ExitRequest>,
        counters: &Counters,
    ) -> Vec<Box<dyn ExitAction>> {
        self.leave_removed_out(counters);
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
            self.actions.leave_out(counters, |_, it| {
                has_key(&**it, counters, |it| removed.contains(it))
            });
        }
        added.reverse();
        added
    }

    /// Takes the actions of the finished incarnation, for another takes its place. O(n).
    pub(crate) fn take_of_incarnation(&mut self, counters: &Counters) -> Vec<Box<dyn ExitAction>> {
        self.leave_removed_out(counters);
        let is_taken = |it: &mut Box<dyn ExitAction>| {
            let mut ends = false;
            contain_and_report("exit action", None, counters, || {
                ends = it.ends_with_incarnation();
            });
            ends
        };
        let taken = self.actions.list.extract_if(.., is_taken).collect();
        shrink_after_burst(&mut self.actions.list, 4 * SWEEP);
        taken
    }

    /// Drops the actions taken back from a closed process, and releases visible resources. O(n).
    pub(crate) fn release(&mut self, process: Pid, counters: &Counters) {
        self.leave_removed_out(counters);
        release_each(&mut self.actions.list, process, counters);
    }

    /// Releases actions as [`release`](Self::release) does, for a portion from the place `from` on.
    /// Returns the place of the next portion, or `None` after the last.
    pub(crate) fn release_some(
        &mut self,
        from: usize,
        process: Pid,
        counters: &Counters,
    ) -> Option<usize> {
        if from == 0 {
            self.leave_removed_out(counters);
        }
        let actions = &mut self.actions.list[from..];
        let portion = PORTION.min(actions.len());
        release_each(&mut actions[..portion], process, counters);
        (portion < actions.len()).then_some(from + portion)
    }

    /// Returns whether any action notifies code that handles failures. O(n).
    #[cold]
    pub(crate) fn are_watched(&self, counters: &Counters) -> bool {
        self.actions.list.iter().any(|action| {
            let mut is_watch = false;
            contain_and_report("exit action", None, counters, || {
                is_watch = action.is_watch() && !(**action).is_over();
            });
            is_watch
        })
    }

    /// Calls `look` with the watchers among the first `most` actions that are not over. Returns how
    /// many actions are left. O(`most`).
    #[cfg(feature = "observe")]
    pub(crate) fn each_watcher(
        &self,
        most: usize,
        counters: &Counters,
        mut look: impl FnMut(Watcher),
    ) -> usize {
        for (place, action) in self.actions.list.iter().take(most).enumerate() {
            let is_removed = !self.removed.is_empty()
                && has_key(&**action, counters, |key| {
                    self.removed.get(key).is_some_and(|before| place < *before)
                });
            let mut watcher = None;
            contain_and_report("exit action", None, counters, || {
                watcher = action.watcher().filter(|_| !(**action).is_over());
            });
            if let Some(watcher) = watcher.filter(|_| !is_removed) {
                look(watcher);
            }
        }
        self.actions.list.len().saturating_sub(most)
    }

    /// Returns the notices to send for a process that is gone.
    pub(crate) fn telling(self, cause: impl FnOnce() -> ExitCause) -> Telling {
        Telling {
            cause: (!self.actions.list.is_empty()).then(cause),
            begun: None,
            actions: self.actions.list.into_iter(),
            calls: self.calls.list.into_iter(),
        }
    }

    /// Notifies watchers of the process's failed start, with the cause, and then makes the calls.
    /// O(n).
    #[cold]
    pub(crate) fn tell_not_started(self, process: Pid, cause: &ExitCause, counters: &Counters) {
        for action in self.actions.list {
            contain_and_report("exit action", process, counters, || {
                action.not_started(process, cause);
            });
        }
        self.calls
            .list
            .iter()
            .for_each(|it| it.make(process, counters));
    }
}

impl Telling {
    /// Sends a portion of the notices, and makes the calls after the last. Returns whether more are
    /// left.
    #[cold]
    pub(crate) fn go_on(&mut self, process: Pid, counters: &Counters) -> bool {
        let mut budget = PORTION;
        if let Some(cause) = &self.cause {
            while budget > 0
                && let Some(action) = self.begun.take().or_else(|| self.actions.next())
            {
                // The budget is not left to the action.
                let most = budget - 1;
                contain_and_report("exit action", process, counters, || {
                    self.begun = action.tell_some(process, cause, &mut budget);
                });
                budget = budget.min(most);
            }
        }
        for call in self.calls.by_ref().take(budget) {
            call.make(process, counters);
        }
        self.begun.is_some() || self.actions.len() + self.calls.len() > 0
    }
}

impl YieldCall {
    fn make(&self, process: Pid, counters: &Counters) {
        if let Some(call) = self.call.upgrade() {
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
