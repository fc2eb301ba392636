//! The supervisor as a process, which carries out a plan.
//!
//! **Protocol.** The driver starts each child together with its monitor, so that each start has a
//! single notice, with the right cause. The tag of the monitor is the child's id. A timer runs for
//! the next act that the plan does by itself.
//!
//! A stop of the scheduler cancels the supervisors at the top alone. Each supervisor cancels its
//! children in their order.
//!
//! After a termination or a failed `init` the supervisor ends before its children. Its exit action
//! has another process stop them: see [`Orphans`]. A supervisor above takes the supervisor for
//! ended when its orphans are gone, and starts the successor after this.

mod error;
mod order;
mod orphans;
mod questions;

pub use self::error::SuperviseError;
pub(crate) use self::error::refused;
pub use self::order::Order;
pub(crate) use self::order::{Kind, Watching, asker};

use self::order::{must_stop_by, time_for_children};
use self::orphans::Orphans;
use crate::child::{ChildSpec, Place, Site};
use crate::log::{contain, log};
use crate::plan::{Act, AutoShutdown, ChildId, Ended, Plan, Strategy, Verdict, Window};
use crate::running;
use crate::view::{ChildState, Entry, View, ViewOf};
use ganger_proc_api::internal::RunnerOutput as _;
use ganger_proc_api::{
    BoxError, CancelReason, Context, Event, Events, ExitCause, ExitNotice, Pid, Process, Reply,
    StepOutput, StepResult, SubmitError, SubmitErrorKind, Symbol, Tag,
};
use ganger_sched::internal::{AddressInternals as _, ContextInternals as _};
use ganger_sched::{ContextExt, Instant, LifeChange, SupervisorChange, WeakHandle};
use ganger_sync::sync::Mutex;
use ganger_time::Timers;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The tag of the timer.
const DUE: Tag = 1;

/// See the head of this file.
pub(crate) struct Driver {
    plan: Plan,
    view: Arc<View>,
    view_of: ViewOf,
    timers: Timers,
    scheduler: WeakHandle,
    children: BTreeMap<ChildId, Known>,
    /// The running children.
    by_pid: BTreeMap<Pid, ChildId>,
    window: Arc<Mutex<Window>>,
    max_children: usize,
    /// The due time of the running timer.
    armed: Instant,
    /// The reason of the stop, once it has come.
    reason: Option<CancelReason>,
    /// The last failure of a child.
    failure: Option<Failure>,
    /// Ended supervisors with living children.
    orphaned: Vec<(ChildId, Ended, Arc<View>)>,
    /// The callers that wait for the end of all children.
    stopping: Vec<Reply<Vec<String>>>,
    /// The supervisor is stopping, and has refused the callers that waited for starts.
    has_refused: bool,
    /// The supervisor is stopping, and has told so.
    has_told: bool,
}

/// How a child has failed.
enum Failure {
    NotStarted(BoxError),
    Ended(ExitCause),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted(error) => error.fmt(f),
            Self::Ended(cause) => cause.fmt(f),
        }
    }
}

struct Known {
    child: ChildSpec,
    /// The process, while the child runs.
    pid: Option<Pid>,
    /// The callers that wait for its end, or its start.
    waiting: Vec<Waiting>,
    /// The watcher of the first process.
    watcher: Option<Watching>,
}

enum Waiting {
    End(Reply<()>),
    Start(Reply<Pid>),
}

impl Waiting {
    /// Answers with the PID of the child, which runs.
    fn has_started(self, pid: Pid) {
        match self {
            Self::Start(reply) => reply.complete(pid),
            Self::End(reply) => reply.complete(()),
        }
    }
}

impl Driver {
    /// Creates the driver; returns `None` without a scheduler.
    pub(crate) fn new(
        ctx: &Context,
        (view, view_of): (Arc<View>, ViewOf),
        (strategy, auto): (Strategy, AutoShutdown),
        window: Arc<Mutex<Window>>,
        max_children: usize,
    ) -> Option<Self> {
        Some(Self {
            plan: Plan::new(strategy, auto, Arc::clone(&window), ctx.pid().id()),
            window,
            view,
            view_of,
            scheduler: ctx.scheduler()?.downgrade(),
            timers: ctx.timers().clone(),
            children: BTreeMap::new(),
            by_pid: BTreeMap::new(),
            max_children,
            armed: Instant::NEVER,
            reason: None,
            failure: None,
            orphaned: Vec::new(),
            stopping: Vec::new(),
            has_refused: false,
            has_told: false,
        })
    }

    /// Adds a child, which the plan starts.
    pub(crate) fn add(&mut self, child: ChildSpec) -> Result<ChildId, SuperviseError> {
        if self.children.len() >= self.max_children {
            let most = self.max_children;
            return Err(SuperviseError::Full { most });
        }
        let is_taken = || self.view.id_of(&child.name).is_some();
        if self.view.strategy != Strategy::Dynamic && is_taken() {
            return Err(SuperviseError::NameTaken(child.name));
        }
        let rules = child.rules();
        let id = self.plan.add(rules, self.timers.now());
        self.view.insert(
            id,
            Entry {
                name: Arc::clone(&child.name),
                restart: rules.restart,
                stop: rules.stop,
                pid: None,
                state: ChildState::Waits,
                restarts: 0,
                last: None,
                was_slow: false,
                below: None,
            },
        );
        let known = Known {
            child,
            pid: None,
            waiting: Vec::new(),
            watcher: None,
        };
        self.children.insert(id, known);
        Ok(id)
    }

    /// Starts the children.
    pub(crate) fn begin(&mut self, ctx: &Context) -> Result<(), BoxError> {
        let orphans = Orphans::new(Arc::clone(&self.view), self.scheduler.clone());
        ctx.add_exit_action(Box::new(orphans))?;
        if let Some(scheduler) = self.scheduler.upgrade() {
            running::enter(&scheduler, ctx.pid(), &self.view);
        }
        while let Some(act) = self.plan.next(self.timers.now()) {
            let Act::Start(id) = act else { break };
            self.start(ctx, id);
            if let Some(Failure::NotStarted(error)) = self.failure.take() {
                let child = self.name(id);
                let cause = error.to_string().into();
                tell(ctx, || SupervisorChange::GaveUp {
                    child: Arc::clone(&child),
                    cause,
                });
                return Err(SuperviseError::NotStarted { child, error }.into());
            }
        }
        self.plan.run();
        tell(ctx, || SupervisorChange::Up);
        Ok(())
    }

    pub(crate) fn step(
        &mut self,
        ctx: &Context,
        events: &mut Events<'_>,
        out: &mut StepOutput,
    ) -> StepResult {
        out.defer_cancel();
        for event in events {
            match event {
                Event::Exit(notice) => self.ended(ctx, *notice),
                Event::Cancel(reason) => self.cancelled(reason),
                Event::Completion(_) => self.armed = Instant::NEVER,
                Event::Message(message) => self.ordered(message.take::<Order>()?.0),
                Event::Control(message) => self.ordered(message.take::<Order>()?.0),
                _ => {}
            }
        }
        let gone = |it: &mut (_, _, Arc<View>)| !it.2.has_orphans(|| ctx.waker());
        for (id, how, _) in self.orphaned.extract_if(.., gone).collect::<Vec<_>>() {
            self.plan.ended(id, how, self.timers.now());
            self.has_ended(ctx, id);
        }
        while let Some(act) = self.plan.next(self.timers.now()) {
            self.tell_stop(ctx);
            match act {
                Act::Start(id) => self.start(ctx, id),
                Act::Cancel(id, by) => self.cancel(ctx, id, by),
                Act::Terminate(id) => self.terminate(ctx, id),
                Act::Forget(id) => {
                    self.answer_overtaken(id);
                    self.children.remove(&id);
                    self.view.remove(id);
                }
                Act::End(verdict) => {
                    self.refuse_starts();
                    return self.end(verdict, out);
                }
            }
        }
        self.refuse_starts();
        self.tell_stop(ctx);
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

    fn cancelled(&mut self, reason: CancelReason) {
        let mut by = Instant::NEVER;
        if reason == CancelReason::Shutdown
            && let Some(left) = self.scheduler.upgrade().and_then(|it| it.time_to_stop())
        {
            by = time_for_children(self.timers.now(), left);
        }
        self.reason.get_or_insert(reason);
        self.plan.stop(Verdict::Stopped, by);
    }

    fn end(&mut self, verdict: Verdict, out: &mut StepOutput) -> StepResult {
        for reply in self.stopping.drain(..) {
            reply.complete(self.view.slow());
        }
        match verdict {
            Verdict::Stopped => {
                let stopped = || CancelReason::from("stopped");
                out.show_cancel(self.reason.take().unwrap_or_else(stopped));
                Ok(())
            }
            Verdict::Finished => {
                out.done(());
                Ok(())
            }
            Verdict::GaveUp(id) | Verdict::NotStarted(id) => {
                let (child, cause) = (self.name(id), self.failure_text());
                let cause = (*cause).into();
                Err(SuperviseError::GaveUp { child, cause }.into())
            }
        }
    }

    fn name(&self, id: ChildId) -> Arc<str> {
        let known = self.children.get(&id);
        known.map_or_else(|| "".into(), |known| Arc::clone(&known.child.name))
    }

    /// Shows the plan's state of the child in the view.
    fn show(&self, id: ChildId) {
        self.view.set(id, self.plan.state(id), self.plan.is_due(id));
    }

    fn start(&mut self, ctx: &Context, id: ChildId) {
        let is_first = self.plan.is_new(id);
        // During a stop of the scheduler live processes may start children, to clean up. A restart
        // is not a clean-up.
        let is_stopping = || self.scheduler.upgrade().is_none_or(|it| it.is_stopping());
        if !is_first && !self.plan.is_starting() && is_stopping() {
            let refused = SubmitError::new(SubmitErrorKind::Stopping);
            return self.not_started(ctx, id, refused.into(), None);
        }
        let Some(known) = self.children.get_mut(&id) else {
            return;
        };
        let place = known.child.place.as_ref().map(|make| Site {
            make: Arc::clone(make),
            id,
            window: Arc::clone(&self.window),
            view: Arc::clone(&self.view),
            view_of: self.view_of,
            timers: self.timers.clone(),
            back_off: known.child.rules().back_off,
        });
        let watcher = known.watcher.take();
        let views = (&self.view, self.view_of);
        match begin(ctx, views, &known.child, id, place, watcher) {
            Ok((pid, below)) => {
                let is_supervisor = below.is_some();
                known.pid = Some(pid);
                self.by_pid.insert(pid, id);
                if is_supervisor && known.child.has_default_stop() {
                    self.plan.has_time(id);
                }
                self.plan.started(id, self.timers.now());
                let stop = self.plan.stop_time(id);
                self.view.change(id, |entry| {
                    entry.pid = Some(pid);
                    entry.state = ChildState::Runs;
                    entry.below = below;
                    entry.restarts += u64::from(!is_first);
                    entry.was_slow = false;
                    entry.stop = stop;
                });
                let waiting = std::mem::take(&mut known.waiting);
                waiting.into_iter().for_each(|it| it.has_started(pid));
                if !is_first {
                    log(|| {
                        tracing::info!(
                            target: "ganger::supervise", supervisor = %self.view.label,
                            child = %self.name(id), %pid, "restarted"
                        );
                    });
                }
            }
            Err((error, below)) => self.not_started(ctx, id, error, below),
        }
    }

    /// Notes that a child has not started; `below` is the view of a supervisor that may have
    /// started children before its failure.
    fn not_started(
        &mut self,
        ctx: &Context,
        id: ChildId,
        error: BoxError,
        below: Option<Arc<View>>,
    ) {
        log(|| {
            tracing::warn!(
                target: "ganger::supervise", supervisor = %self.view.label,
                child = %self.name(id), %error, "not started"
            );
        });
        let is_stopping = (error.downcast_ref::<SubmitError>())
            .is_some_and(|error| matches!(error.kind, SubmitErrorKind::Stopping));
        if is_stopping && !self.plan.is_starting() {
            self.plan.stop(Verdict::Stopped, Instant::NEVER);
        }
        match below {
            Some(below) if below.has_orphans(|| ctx.waker()) => {
                let is_unknown = self.plan.is_new(id) && !self.plan.is_starting();
                self.plan.started(id, self.timers.now());
                if is_unknown {
                    self.plan.stop_child(id, true);
                }
                self.orphaned.push((id, Ended::Failed, below));
            }
            _ => {
                self.plan.not_started(id, self.timers.now());
                self.tell_restart(ctx, id, || ExitCause::Failed(error.to_string().into()));
            }
        }
        self.answer_not_started(id, &error);
        self.failure = Some(Failure::NotStarted(error));
        self.show(id);
    }

    fn cancel(&mut self, ctx: &Context, id: ChildId, by: Instant) {
        let Some(pid) = self.children.get(&id).and_then(|it| it.pid) else {
            return;
        };
        self.show(id);
        if let Some(scheduler) = self.scheduler.upgrade() {
            must_stop_by(&scheduler, pid, by);
        }
        let reason = match &self.reason {
            Some(reason) => reason.clone(),
            None => "stopped by its supervisor".into(),
        };
        // A process that is not found has ended, and its notice is on the way.
        let _ = ctx.cancel(pid, reason);
    }

    fn terminate(&mut self, ctx: &Context, id: ChildId) {
        let Some(pid) = self.children.get(&id).and_then(|it| it.pid) else {
            return;
        };
        let was_asked = self.view.is_stopping(id);
        if was_asked {
            log(|| {
                tracing::warn!(
                    target: "ganger::supervise", supervisor = %self.view.label,
                    child = %self.name(id), %pid, "too slow to stop: terminated"
                );
            });
        }
        self.show(id);
        self.view.change(id, |entry| entry.was_slow = was_asked);
        // A process that is not found has ended, and its notice is on the way.
        let _ = ctx.terminate(pid);
    }

    fn ended(&mut self, ctx: &Context, notice: ExitNotice) {
        let id = ChildId(notice.tag);
        if self.by_pid.get(&notice.pid) != Some(&id) {
            return;
        }
        self.by_pid.remove(&notice.pid);
        let how = match &notice.cause {
            ExitCause::Done => Ended::Done,
            ExitCause::Cancelled(_) => Ended::Asked,
            _ => Ended::Failed,
        };
        let was_asked = self.plan.is_leaving(id);
        if how == Ended::Failed && !was_asked {
            self.report_crash(id, &notice);
        }
        if !was_asked && !self.plan.is_stopping() {
            self.failure = Some(Failure::Ended(notice.cause.clone()));
        }
        let mut below = None;
        self.view.change(id, |entry| {
            entry.pid = None;
            entry.last = Some(notice.cause);
            below.clone_from(&entry.below);
        });
        if let Some(known) = self.children.get_mut(&id) {
            known.pid = None;
        }
        match below {
            // The successor waits until the orphans have ended.
            Some(below) if below.has_orphans(|| ctx.waker()) => {
                self.orphaned.push((id, how, below));
            }
            _ => {
                self.plan.ended(id, how, self.timers.now());
                self.has_ended(ctx, id);
            }
        }
    }

    /// Notes that the child and its orphans have ended.
    fn has_ended(&mut self, ctx: &Context, id: ChildId) {
        self.answer_ends(id);
        self.show(id);
        self.tell_restart(ctx, id, || {
            self.view.last_of(id).unwrap_or(ExitCause::NotFound)
        });
    }

    /// Tells that the child is going to start again, if it is.
    fn tell_restart(&self, ctx: &Context, id: ChildId, cause: impl FnOnce() -> ExitCause) {
        if self.plan.is_due(id) && !self.plan.is_stopping() && !self.plan.is_starting() {
            tell(ctx, || SupervisorChange::Restarts {
                child: self.name(id),
                cause: cause(),
            });
        }
    }

    /// Tells once that the supervisor stops, and why.
    fn tell_stop(&mut self, ctx: &Context) {
        if self.has_told {
            return;
        }
        let Some(verdict) = self.plan.verdict() else {
            return;
        };
        self.has_told = true;
        tell(ctx, || match verdict {
            Verdict::Stopped | Verdict::Finished => SupervisorChange::Stops,
            Verdict::GaveUp(id) | Verdict::NotStarted(id) => SupervisorChange::GaveUp {
                child: self.name(id),
                cause: self.failure_text(),
            },
        });
    }

    /// Returns the text of the last failure.
    fn failure_text(&self) -> Arc<str> {
        let text = self.failure.as_ref().map(ToString::to_string);
        text.map_or_else(|| "it ended".into(), Into::into)
    }

    fn report_crash(&self, id: ChildId, notice: &ExitNotice) {
        log(|| {
            tracing::warn!(
                target: "ganger::supervise", supervisor = %self.view.label,
                child = %self.name(id), pid = %notice.pid, cause = %notice.cause, "failed"
            );
        });
        (self.view).tell_of_failure(id, notice.pid, &notice.cause);
    }
}

/// Tells subscribers to lives of a change of this supervisor.
fn tell(ctx: &Context, change: impl FnOnce() -> SupervisorChange) {
    ctx.tell_life(|| LifeChange::Supervisor(Box::new(change())));
}

/// The result of a start, with the view of the child if it is a supervisor.
type Begun = Result<(Pid, Option<Arc<View>>), (BoxError, Option<Arc<View>>)>;

/// Makes and starts a child, together with its monitor.
fn begin(
    ctx: &Context,
    (above, view_of): (&Arc<View>, ViewOf),
    child: &ChildSpec,
    id: ChildId,
    site: Option<Site>,
    watcher: Option<Watching>,
) -> Begun {
    const METHOD: Symbol = Symbol::new("main");
    let (process, view) = match site {
        Some(site) => (Box::new(Place::new(site)) as Box<dyn Process>, None),
        None => {
            let made = contain(|| (child.make)());
            let panicked = |message| BoxError::from(format!("its factory panicked: {message}"));
            let made = made.map_err(panicked).flatten();
            let process = made.map_err(|error| (error, None))?;
            let view = view_of(&*process);
            (process, view)
        }
    };
    let mut spawner = ctx.spawner().monitored(id.0).before_init(|child| {
        child.leave_shutdown_to_caller();
        if let Some(watcher) = watcher {
            child.add_exit_action(Box::new(watcher))?;
        }
        Ok(())
    });
    if let Some(name) = &child.registered {
        spawner = spawner.named(&**name);
    }
    match child.mailbox_limit {
        Some(Some(messages)) => spawner = spawner.mailbox_limit(messages),
        Some(None) => spawner = spawner.no_mailbox_limit(),
        None => {}
    }
    if let Some(view) = &view {
        view.set_above(above);
    }
    match spawner.submit(process, METHOD, ()) {
        Ok(pid) => Ok((pid, view)),
        Err(error) => Err((error.into(), view)),
    }
}
