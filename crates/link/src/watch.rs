//! Monitors with a lane of choice, which can be taken back together with their notices.
//!
//! **Protocol.** A watch is an exit action of its target. The watch shares a [`Withdrawal`] with
//! the caller. The end of the watch withdraws: the notice is then neither sent nor shown, and the
//! action reports itself as over. The target drops actions that are over now and then, so the end
//! of a watch is O(1) and asks nothing of the target. A restart of the watcher in place ends its
//! watches, too.

use ganger_proc_api::{ExitCause, ExitNotice, Pid, Tag, Withdrawal};
use ganger_sched::{Address, ExitAction, Handle, SystemEvent, Watcher};

/// How a notice of an end stands to other events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lane {
    /// The notice overtakes messages and completions. For supervisors.
    #[default]
    Overtaking,
    /// The notice comes behind all messages of the process to the watcher. For protocols.
    InOrder,
}

/// A monitor of a process, which gives a single notice. Dropping it leaves the monitor.
#[derive(Debug)]
pub struct Watch {
    target: Pid,
    tag: Tag,
    withdrawal: Withdrawal,
}

impl Watch {
    /// Returns the watched process.
    #[must_use]
    pub fn target(&self) -> Pid {
        self.target
    }

    /// Returns the tag of the notice.
    #[must_use]
    pub fn tag(&self) -> Tag {
        self.tag
    }

    /// Ends the watch. From then on the process is shown no notice of it, not even a notice that
    /// has been sent already. O(1).
    pub fn end(self) {
        self.withdrawal.withdraw();
    }
}

/// The action at the end of the target.
struct Watching {
    watcher: Address,
    target: Pid,
    tag: Tag,
    lane: Lane,
    withdrawal: Withdrawal,
    /// The end of the watcher's incarnation, if the watcher may be restarted in place.
    incarnation: Option<Withdrawal>,
    /// The watcher starts the target, and learns of a failed start by an error.
    is_spawn: bool,
}

impl Watching {
    fn notify(&self, cause: ExitCause) {
        if self.is_withdrawn() {
            return;
        }
        let notice = ExitNotice::new(self.target, self.tag, cause)
            .withdrawn_by(&self.withdrawal)
            .for_incarnation(self.incarnation.clone());
        let notice = match self.lane {
            Lane::Overtaking => notice,
            Lane::InOrder => notice.in_order(),
        };
        let _ended = self.watcher.send_system(SystemEvent::Exit(notice));
    }

    /// Returns whether the watch was taken back, or its incarnation is over.
    fn is_withdrawn(&self) -> bool {
        let incarnation = self.incarnation.as_ref();
        self.withdrawal.is_withdrawn() || incarnation.is_some_and(Withdrawal::is_withdrawn)
    }
}

impl ExitAction for Watching {
    fn tell(self: Box<Self>, _: Pid, cause: &ExitCause) {
        self.notify(cause.clone());
    }

    fn not_started(self: Box<Self>, _: Pid, _: &ExitCause) {
        if !self.is_spawn {
            self.notify(ExitCause::NotFound);
        }
    }

    fn is_watch(&self) -> bool {
        true
    }

    fn watcher(&self) -> Option<Watcher> {
        Some(Watcher::Process(self.watcher.pid()))
    }

    fn is_in_order(&self) -> bool {
        self.lane == Lane::InOrder
    }

    fn is_over(&self) -> bool {
        self.is_withdrawn() || self.watcher.is_closed()
    }
}

/// Monitors the target for the watcher. The notice comes at once when the target is gone.
pub(crate) fn begin(
    scheduler: &Handle,
    watcher: &Address,
    target: Pid,
    tag: Tag,
    lane: Lane,
) -> Watch {
    let withdrawal = Withdrawal::default();
    let watch = Watch {
        target,
        tag,
        withdrawal: withdrawal.clone(),
    };
    // A process is not told of its own end.
    if target != watcher.pid() {
        let watching = Watching {
            watcher: watcher.clone(),
            target,
            tag,
            lane,
            withdrawal,
            incarnation: watcher.incarnation_end(),
            is_spawn: false,
        };
        if let Err(gone) = scheduler.add_exit_action(target, Box::new(watching)) {
            gone.into_action().tell(target, &ExitCause::NotFound);
        }
    }
    watch
}

/// Monitors a child that the watcher is about to start.
pub(crate) fn begin_with(
    watcher: Address,
    child: &Address,
    tag: Tag,
    lane: Lane,
) -> Result<(), ganger_sched::ExitActionError> {
    child.add_exit_action(Box::new(Watching {
        incarnation: watcher.incarnation_end(),
        watcher,
        target: child.pid(),
        tag,
        lane,
        withdrawal: Withdrawal::default(),
        is_spawn: true,
    }))
}
