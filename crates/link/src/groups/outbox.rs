//! Changes of groups on their way to a monitor.

use ganger_proc_api::{Pid, Withdrawal};
use ganger_sched::{Address, Recipient};
use ganger_sync::contain;
use ganger_sync::sync::{Mutex, lock};
use std::collections::VecDeque;
use std::sync::Arc;

/// A process has joined a group, or has left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupChange {
    /// The name of the group.
    pub group: Arc<str>,
    /// The process.
    pub pid: Pid,
    /// Whether it has joined. Otherwise it has left, or has ended.
    pub is_join: bool,
}

/// A change of a monitored group, for the monitor.
#[derive(Debug, Clone)]
pub struct GroupNotice {
    change: GroupChange,
    pub(super) withdrawal: Withdrawal,
}

impl GroupNotice {
    /// Returns the change; `None` when the monitor has been ended meanwhile.
    #[must_use]
    pub fn change(&self) -> Option<&GroupChange> {
        (!self.withdrawal.is_withdrawn()).then_some(&self.change)
    }
}

/// The changes on their way to a monitor.
pub(super) struct Outbox {
    to: Recipient<GroupNotice>,
    pub(super) withdrawal: Withdrawal,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    changes: VecDeque<GroupChange>,
    /// A thread empties it.
    is_busy: bool,
}

impl Outbox {
    pub(super) fn new(to: &Recipient<GroupNotice>) -> Arc<Self> {
        Arc::new(Self {
            to: to.clone(),
            withdrawal: Withdrawal::default(),
            state: Mutex::default(),
        })
    }

    /// Withdraws the notices: no notice says a change from now on.
    pub(super) fn withdraw(&self) {
        self.withdrawal.withdraw();
    }

    /// Returns the monitoring process.
    pub(super) fn monitor(&self) -> Address {
        self.to.untyped()
    }

    /// Puts a change in. The caller holds the lock of the scope.
    pub(super) fn put(&self, change: GroupChange) {
        lock(&self.state).changes.push_back(change);
    }

    /// Sends all waiting changes, unless another thread does. The caller holds no lock.
    pub(super) fn empty(&self) {
        let mut state = lock(&self.state);
        if std::mem::replace(&mut state.is_busy, true) {
            return;
        }
        while let Some(change) = state.changes.pop_front() {
            drop(state);
            let notice = GroupNotice {
                change,
                withdrawal: self.withdrawal.clone(),
            };
            // The monitor makes its message of the change. A panic does not concern this thread,
            // and does not keep other threads out.
            contain(|| drop(self.to.send_system(notice)));
            state = lock(&self.state);
        }
        state.is_busy = false;
    }
}
