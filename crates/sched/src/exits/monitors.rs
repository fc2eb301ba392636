//! Monitors: processes notified of another process's end.
//!
//! A monitor is an exit action of its target. The monitor is over when the watching process has
//! ended, or has been restarted in place. A notice is a system event: the watching process sees the
//! notice unless the monitor is over before. A monitor of another scheduler's process is kept by
//! the remote (`process/remote.rs`).

use crate::process::exit_action::{ExitAction, ExitKey, Watcher};
use crate::runtime::cell::{ProcessCell, Task};
use crate::runtime::item::Item;
use ganger_proc_api::{Event, ExitCause, ExitNotice, MonitorError, Pid, Tag, Withdrawal};
use std::sync::Arc;

/// A monitor of a process.
struct Monitor {
    /// The notified process.
    watcher: Task,
    /// As the scheduler knows it.
    target: Pid,
    tag: Tag,
    /// Withdrawn with the watcher's incarnation, if it may be restarted in place.
    incarnation: Option<Withdrawal>,
    /// Whether the watcher's own spawn of the target set it up: the spawn's error reports a target
    /// that was not started.
    is_spawn: bool,
}

impl ExitAction for Monitor {
    fn tell(self: Box<Self>, _: Pid, cause: &ExitCause) {
        self.notify(cause.clone());
    }

    fn not_started(self: Box<Self>, _: Pid, _: &ExitCause) {
        if !self.is_spawn {
            self.notify(ExitCause::NotFound);
        }
    }

    fn is_over(&self) -> bool {
        self.is_withdrawn() || self.watcher.state.is_closed()
    }

    fn is_watch(&self) -> bool {
        true
    }

    fn watcher(&self) -> Option<Watcher> {
        Some(Watcher::Process(self.watcher.pid()))
    }

    fn key(&self) -> Option<ExitKey> {
        Some(self.watcher.monitor_key(self.tag))
    }
}

impl Monitor {
    /// Notifies the watcher, unless it has ended.
    fn notify(&self, cause: ExitCause) {
        if self.is_withdrawn() {
            return;
        }
        let notice = ExitNotice::new(self.target, self.tag, cause);
        let notice = notice.for_incarnation(self.incarnation.clone());
        let notice = Item::Event(Event::Exit(Box::new(notice)));
        let _ended = self.watcher.push_system(notice);
    }

    /// Returns whether the watcher's incarnation is over.
    fn is_withdrawn(&self) -> bool {
        (self.incarnation.as_ref()).is_some_and(Withdrawal::is_withdrawn)
    }
}

impl ProcessCell {
    /// Has this process told when the target ends.
    ///
    /// # Errors
    /// [`MonitorError`] when the target is of another scheduler, and there is no remote.
    pub(crate) fn begin_monitor(self: Task, target: Pid, tag: Tag) -> Result<(), MonitorError> {
        if !self.shared.is_local(target) {
            return self.begin_remote_monitor(target, tag);
        }
        if target.id() == self.pid().id() {
            // When it has ended, it is told nothing any more.
            return Ok(());
        }
        let found = self.shared.find(target);
        // The notice has the PID as the scheduler knows it.
        let target = target.with_node(None);
        let watcher = self;
        let monitor = Monitor {
            incarnation: watcher.incarnation_end(),
            watcher,
            target,
            tag,
            is_spawn: false,
        };
        match found {
            None => monitor.notify(ExitCause::NotFound),
            Some(found) => {
                if let Err(refused) = found.add_exit_action(Box::new(monitor)) {
                    refused.tell(target, &ExitCause::NotFound);
                }
            }
        }
        Ok(())
    }

    /// Begins a monitor as [`begin_monitor`](Self::begin_monitor) does, for a process of another
    /// scheduler.
    #[cold]
    fn begin_remote_monitor(self: Task, target: Pid, tag: Tag) -> Result<(), MonitorError> {
        let shared = Arc::clone(&self.shared);
        let Some((remote, target)) = shared.elsewhere(target) else {
            return Err(MonitorError { pid: target });
        };
        let monitor = Monitor {
            incarnation: self.incarnation_end(),
            watcher: self,
            target,
            tag,
            is_spawn: false,
        };
        remote.add_exit_action(target, Box::new(monitor));
        Ok(())
    }

    /// Has this process notified of the end of the target, which it is about to start.
    pub(crate) fn monitor_spawned(self: Task, target: &Task, tag: Tag) {
        let monitor = Monitor {
            incarnation: self.incarnation_end(),
            watcher: self,
            target: target.pid(),
            tag,
            is_spawn: true,
        };
        // The target has its PID, and only its submitter can end it.
        let _ended = target.add_exit_action(Box::new(monitor));
    }

    /// Returns the withdrawal for requests of the present incarnation alone, if the process may be
    /// restarted in place.
    pub(crate) fn incarnation_end(&self) -> Option<Withdrawal> {
        self.origin.incarnation().map(|it| it.end)
    }

    /// Takes back the monitors of this process with the tag.
    pub(crate) fn end_monitor(&self, target: Pid, tag: Tag) {
        // A gone process has notified its monitors.
        if let Some(found) = self.shared.find(target) {
            found.remove_exit_actions(self.monitor_key(tag));
        } else if let Some((remote, target)) = self.shared.elsewhere(target) {
            remote.remove_exit_actions(target, self.monitor_key(tag));
        }
    }

    /// Returns the key of the process's monitors with the tag. Another process may have its PID by
    /// now, but not its address.
    fn monitor_key(&self, tag: Tag) -> ExitKey {
        ExitKey::new(self.key(), tag)
    }
}
