//! Starting a process.

use crate::base::contain::{contain, discard, log, text_of_chain};
use crate::limits::room::Limit;
use crate::probe::{Carry, Probe};
use crate::process::dropped;
use crate::process::exit_actions::ExitActions;
use crate::process::exit_slot::ExitSlot;
use crate::process::origin::{Origin, Values};
use crate::process::process_box::ProcessBox;
use crate::process::state::State;
use crate::reports::life::LifeChange;
use crate::runtime::cell::ProcessCell;
use crate::runtime::cell::Task;
use crate::runtime::frames::{self, Frame};
use crate::runtime::item::Item;
use crate::runtime::lent_context::LentContext;
use crate::runtime::registry::FIRST_COUNTED_ID;
use crate::runtime::shared::Shared;
use crate::runtime::token::Token;
use crate::turn::finish::{drop_values, take_down};
use ganger_proc_api::{
    BoxError, CommandError, ExitCause, Payloads, Pid, SubmitError, SubmitErrorKind, Symbol,
};
use ganger_sync::fence;
use std::mem::{self, ManuallyDrop};
use std::sync::Arc;
use tracing::Level;

/// The PID, the parent and the mailbox's limit of a new process. By default, a PID chosen by the
/// scheduler, the process in whose step or `init` this thread is, and the scheduler's limit.
#[derive(Default, Clone, Copy)]
pub(crate) struct Birth<'a> {
    pid: Option<Pid>,
    parent: Option<&'a ProcessCell>,
    limit: Option<Limit>,
}

impl<'a> Birth<'a> {
    /// Creates a birth under this PID.
    pub(crate) fn under(pid: Pid) -> Self {
        let pid = Some(pid);
        Self {
            pid,
            ..Self::default()
        }
    }

    /// Creates a birth by this process, on any thread.
    pub(crate) fn by(parent: &'a ProcessCell) -> Self {
        let parent = Some(parent);
        Self {
            parent,
            ..Self::default()
        }
    }

    /// Creates a birth by this process, under this PID.
    pub(crate) fn by_under(parent: &'a ProcessCell, pid: Pid) -> Self {
        let pid = Some(pid);
        Self {
            pid,
            ..Self::by(parent)
        }
    }

    /// Sets the limit; `None` stands for the scheduler's.
    pub(crate) fn with_limit(self, limit: Option<Limit>) -> Self {
        Self { limit, ..self }
    }
}

impl Shared {
    /// Submits a process as [`begin`](Self::begin) does, whose end no thread waits for.
    pub(crate) fn submit_detached(
        self: &Arc<Self>,
        parent: &ProcessCell,
        process: ProcessBox,
        method: Symbol,
        input: Payloads,
    ) -> Result<Pid, SubmitError> {
        let birth = Birth::by(parent);
        let abandon = |exit: &ExitSlot| exit.abandon_unseen();
        let (pid, _gone) = self.begin(birth, process, method, input, abandon, |_| Ok(()))?;
        Ok(pid)
    }

    /// Makes a process visible, initialises it, and queues it. Calls `prepare` before any other
    /// thread knows of the process, and `hook` before its `init`. A failure undoes the earlier
    /// acts, and returns the process.
    ///
    /// Unless `prepare` abandons the exit slot, the process lives until the caller's handle of it
    /// has been dropped.
    #[inline]
    pub(crate) fn begin(
        self: &Arc<Self>,
        birth: Birth<'_>,
        process: ProcessBox,
        method: Symbol,
        input: Payloads,
        prepare: impl FnOnce(&ExitSlot),
        hook: impl FnOnce(&Task) -> Result<(), SubmitErrorKind>,
    ) -> Result<(Pid, ManuallyDrop<Task>), SubmitError> {
        let mut place = Place::new(self, birth);
        if let Err(kind) = place.take(birth.pid) {
            return Err(SubmitError::new(kind).with_process(process.into_box(), input));
        }
        let frame = Frame::Submission(place.id);
        let alias = frames::within(&**self, frame, || {
            self.start(&mut place, method, process, input, prepare, hook)
        })?;
        let task = &alias;
        place.keep();
        self.probe.interleave(self);
        // A stop announced after the place was taken may have missed the process.
        if self.shutdown.is_stopping() {
            task.notify_of_shutdown();
        }
        if self.shutdown.is_terminating() || self.shutdown.is_halted() {
            task.terminate();
        }
        let pid = place.pid();
        let of = || task.about.type_name();
        (self.probe).spawned(task.id, &task.probe, place.parent, of);
        self.probe.readied(&task.probe);
        // SAFETY: the submitter owns the token, and has registered the process.
        self.schedule(unsafe { Token::new(task) });
        // Pairs with the heavy fence in `is_nothing_left`: the process is queued, then this thread
        // looks for the halt, because a worker's step may never end; the scheduler has halted, then
        // the supervisor looks at the queues. One of the two sees the other.
        fence::light();
        self.end_after_halt();
        Ok((pid, alias))
    }

    /// Makes a process visible at its place, and initialises it. The submitter owns its run token
    /// all the while, so no worker runs the process, and its messages wait in its mailbox.
    #[inline]
    fn start(
        self: &Arc<Self>,
        place: &mut Place<'_>,
        method: Symbol,
        process: ProcessBox,
        input: Payloads,
        prepare: impl FnOnce(&ExitSlot),
        hook: impl FnOnce(&Task) -> Result<(), SubmitErrorKind>,
    ) -> Result<ManuallyDrop<Task>, SubmitError> {
        let task = self.cell(place, method, process);
        let parent = place.parent;
        self.probe.born(place.id, &task.probe, |look| {
            if parent != 0 {
                (self.census.registry).read(parent, |it| look(&it.probe));
            }
        });
        if let Some(cause) = self.carrier().cause() {
            // SAFETY: the submitter owns the run token.
            unsafe { task.with_core(|core| core.causes().add(cause)) };
        }
        if place.is_left_alone {
            let _told = task.state.claim_shutdown_notice();
        }
        prepare(&task.exit);
        // SAFETY: the pointer comes from an `Arc`, which the registry keeps from now on: until the
        // process has ended, after it has been queued, or until it is rolled back. The copy is not
        // dropped, so it need not be counted.
        let alias = ManuallyDrop::new(unsafe { Arc::from_raw(Arc::as_ptr(&task)) });
        // SAFETY: the place has the id, and this is the only time.
        unsafe { self.census.registry.insert(place.id, task) };
        let task = &alias;
        // Pairs with the heavy fences in `begin_stopping` and `begin_terminating`: either the
        // thread that stops the scheduler sees the process, or the looks below see the stop.
        fence::light();
        // From here on the process can be found, sent to, cancelled and terminated.
        if let Err(kind) = hook(task) {
            return Err(place.roll_back(task, kind, input));
        }
        let initialised = self.init(task, method, input);
        self.probe.interleave(self);
        if let Err(kind) = initialised {
            return Err(place.roll_back(task, kind, Payloads::new()));
        }
        if self.shutdown.is_halted() {
            return Err(place.roll_back(task, SubmitErrorKind::Stopping, Payloads::new()));
        }
        if let Err(kind) = self.on_start(task, method) {
            return Err(place.roll_back(task, kind, Payloads::new()));
        }
        self.own_counters().started.bump();
        self.tell_life(task, || LifeChange::Started);
        log(
            Level::DEBUG,
            || tracing::debug!(target: "ganger::sched", pid = %task.pid(), %method, "started"),
        );
        Ok(alias)
    }

    /// Returns a cell for the process: a used cell, if any.
    fn cell(self: &Arc<Self>, place: &mut Place<'_>, method: Symbol, process: ProcessBox) -> Task {
        let is_limited = place.limit.unwrap_or(self.rooms.limit) != Limit::NONE;
        let origin = Origin::new(place.parent, place.inherits.take(), place.limit, is_limited);
        if let Some(task) = place.cell.take() {
            // SAFETY: nothing else refers to a cell from the pool.
            let cell = unsafe { &mut *Arc::as_ptr(&task).cast_mut() };
            cell.renew(place.pid(), method, process, origin);
            return task;
        }
        let shared = Arc::clone(self);
        ProcessCell::new(shared, place.pid(), method, process, origin)
    }

    fn init(&self, task: &Task, method: Symbol, input: Payloads) -> Result<(), SubmitErrorKind> {
        let ctx = LentContext::new(task);
        // SAFETY: the process has not been queued: its submitter owns the run token. `init` can
        // reach the process's context, which does not use the core.
        let returned = unsafe {
            task.with_core(|core| match &mut core.process {
                Some(process) => contain(|| process.init(&ctx, &method, input)),
                None => Ok(Ok(())),
            })
        };
        match returned {
            Ok(Ok(())) => {
                self.probe.initialised(task.pid());
                Ok(())
            }
            Ok(Err(error)) => Err(SubmitErrorKind::InitFailed(error)),
            Err(message) => {
                self.own_counters().panics.bump();
                Err(SubmitErrorKind::InitPanicked(message))
            }
        }
    }

    fn on_start(&self, task: &Task, method: Symbol) -> Result<(), SubmitErrorKind> {
        let Some(lifecycle) = self.config.lifecycle.as_deref() else {
            return Ok(());
        };
        let result: Result<Result<(), BoxError>, _> =
            contain(|| lifecycle.on_start(task.pid(), method));
        match result {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(SubmitErrorKind::StartRefused(error)),
            Err(message) => {
                self.own_counters().panics.bump();
                Err(SubmitErrorKind::StartPanicked(message))
            }
        }
    }
}

/// The right to a live process: counted, and with a taken PID.
///
/// Dropping it gives the right back, unless it was not taken or is kept. The end of the process
/// gives a kept right back.
struct Place<'a> {
    shared: &'a Arc<Shared>,
    id: u64,
    /// The id of the parent, or zero.
    parent: u64,
    /// The cell of the parent, if the caller has named it.
    by: Option<&'a ProcessCell>,
    /// Of its mailbox, unless it is the scheduler's.
    limit: Option<Limit>,
    /// Whether a stop under way does not cancel it.
    is_left_alone: bool,
    /// Its inherited values.
    inherits: Option<Arc<Values>>,
    /// A used cell, if any.
    cell: Option<Task>,
    /// Whether nothing must be given back.
    kept: bool,
}

impl<'a> Place<'a> {
    /// Creates a place that holds none yet.
    fn new(shared: &'a Arc<Shared>, birth: Birth<'a>) -> Self {
        let by = birth.parent;
        let (parent, inherits) = match by {
            Some(parent) => (parent.pid().id(), parent.origin.values()),
            None => {
                let parent = shared.own_process_id();
                (parent, shared.values_of(parent))
            }
        };
        Self {
            shared,
            id: 0,
            parent,
            by,
            limit: birth.limit,
            is_left_alone: false,
            inherits,
            cell: None,
            kept: true,
        }
    }

    fn take(&mut self, pid: Option<Pid>) -> Result<(), SubmitErrorKind> {
        let shared = self.shared;
        if let Some(depth) = frames::too_deep() {
            return Err(SubmitErrorKind::TooDeep { depth });
        }
        // A first look, so refused submits do not keep a stop from ending.
        self.look_at_stop()?;
        let worker = shared.own_index();
        shared.census.live.enter(worker);
        if let Err(kind) = self.take_counted(pid) {
            shared.census.live.leave(worker);
            return Err(kind);
        }
        Ok(())
    }

    fn take_counted(&mut self, pid: Option<Pid>) -> Result<(), SubmitErrorKind> {
        let shared = self.shared;
        // The look that counts: the process is counted, and so is its parent until it has closed.
        self.look_at_stop()?;
        if let Some(pid) = pid {
            check(shared, pid)?;
        }
        if let Some(max) = shared.config.max_processes
            && !shared.census.places.enter_below(max)
        {
            return Err(SubmitErrorKind::LimitReached { max });
        }
        let has_id = shared.with_cache(|cache| {
            self.cell = cache.take_cell(&shared.census.pool);
            let id = match pid {
                None => shared.claim_id(cache),
                Some(pid) => Some(pid.id()),
            };
            self.id = id.unwrap_or_default();
            id.is_some()
        });
        if !has_id {
            shared.leave_place();
            let max = u32::MAX as usize;
            return Err(SubmitErrorKind::LimitReached { max });
        }
        if let Some(pid) = pid
            && !shared.census.registry.reserve(pid.id())
        {
            shared.leave_place();
            return Err(SubmitErrorKind::AlreadyExists(pid));
        }
        self.kept = false;
        Ok(())
    }

    /// Looks whether a stop refuses the submit. During a stop a live process may start others, for
    /// its clean-up, until the deadline has passed. Other submits are refused.
    ///
    /// A process whose parent still awaits the notice of the stop is notified, as if it had been
    /// started a moment before. A notified parent knows of the stop, and its child is left alone: a
    /// process asked to finish at once can't serve a clean-up. So is the child of a process that is
    /// left alone.
    fn look_at_stop(&mut self) -> Result<(), SubmitErrorKind> {
        let shutdown = &self.shared.shutdown;
        if !shutdown.is_stopping() {
            return Ok(());
        }
        let look = |parent: &State<Item>| {
            let is_left_alone = parent.is_prepared_for_shutdown();
            (!parent.is_closed()).then_some(is_left_alone)
        };
        let parent = match self.by {
            _ if shutdown.is_over() => None,
            Some(parent) => look(&parent.state),
            None if self.parent == 0 => None,
            None => {
                let registry = &self.shared.census.registry;
                registry.read(self.parent, |it| look(&it.state)).flatten()
            }
        };
        self.is_left_alone = parent.ok_or(SubmitErrorKind::Stopping)?;
        Ok(())
    }

    fn pid(&self) -> Pid {
        Pid::new(self.shared.host, self.id)
    }

    /// Rolls back the start of a visible process: hides it again, and runs its exit actions.
    /// Returns the process if its `init` has failed or was not called; closes it if its `init` has
    /// succeeded.
    #[cold]
    fn roll_back(&mut self, task: &Task, kind: SubmitErrorKind, input: Payloads) -> SubmitError {
        let shared = self.shared;
        let counters = shared.own_counters();
        let _without_a_step = task.state.begin();
        let (_, items) = task.complete();
        // SAFETY: the process has not been queued: its submitter owns the run token.
        let mut process = unsafe { task.with_core(|core| core.process.take()) };
        let mut error = SubmitError::new(kind);
        let cause = cause_of(&error.kind);
        match error.kind {
            SubmitErrorKind::InitFailed(_)
            | SubmitErrorKind::NotNamed(_)
            | SubmitErrorKind::Prevented(_) => {
                if let Some(process) = process.take() {
                    error = error.with_process(process.into_box(), input);
                }
            }
            SubmitErrorKind::InitPanicked(_) => discard(task.pid(), counters, process.take()),
            _ => {}
        }
        let mut actions = None;
        // Replies in its mailbox are for this process to answer, not for its parent.
        let dropped = dropped::open();
        take_down(process, items, &mut actions, task, counters);
        drop_values(task, counters);
        if let Some(actions) = &mut actions {
            actions.release(task.pid(), counters);
        }
        dropped::answer(|| CommandError::Ended(cause.clone()));
        drop(dropped);
        shared.probe.withdrawn(task.pid());
        // For no other process to have its cell before all notices are sent.
        let task = Arc::clone(task);
        self.give_back();
        let late = shared.closing_inbox.take(task.key());
        ExitActions::apply_late(&mut actions, late, task.pid(), counters);
        if let Some(actions) = actions {
            actions.tell_not_started(task.pid(), &cause, counters);
        }
        error
    }

    /// Keeps the place: the process counts for itself from now on.
    fn keep(&mut self) {
        self.kept = true;
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl Place<'_> {
    fn give_back(&mut self) {
        if !mem::replace(&mut self.kept, true) {
            // SAFETY: the place has taken the id, and the process is not to end elsewhere.
            drop(unsafe { self.shared.free_id(self.id) });
            self.shared.leave_place();
            self.shared.census.live.leave(self.shared.own_index());
            // A process woken meanwhile by the hooks, or by `init`, may have no other thread to end
            // it.
            self.shared.end_after_halt();
        }
    }
}

impl Shared {
    /// Gives a place of `max_processes` back.
    pub(crate) fn leave_place(&self) {
        if self.config.max_processes.is_some() {
            self.census.places.leave();
        }
    }
}

/// Returns the cause of the end of a process that was not started after all.
fn cause_of(kind: &SubmitErrorKind) -> ExitCause {
    match kind {
        SubmitErrorKind::InitFailed(error)
        | SubmitErrorKind::StartRefused(error)
        | SubmitErrorKind::Prevented(error) => ExitCause::Failed(text_of_chain(&**error).into()),
        SubmitErrorKind::InitPanicked(message) | SubmitErrorKind::StartPanicked(message) => {
            ExitCause::Panicked((&**message).into())
        }
        SubmitErrorKind::Stopping => ExitCause::Terminated,
        _ => ExitCause::NotFound,
    }
}

fn check(shared: &Shared, pid: Pid) -> Result<(), SubmitErrorKind> {
    let why = if pid.host() != shared.host {
        "the host is not this scheduler"
    } else if !shared.is_local(pid) {
        "the node is not this scheduler's"
    } else if pid.id() >= FIRST_COUNTED_ID {
        "the id must be below 2^32; the scheduler assigns higher ids"
    } else {
        return Ok(());
    };
    Err(SubmitErrorKind::InvalidPid { pid, why })
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use crate::Scheduler;
    use crate::api::process_handle::ProcessHandle;
    use crate::noop_process::NoopProcess;
    use std::time::Duration;

    /// Checks the start of a process that a stop misses: the stop looks up the visible processes
    /// just before this process is visible.
    // pins: D1
    #[test]
    fn a_process_that_a_stop_has_missed_is_told_of_it() {
        let builder = Scheduler::builder().workers(1);
        let builder = builder.shutdown_deadline(Duration::ZERO);
        let scheduler = builder.build().unwrap();
        let shared = &scheduler.shared;
        let stop = |_: &ExitSlot| shared.shutdown.begin_stopping();
        let (process, input) = (ProcessBox::new(NoopProcess), Payloads::new());
        let begun = shared.begin(
            Birth::default(),
            process,
            "main".into(),
            input,
            stop,
            |_| Ok(()),
        );
        let (_, task) = begun.unwrap();
        assert!(task.state.is_unwanted());
        // SAFETY: this is the only handle.
        let _handle: ProcessHandle = unsafe { ProcessHandle::new(task) };
    }
}
