//! Monitors that can be taken back, with the notices that are under way, and choose their lane.
//!
//! **Protocol.** A watch is an exit action of its target. It shares a [`Withdrawal`] with the
//! caller. The end of the watch withdraws: the notice is then neither sent nor shown, and the
//! action says that it is over. The target drops what is over now and then, so the end of a watch
//! is O(1) and asks nothing of the target. A restart of the watcher in place ends its watches, too.

use ganger_proc_api::{ExitCause, ExitNotice, Pid, Tag, Withdrawal};
use ganger_sched::{Address, ExitAction, Handle, SystemEvent};

/// How a notice of an end stands to other events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lane {
    /// It overtakes messages and completions. For supervisors.
    #[default]
    Overtaking,
    /// It comes behind all that the process has sent to the watcher. For protocols.
    InOrder,
}

/// A monitor of a process, which gives one notice. Dropping it leaves the monitor.
#[derive(Debug)]
pub struct Watch {
    target: Pid,
    tag: Tag,
    withdrawal: Withdrawal,
}

impl Watch {
    /// The process that is watched.
    #[must_use]
    pub fn target(&self) -> Pid {
        self.target
    }

    /// The tag of the notice.
    #[must_use]
    pub fn tag(&self) -> Tag {
        self.tag
    }

    /// Ends the watch. After this the process is shown no notice of it, also if that has been sent
    /// already. O(1).
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
    /// Of the watcher's incarnation, if that may be restarted in place.
    incarnation: Option<Withdrawal>,
    /// The watcher starts the target, and is told by an error when that is not started.
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

    /// Whether it was taken back, or the incarnation that wanted it is over.
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

    fn is_over(&self) -> bool {
        self.is_withdrawn() || self.watcher.is_closed()
    }
}

/// Has the watcher told of the end of the target. It is told at once when that is gone.
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
    if target.id() != watcher.pid().id() {
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

/// Has the watcher told of the end of the child that it is about to start.
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
