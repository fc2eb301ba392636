//! Children whose supervisor has ended before them.

use crate::plan::{Act, AutoShutdown, ChildId, Ended, Plan, Rules, Strategy, Verdict, Window};
use crate::view::{Entry, View};
use ganger_proc_api::{
    BoxError, Context, Event, Events, ExitCause, Payloads, Pid, Process, StepOutput, StepResult,
    Symbol, Tag,
};
use ganger_sched::{ContextExt, ExitAction, Handle, Moment, WeakHandle};
use ganger_sync::sync::Mutex;
use ganger_time::{TimerOutput, Timers};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The exit action of a supervisor: has the children that are left stopped by another process, as
/// the supervisor would have stopped them. Where no process can be started any more, because the
/// scheduler forces all to end, they are terminated.
pub(crate) struct Orphans {
    view: Arc<View>,
    scheduler: WeakHandle,
}

impl Orphans {
    pub(crate) fn new(view: Arc<View>, scheduler: WeakHandle) -> Self {
        Self { view, scheduler }
    }
}

impl ExitAction for Orphans {
    fn tell(self: Box<Self>, _: Pid, _: &ExitCause) {
        let mut left = self.view.entries();
        left.retain(|(_, entry)| entry.pid.is_some());
        let Some(scheduler) = self.scheduler.upgrade() else {
            return;
        };
        if left.is_empty() {
            return;
        }
        let pids: Vec<_> = left.iter().filter_map(|it| it.1.pid).collect();
        let strategy = self.view.strategy;
        if stop_them(&scheduler, strategy, left).is_err() {
            terminate(&scheduler, &pids);
        }
    }
}

/// The exit action of a guardian: ends what that has left, if it ends before its time.
struct LastResort(WeakHandle, Vec<Pid>);

impl ExitAction for LastResort {
    fn tell(self: Box<Self>, _: Pid, _: &ExitCause) {
        if let Some(scheduler) = self.0.upgrade() {
            terminate(&scheduler, &self.1);
        }
    }
}

fn terminate(scheduler: &Handle, pids: &[Pid]) {
    for pid in pids.iter().rev() {
        // One that is not found has ended.
        let _ = scheduler.terminate(*pid);
    }
}

fn stop_them(
    scheduler: &Handle,
    strategy: Strategy,
    left: Vec<(ChildId, Entry)>,
) -> Result<(), BoxError> {
    const METHOD: Symbol = Symbol::new("orphans");
    let timers = Timers::of(scheduler).ok_or("no timers")?;
    let now = timers.now();
    let window = Arc::new(Mutex::new(Window::new(0, Duration::ZERO)));
    let mut plan = Plan::new(strategy, AutoShutdown::Never, window, 0);
    let mut children = BTreeMap::new();
    for (_, entry) in left {
        let stop = entry.stop;
        let rules = Rules {
            stop,
            ..Rules::default()
        };
        if let Some(pid) = entry.pid {
            children.insert(plan.add_running(rules, now), pid);
        }
    }
    plan.stop(Verdict::Stopped, Moment::NEVER);
    let guardian = Guardian {
        plan,
        children,
        timers,
        armed: Moment::NEVER,
    };
    scheduler.spawn_boxed::<dyn std::any::Any>(Box::new(guardian), METHOD)?;
    Ok(())
}

/// Stops children that have lost their supervisor.
struct Guardian {
    plan: Plan,
    children: BTreeMap<ChildId, Pid>,
    timers: Arc<Timers>,
    armed: Moment,
}

/// The tag of its timer.
const DUE: Tag = 1;

impl Process for Guardian {
    fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        if let Some(scheduler) = ctx.scheduler() {
            let pids = self.children.values().copied().collect();
            ctx.add_exit_action(Box::new(LastResort(scheduler.downgrade(), pids)))?;
        }
        for (id, pid) in &self.children {
            ctx.monitor(*pid, id.0)?;
        }
        Ok(())
    }

    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        out.defer_cancel();
        for event in events {
            match event {
                Event::Exit(notice) => {
                    let id = ChildId(notice.tag);
                    self.plan.ended(id, Ended::Asked, self.timers.now());
                }
                Event::Completion(_) => self.armed = Moment::NEVER,
                _ => {}
            }
        }
        while let Some(act) = self.plan.next(self.timers.now()) {
            match act {
                Act::Cancel(id, _) => {
                    let _ = ctx.cancel(self.children[&id], "its supervisor has ended");
                }
                Act::Terminate(id) => {
                    let _ = ctx.terminate(self.children[&id]);
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
            if due < Moment::NEVER {
                out.sleep_until(due, DUE);
            }
            self.armed = due;
        }
        Ok(())
    }
}
