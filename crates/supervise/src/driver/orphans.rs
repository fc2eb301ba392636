//! Children that outlive their supervisor.

use super::order::{must_stop_by, time_for_children};
use crate::plan::{Act, AutoShutdown, ChildId, Ended, Plan, Rules, Verdict, Window};
use crate::running;
use crate::view::{Entry, View};
use ganger_proc_api::{
    BoxError, CancelReason, Context, Event, Events, ExitCause, Payloads, Pid, Process, StepOutput,
    StepResult, SubmitError, SubmitErrorKind, Symbol, Tag,
};
use ganger_sched::{ContextExt, ExitAction, Handle, Instant, WeakHandle};
use ganger_sync::sync::Mutex;
use ganger_time::Timers;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;

/// The exit action of a supervisor: starts a guardian, which stops the living children as the
/// supervisor would have stopped them. A stopping scheduler starts no process: the action then
/// cancels all children at once. Where the guardian does not start for another reason, the action
/// terminates the children.
pub(crate) struct Orphans {
    view: Arc<View>,
    scheduler: WeakHandle,
    /// The living children at the end of the supervisor.
    left: Vec<(ChildId, Entry)>,
}

impl Orphans {
    pub(crate) fn new(view: Arc<View>, scheduler: WeakHandle) -> Self {
        let left = Vec::new();
        Self {
            view,
            scheduler,
            left,
        }
    }
}

impl ExitAction for Orphans {
    fn release(&mut self, process: Pid) {
        if let Some(scheduler) = self.scheduler.upgrade() {
            running::leave(&scheduler, process, &self.view);
        }
        self.left = self.view.end();
    }

    fn tell(self: Box<Self>, _: Pid, cause: &ExitCause) {
        let Self {
            view,
            scheduler,
            left,
        } = *self;
        view.set_end(cause.clone());
        let all: Vec<_> = left.iter().filter_map(|it| Orphan::of(&it.1)).collect();
        let scheduler = scheduler.upgrade().filter(|_| !all.is_empty());
        let Some(scheduler) = scheduler else {
            return view.set_gone();
        };
        if let Err(error) = stop_them(&scheduler, &view, left) {
            let refused = error.downcast_ref::<SubmitError>();
            if refused.is_some_and(|it| matches!(it.kind, SubmitErrorKind::Stopping)) {
                // The scheduler is stopping. All children finish at once, and the scheduler
                // terminates the slow ones.
                end_all(&scheduler, view, &all, |pid| {
                    let _ended = scheduler.cancel(pid, CancelReason::Shutdown);
                });
            } else {
                terminate_all(&scheduler, view, &all);
            }
        }
    }
}

/// Ends each orphan by `end`, and tells the view when all have ended, with the children below them.
fn end_all(scheduler: &Handle, view: Arc<View>, all: &[Orphan], end: impl Fn(Pid)) {
    let gone = Arc::new(Gone(view));
    for orphan in all.iter().rev() {
        let action = End {
            gone: Arc::clone(&gone),
            below: orphan.below.clone(),
        };
        if scheduler
            .add_exit_action(orphan.pid, Box::new(action))
            .is_err()
        {
            // The orphan has ended.
            await_those_below(Arc::clone(&gone), orphan.below.as_deref());
        }
        end(orphan.pid);
    }
}

fn terminate_all(scheduler: &Handle, view: Arc<View>, all: &[Orphan]) {
    end_all(scheduler, view, all, |pid| {
        // A process that is not found has ended.
        let _ = scheduler.terminate(pid);
    });
}

/// The exit action of each orphan without a guardian.
struct End {
    gone: Arc<Gone>,
    below: Option<Arc<View>>,
}

impl ExitAction for End {
    fn tell(self: Box<Self>, _: Pid, _: &ExitCause) {
        await_those_below(self.gone, self.below.as_deref());
    }
}

/// Keeps `gone` until the children of an ended supervisor have ended as well.
fn await_those_below(gone: Arc<Gone>, below: Option<&View>) {
    if let Some(below) = below {
        below.has_orphans(|| Waker::from(Arc::new(Held(gone))));
    }
}

/// A waker that only keeps a value, dropped at the wake-up.
struct Held(#[allow(dead_code, reason = "it is dropped")] Arc<Gone>);

impl Wake for Held {
    fn wake(self: Arc<Self>) {}
}

/// Tells the view that no orphan is left, when the last orphan drops it.
struct Gone(Arc<View>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.set_gone();
    }
}

/// The exit action of a guardian: ends the rest of the orphans, if the guardian ends too early.
struct LastResort {
    scheduler: WeakHandle,
    view: Arc<View>,
    all: Vec<Orphan>,
}

impl ExitAction for LastResort {
    fn tell(self: Box<Self>, _: Pid, _: &ExitCause) {
        match self.scheduler.upgrade() {
            Some(scheduler) => terminate_all(&scheduler, self.view, &self.all),
            None => self.view.set_gone(),
        }
    }
}

fn stop_them(
    scheduler: &Handle,
    view: &Arc<View>,
    left: Vec<(ChildId, Entry)>,
) -> Result<(), BoxError> {
    const METHOD: Symbol = Symbol::new("orphans");
    let timers = scheduler.timers().clone();
    let now = timers.now();
    let window = Arc::new(Mutex::new(Window::new(0, Duration::ZERO)));
    let mut plan = Plan::new(view.strategy, AutoShutdown::Never, window, 0);
    let mut children = BTreeMap::new();
    for (_, entry) in left {
        let stop = entry.stop;
        let rules = Rules {
            stop,
            ..Rules::default()
        };
        if let Some(orphan) = Orphan::of(&entry) {
            children.insert(plan.add_running(rules, now), orphan);
        }
    }
    plan.stop(Verdict::Stopped, Instant::NEVER);
    let guardian = Guardian {
        plan,
        children,
        orphaned: Vec::new(),
        view: Arc::clone(view),
        timers,
        armed: Instant::NEVER,
    };
    scheduler.submit(guardian, METHOD, ())?;
    Ok(())
}

/// Stops children without a supervisor.
struct Guardian {
    plan: Plan,
    children: BTreeMap<ChildId, Orphan>,
    /// Ended supervisors among the orphans, with living children.
    orphaned: Vec<ChildId>,
    view: Arc<View>,
    timers: Timers,
    armed: Instant,
}

#[derive(Clone)]
struct Orphan {
    pid: Pid,
    /// The view of a supervisor.
    below: Option<Arc<View>>,
}

impl Orphan {
    /// Returns the child, if it has not ended.
    fn of(entry: &Entry) -> Option<Self> {
        let (pid, below) = (entry.pid?, entry.below.clone());
        Some(Self { pid, below })
    }
}

/// The tag of the guardian's timer.
const DUE: Tag = 1;

impl Process for Guardian {
    fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        if let Some(scheduler) = ctx.scheduler() {
            let last_resort = LastResort {
                scheduler: scheduler.downgrade(),
                view: Arc::clone(&self.view),
                all: self.children.values().cloned().collect(),
            };
            ctx.add_exit_action(Box::new(last_resort))?;
        }
        for (id, orphan) in &self.children {
            ctx.monitor(orphan.pid, id.0)?;
        }
        Ok(())
    }

    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        out.defer_cancel();
        for event in events {
            match event {
                Event::Exit(notice) => self.orphaned.push(ChildId(notice.tag)),
                Event::Cancel(CancelReason::Shutdown) => {
                    if let Some(left) = ctx.scheduler().and_then(|it| it.time_to_stop()) {
                        let by = time_for_children(self.timers.now(), left);
                        self.plan.must_stop_by(by);
                    }
                }
                Event::Completion(_) => self.armed = Instant::NEVER,
                _ => {}
            }
        }
        let is_gone = |id: &mut ChildId| {
            let below = self.children.get(id).and_then(|it| it.below.as_ref());
            !below.is_some_and(|below| below.has_orphans(|| ctx.waker()))
        };
        for id in self.orphaned.extract_if(.., is_gone) {
            self.plan.ended(id, Ended::Asked, self.timers.now());
        }
        while let Some(act) = self.plan.next(self.timers.now()) {
            match act {
                Act::Cancel(id, by) => {
                    if let Some(scheduler) = ctx.scheduler() {
                        must_stop_by(&scheduler, self.children[&id].pid, by);
                    }
                    let _ = ctx.cancel(self.children[&id].pid, "its supervisor has ended");
                }
                Act::Terminate(id) => {
                    let _ = ctx.terminate(self.children[&id].pid);
                }
                Act::End(_) => {
                    out.done(());
                    return Ok(());
                }
                Act::Start(_) | Act::Forget(_) => {}
            }
        }
        let due = self.plan.due();
        if due != self.armed {
            out.cancel(DUE);
            if due < Instant::NEVER {
                out.sleep_until(due, DUE);
            }
            self.armed = due;
        }
        Ok(())
    }
}
