//! The running supervisors of a scheduler, for observers outside of the tree.
//!
//! A supervisor enters the table when it begins, and leaves it at its end, by its exit action. The
//! table keeps no supervisor, and none of its children.

use crate::view::{ChildInfo, View};
use ganger_proc_api::Pid;
use ganger_sched::Handle;
use ganger_sched::internal::HandleInternals as _;
use ganger_sync::sync::{Mutex, lock};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

#[derive(Default)]
struct Running(Mutex<BTreeMap<Pid, Weak<View>>>);

/// A running supervisor: see [`supervisors`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SupervisorInfo {
    /// Its process.
    pub pid: Pid,
    /// The name given to it when it was made.
    pub label: Arc<str>,
    /// The name of its strategy, as `one for one`.
    pub strategy: &'static str,
    /// Its children in the order of their start. The children of a supervisor below are in its own
    /// entry.
    pub children: Vec<ChildInfo>,
}

/// Returns the running supervisors of the scheduler, in the order of their PIDs, with their
/// restarts and the last causes. O(their children), with a lock of each supervisor for a moment;
/// none waits for the caller otherwise.
///
/// ```
/// use ganger_proc_api::{BoxError, process_fn};
/// use ganger_sched::Scheduler;
/// use ganger_supervise::{Supervisor, supervisors};
///
/// let scheduler = Scheduler::start_default()?;
/// let tree = Supervisor::one_for_one()
///     .label("root")
///     .child("idle", || process_fn(|_, _, _| Ok(())))
///     .start(&scheduler)?;
/// let all = supervisors(&scheduler);
/// assert_eq!((all[0].pid, &*all[0].label), (tree.pid(), "root"));
/// assert_eq!((&*all[0].children[0].name, all[0].children[0].restarts), ("idle", 0));
/// # Ok::<(), BoxError>(())
/// ```
#[must_use]
pub fn supervisors(scheduler: &Handle) -> Vec<SupervisorInfo> {
    let Some(running) = scheduler.find_extension::<Running>() else {
        return Vec::new();
    };
    let all = lock(&running.0).clone();
    let info = |(pid, view): (Pid, Weak<View>)| {
        let view = view.upgrade()?;
        Some(SupervisorInfo {
            pid,
            label: Arc::clone(&view.label),
            strategy: view.strategy(),
            children: view.own_children(),
        })
    };
    all.into_iter().filter_map(info).collect()
}

/// Calls `see` with the process and the name of each running child of that scheduler's supervisors,
/// without a copy of them. O(their children). `see` runs under a lock of the supervisor: it must be
/// short, and must not ask supervisors.
///
/// ```
/// use ganger_proc_api::{BoxError, process_fn};
/// use ganger_sched::Scheduler;
/// use ganger_supervise::{Supervisor, each_child};
///
/// let scheduler = Scheduler::start_default()?;
/// let tree = Supervisor::one_for_one()
///     .child("idle", || process_fn(|_, _, _| Ok(())))
///     .start(&scheduler)?;
/// let mut seen = Vec::new();
/// each_child(&scheduler, |pid, name| seen.push((pid, name.to_string())));
/// assert_eq!(seen, [(tree.child("idle").unwrap(), "idle".to_owned())]);
/// # Ok::<(), BoxError>(())
/// ```
pub fn each_child(scheduler: &Handle, mut see: impl FnMut(Pid, &Arc<str>)) {
    let Some(running) = scheduler.find_extension::<Running>() else {
        return;
    };
    let all: Vec<_> = lock(&running.0).values().cloned().collect();
    for view in all.iter().filter_map(Weak::upgrade) {
        view.look(|children| {
            let running = children.values().filter_map(|it| Some((it.pid?, it)));
            running.for_each(|(pid, it)| see(pid, &it.name));
        });
    }
}

/// Notes that the supervisor with this process begins.
pub(crate) fn enter(scheduler: &Handle, pid: Pid, view: &Arc<View>) {
    let running = scheduler.extension(|_| Running::default());
    lock(&running.0).insert(pid, Arc::downgrade(view));
}

/// Notes that the supervisor with this process has ended.
pub(crate) fn leave(scheduler: &Handle, pid: Pid, view: &Arc<View>) {
    let Some(running) = scheduler.find_extension::<Running>() else {
        return;
    };
    let mut running = lock(&running.0);
    // Another one may have begun in its place.
    let is_own = |it: &Weak<View>| std::ptr::eq(it.as_ptr(), Arc::as_ptr(view));
    if running.get(&pid).is_some_and(is_own) {
        running.remove(&pid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Supervisor;
    use ganger_proc_api::process_fn;
    use ganger_sched::Scheduler;

    #[test]
    fn running_supervisors_are_listed_with_those_below() {
        let scheduler = Scheduler::start_default().unwrap();
        assert!(supervisors(&scheduler).is_empty());
        let idle = || process_fn(|_, _, _| Ok(()));
        let below = move || Supervisor::dynamic().child("idle", idle);
        let tree = Supervisor::one_for_one()
            .label("root")
            .child("below", below)
            .start(&scheduler)
            .unwrap();
        let all = supervisors(&scheduler);
        let labels: Vec<_> = all.iter().map(|it| (&*it.label, it.strategy)).collect();
        assert_eq!(labels.len(), 2);
        assert!(labels.contains(&("root", "one for one")), "{labels:?}");
        let root = all.iter().find(|it| it.pid == tree.pid()).unwrap();
        assert!(root.children[0].children.is_none());
        let below = all.iter().find(|it| it.pid != tree.pid()).unwrap();
        assert_eq!(root.children[0].pid, Some(below.pid));
        assert_eq!(&*below.children[0].name, "idle");
        scheduler.cancel(tree.pid(), "enough").unwrap();
        while scheduler.stats().live > 0 {
            std::thread::yield_now();
        }
        assert!(supervisors(&scheduler).is_empty());
    }
}
