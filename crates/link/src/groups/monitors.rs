//! Monitors of groups and of scopes, and their ends.

use super::outbox::{GroupNotice, Outbox};
use super::scope::{Hold, Scope};
use ganger_proc_api::{Pid, Withdrawal};
use ganger_sched::ExitAction;
use ganger_sync::sync::lock;
use std::fmt;
use std::sync::Arc;

/// Where a monitor is: at a group, or without a name at the scope.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) scope: Arc<Scope>,
    pub(super) group: Option<Arc<str>>,
    pub(super) number: u64,
}

impl Place {
    /// Takes the monitor away, if it is there. O(log n).
    pub(super) fn leave(&self) {
        let mut inner = lock(&self.scope.inner);
        let inner_mut = &mut *inner;
        let gone = match &self.group {
            None => inner_mut.monitors.remove(&self.number),
            Some(group) => {
                let members = inner_mut.groups.get_mut(group);
                let gone = members.and_then(|it| it.monitors.remove(&self.number));
                inner_mut.forget_if_empty(group);
                gone
            }
        };
        drop(inner);
        if let Some(gone) = &gone {
            // Notices under way do not report a change from now on.
            gone.outbox.withdraw();
        }
        let hold = gone.as_ref().and_then(|it| it.hold.upgrade());
        let scope = hold.and_then(|it| it.release());
        // Their destructors may be another's code.
        drop((gone, scope));
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Place").field(&self.group).finish()
    }
}

/// A monitor of a group or of a scope. Dropping it leaves the monitor, which ends with its process.
#[derive(Debug)]
pub struct GroupMonitor {
    withdrawal: Withdrawal,
    place: Place,
}

impl GroupMonitor {
    pub(super) fn new(outbox: &Outbox, place: Place) -> Self {
        let withdrawal = outbox.withdrawal.clone();
        Self { withdrawal, place }
    }

    /// Ends the monitor. After this no notice says a change, also if it has been sent already.
    pub fn end(self) {
        self.withdrawal.withdraw();
        self.place.leave();
    }
}

impl GroupNotice {
    /// Returns whether the notice is from this monitor.
    #[must_use]
    pub fn is_of(&self, monitor: &GroupMonitor) -> bool {
        self.withdrawal.is_same(&monitor.withdrawal)
    }
}

/// The action at the end of a process that monitors.
pub(super) struct EndMonitor {
    hold: Arc<Hold>,
    group: Option<Arc<str>>,
    number: u64,
    /// The process monitors by its own call.
    is_own: bool,
}

impl EndMonitor {
    pub(super) fn begin(place: &Place, outbox: &Arc<Outbox>, hold: Arc<Hold>) {
        let monitor = outbox.monitor();
        let action = Self {
            hold,
            group: place.group.clone(),
            number: place.number,
            is_own: monitor.is_own(),
        };
        if let Err(gone) = monitor.add_exit_action(Box::new(action)) {
            gone.into_action().release(monitor.pid());
        }
    }
}

impl ExitAction for EndMonitor {
    fn release(&mut self, _: Pid) {
        if let Some(scope) = self.hold.release() {
            let (group, number) = (self.group.take(), self.number);
            let place = Place {
                scope,
                group,
                number,
            };
            place.leave();
        }
    }

    fn ends_with_incarnation(&self) -> bool {
        self.is_own
    }

    fn is_over(&self) -> bool {
        self.hold.is_released()
    }
}
