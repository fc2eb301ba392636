//! The restart of a child whose supervisor is not known.

use crate::child::ChildRef;
use crate::driver::{Kind, Order, asker, refused};
use crate::running::{SupervisorInfo, supervisors};
use ganger_proc_api::Pid;
use ganger_sched::{Call, Handle};

/// Asks the supervisor of a process to stop it and to start another one in its place, as
/// [`Tree::restart_child`](crate::Tree::restart_child) does: the answer is the PID of the new
/// process. `None` where no running supervisor of that scheduler has the process as its child.
///
/// ```
/// use ganger_proc_api::{BoxError, process_fn};
/// use ganger_sched::Scheduler;
/// use ganger_supervise::{Supervisor, restart};
///
/// let scheduler = Scheduler::start_default()?;
/// let tree = Supervisor::one_for_one()
///     .child("idle", || process_fn(|_, _, _| Ok(())))
///     .start(&scheduler)?;
/// let first = tree.child("idle").unwrap();
/// let second = restart(&scheduler, first).unwrap().wait()?;
/// assert_eq!(tree.child("idle"), Some(second));
/// assert_ne!(first, second);
/// assert!(restart(&scheduler, tree.pid()).is_none()); // No supervisor is above this one.
/// # Ok::<(), BoxError>(())
/// ```
#[must_use]
pub fn restart(scheduler: &Handle, child: Pid) -> Option<Call<Pid>> {
    let has_child = |it: &SupervisorInfo| it.children.iter().any(|it| it.pid == Some(child));
    let supervisor = supervisors(scheduler).into_iter().find(has_child)?;
    let address = scheduler.address(supervisor.pid)?.typed::<Order>().ok()?;
    let order = move |reply| Order(Kind::Restart(ChildRef::Pid(child), asker(&reply), reply));
    Some(address.call_or(order, refused))
}
