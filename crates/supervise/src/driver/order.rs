//! Orders to a running supervisor.

use crate::child::{ChildRef, ChildSpec};
use ganger_proc_api::{ExitCause, ExitNotice, Pid, Reply, Tag, Withdrawal};
use ganger_sched::internal::here;
use ganger_sched::{Address, ExitAction, Handle, Instant, SystemEvent, Watcher};
use std::fmt;
use std::time::Duration;

/// A message to a supervisor, made by [`Tree`](crate::Tree).
pub struct Order(pub(crate) Kind);

pub(crate) enum Kind {
    /// With the watcher of the child.
    Start(Box<ChildSpec>, Option<Watching>, Reply<Pid>),
    /// With the asking process, as in the next two orders.
    Stop(ChildRef, bool, Option<Pid>, Reply<()>),
    Restart(ChildRef, Option<Pid>, Reply<Pid>),
    /// Stops all children, and then the supervisor. The answer has the slow children.
    StopAll(Option<Pid>, Reply<Vec<String>>),
    /// The deadline for the ends of all children.
    StopBy(Instant),
}

/// Sends the process that has asked for a child a notice of the child's end.
pub(crate) struct Watching {
    watcher: Address,
    tag: Tag,
    /// The end of the watcher's incarnation, if the watcher may be restarted in place.
    incarnation: Option<Withdrawal>,
}

impl Watching {
    pub(crate) fn new(watcher: Address, tag: Tag) -> Self {
        Self {
            incarnation: watcher.incarnation_end(),
            watcher,
            tag,
        }
    }
}

impl ExitAction for Watching {
    fn tell(self: Box<Self>, pid: Pid, cause: &ExitCause) {
        let notice = ExitNotice::new(pid, self.tag, cause.clone());
        let notice = notice.for_incarnation(self.incarnation);
        let _ended = self.watcher.send_system(SystemEvent::Exit(notice));
    }

    fn is_watch(&self) -> bool {
        true
    }

    fn watcher(&self) -> Option<Watcher> {
        Some(Watcher::Process(self.watcher.pid()))
    }

    fn is_over(&self) -> bool {
        let incarnation = self.incarnation.as_ref();
        incarnation.is_some_and(Withdrawal::is_withdrawn) || self.watcher.is_closed()
    }
}

/// Returns the process that asks: by a yield, or in its step, as a task does.
pub(crate) fn asker<T: Send + 'static>(reply: &Reply<T>) -> Option<Pid> {
    reply.pid().or_else(here::pid)
}

/// Returns the deadline of a supervisor's children, `left` before the deadline of all: the rest is
/// for the supervisor and for the supervisors above.
pub(crate) fn time_for_children(now: Instant, left: Duration) -> Instant {
    now.after(left - left / 8)
}

/// Tells a process its deadline, if the process is a supervisor.
pub(crate) fn must_stop_by(scheduler: &Handle, pid: Pid, by: Instant) {
    if by < Instant::NEVER
        && let Some(supervisor) = scheduler.address(pid)
        && let Ok(supervisor) = supervisor.typed::<Order>()
    {
        // An ended supervisor refuses the order.
        let _ = supervisor.send_control(Order(Kind::StopBy(by)));
    }
}

impl fmt::Debug for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Start(..) => "Order(Start)",
            Kind::Stop(..) => "Order(Stop)",
            Kind::Restart(..) => "Order(Restart)",
            Kind::StopAll(..) => "Order(StopAll)",
            Kind::StopBy(_) => "Order(StopBy)",
        })
    }
}
