//! Children whose supervisor has ended before them.

use super::order::{must_stop_by, time_for_children};
use crate::plan::{Act, AutoShutdown, ChildId, Ended, Plan, Rules, Verdict, Window};
use crate::view::{Entry, View};
use ganger_proc_api::{
    BoxError, CancelReason, Context, Event, Events, ExitCause, Payloads, Pid, Process, StepOutput,
    StepResult, SubmitError, SubmitErrorKind, Symbol, Tag,
};
use ganger_sched::{ContextExt, ExitAction, Handle, Instant, WeakHandle};
use ganger_sync::sync::Mutex;
use ganger_time::{TimerOutput, Timers};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;

/// The exit action of a supervisor: has the children that are left stopped by another process, as
/// the supervisor would have stopped them. A scheduler that stops starts no process any more: they
/// are cancelled then, all at once. Where a process can't be started for another reason, they are
/// terminated.
pub(crate) struct Orphans {
    view: Arc<View>,
    scheduler: WeakHandle,
    /// The children that have not ended, when the supervisor has.
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
    fn release(&mut self, _: Pid) {
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
                // The scheduler stops. All finish at once, and it sees to those that are slow.
                end_all(&scheduler, view, &all, |pid| {
                    let _ended = scheduler.cancel(pid, CancelReason::Shutdown);
                });
            } else {
                terminate_all(&scheduler, view, &all);
            }
        }
    }
}

/// Has each of these end by `end`, and the view told when all have ended, with those below them.
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
            // It has ended.
            await_those_below(Arc::clone(&gone), orphan.below.as_deref());
        }
        end(orphan.pid);
    }
}

fn terminate_all(scheduler: &Handle, view: Arc<View>, all: &[Orphan]) {
    end_all(scheduler, view, all, |pid| {
        // One that is not found has ended.
        let _ = scheduler.terminate(pid);
    });
}

/// The exit action of each orphan that no guardian waits for.
struct End {
    gone: Arc<Gone>,
    below: Option<Arc<View>>,
}

impl ExitAction for End {
    fn tell(self: Box<Self>, _: Pid, _: &ExitCause) {
        await_those_below(self.gone, self.below.as_deref());
    }
}

/// Keeps `gone` until the children of a supervisor that has ended have ended as well.
fn await_those_below(gone: Arc<Gone>, below: Option<&View>) {
    if let Some(below) = below {
        below.has_orphans(|| Waker::from(Arc::new(Held(gone))));
    }
}

/// A waker that does nothing but keep what is to be dropped when it is woken.
struct Held(#[allow(dead_code, reason = "it is dropped")] Arc<Gone>);

impl Wake for Held {
    fn wake(self: Arc<Self>) {}
}

/// Says that no orphan is left, when the last one drops it.
struct Gone(Arc<View>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.set_gone();
    }
}

/// The exit action of a guardian: ends what that has left, if it ends before its time.
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
    let timers = Timers::of(scheduler).ok_or("no timers")?;
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
    scheduler.spawn_boxed::<ganger_proc_api::Message>(Box::new(guardian), METHOD)?;
    Ok(())
}

/// Stops children that have lost their supervisor.
struct Guardian {
    plan: Plan,
    children: BTreeMap<ChildId, Orphan>,
    /// Supervisors among them that have ended, whose children have not.
    orphaned: Vec<ChildId>,
    view: Arc<View>,
    timers: Arc<Timers>,
    armed: Instant,
}

#[derive(Clone)]
struct Orphan {
    pid: Pid,
    /// Of a supervisor.
    below: Option<Arc<View>>,
}

impl Orphan {
    /// That child, if it has not ended.
    fn of(entry: &Entry) -> Option<Self> {
        let (pid, below) = (entry.pid?, entry.below.clone());
        Some(Self { pid, below })
    }
}

/// The tag of its timer.
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
