//! The calls of users to a scheduler, from any thread.

mod error;
pub(crate) mod here;
mod naming;
mod weak;

pub use error::{UpgradeRefused, UpgradeRefusedKind};
pub use weak::WeakHandle;

use crate::api::into_process::{IntoProcess, Startable};
use crate::api::process_handle::{Address, ProcessHandle};
use crate::base::clock::nanos;
use crate::base::stats::{Stats, WorkerStats};
use crate::handlers::commands::{CommandRegistry, RegisterError};
use crate::handlers::factories::FactoryError;
use crate::probe::{Decide, Decider, Probe};
use crate::process::process_box::ProcessBox;
use crate::process::state::ProcessState;
use crate::progress::report::{StopError, StopReport};
use crate::reports::dead_letters::DeadLetter;
use crate::reports::long_steps::LongStep;
use crate::runtime::cell::{ProcessCell, Task};
use crate::runtime::local;
use crate::runtime::shared::Shared;
use crate::submit::Birth;
use ganger_proc_api::{
    CancelReason, CommandId, Envelope, Handler, HostName, Instant, IntoPayloads, NodeName,
    NotFound, Payloads, Pid, Process, SendError, SubmitError, Symbol, UpgradeRequest,
    UpgradeTarget,
};
use ganger_time::{Timer, Timers};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A scheduler, from the outside: to submit to it, send to its processes and look at them.
///
/// Cloning it is cheap. A handle does not keep the scheduler running: dropping the
/// [`Scheduler`](crate::Scheduler) stops it.
#[derive(Clone)]
pub struct Handle {
    pub(crate) shared: Arc<Shared>,
}

impl Handle {
    /// Tells the probe of a call about to return.
    #[inline(always)]
    fn called(&self, call: &'static str) {
        self.shared.probe.called(&self.shared, call);
    }

    /// Returns the handlers by command id.
    #[must_use]
    pub fn commands(&self) -> &CommandRegistry {
        &self.shared.commands
    }

    /// Returns the timers of the scheduler. Timers cost nothing until the first is set.
    #[must_use]
    pub fn timers(&self) -> &Timers {
        &self.shared.timing.timers
    }

    /// Returns the time, by the clock of the scheduler: the machine's monotonic clock, or a
    /// simulation's.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.shared.timing.timers.now()
    }

    /// Has the envelope sent after `delay`: see [`Timers::send_after`].
    pub fn send_after(&self, delay: Duration, envelope: Envelope) -> Timer {
        self.shared.send_after(delay, envelope)
    }

    /// Registers `handler` for the command `id`, under a name for messages to people. The id is
    /// from 256 to 32,767; [typed commands](Self::register_for) need none.
    ///
    /// # Errors
    /// [`RegisterError`], with the handler inside, when the id is taken, or not for users, or the
    /// registry is frozen because the scheduler has been started.
    ///
    /// # Drop
    /// The last worker drops the handler when the scheduler has been stopped and the workers have
    /// returned. The handler may keep completers, a `Handle` or an [`Address`]. In a scheduler that
    /// is never started, a handler that keeps a `Handle` or an `Address` keeps itself alive; a
    /// [`WeakHandle`] does not.
    pub fn register(
        &self,
        id: impl Into<CommandId>,
        name: impl Into<Symbol>,
        handler: impl Handler,
    ) -> Result<(), RegisterError> {
        self.shared.commands.register(id, name, Arc::new(handler))
    }

    /// Registers a way to create processes, for upgrades, at any time.
    ///
    /// # Errors
    /// [`FactoryError`], with the factory inside, when the name is taken.
    pub fn register_factory(
        &self,
        name: impl Into<Symbol>,
        factory: impl Fn() -> Box<dyn Process> + Send + Sync + 'static,
    ) -> Result<(), FactoryError> {
        self.shared
            .factories
            .register(name.into(), Arc::new(factory))
    }

    /// Starts an actor, a process or an async function: see [`IntoProcess`] for the full list.
    /// Calls its `init` on this thread, makes its PID visible, and queues it.
    ///
    /// ```
    /// use ganger_proc_api::actor_fn;
    /// use ganger_sched::Scheduler;
    ///
    /// let scheduler = Scheduler::start_default()?;
    /// let double = scheduler.spawn(actor_fn(|_, number: u64, out| Ok(out.done(2 * number))))?;
    /// double.send(21)?;
    /// assert_eq!(double.wait().take::<u64>()?, 42);
    /// # Ok::<(), ganger_proc_api::BoxError>(())
    /// ```
    ///
    /// # Errors
    /// As for [`submit`](Self::submit).
    pub fn spawn<K, W>(&self, what: W) -> Result<ProcessHandle<W::Message>, SubmitError>
    where
        W: IntoProcess<K>,
        W::Process: Startable,
    {
        let process = what.into_process().unstarted().0;
        let method = W::Process::METHOD;
        self.shared
            .submit(Birth::default(), process, method, Payloads::new())
            .map(ProcessHandle::with_messages)
    }

    /// Submits a process with an entry point and an input, passed to its [`init`](Process::init).
    /// As [`spawn`](Self::spawn) otherwise, whose processes have neither.
    ///
    /// # Errors
    /// [`SubmitError`], with the process inside, when the scheduler is stopping or full, or `init`
    /// or `Lifecycle::on_start` fails. Nothing is left behind then.
    pub fn submit(
        &self,
        process: impl Process,
        method: impl Into<Symbol>,
        input: impl IntoPayloads,
    ) -> Result<ProcessHandle, SubmitError> {
        self.shared.submit(
            Birth::default(),
            ProcessBox::new(process),
            method.into(),
            input.into_payloads(),
        )
    }

    /// Submits a process as [`submit`](Self::submit) does, under a PID chosen by the caller: with
    /// this scheduler's host, and an id below 2^32.
    ///
    /// A fixed id serves as a name. A sender with the id sends to `Pid::new(host, id)` without
    /// having been told a PID, and finds the next process submitted under the same PID in the same
    /// way. The scheduler itself chooses no id below 2^32.
    ///
    /// # Errors
    /// As for [`submit`](Self::submit), and when a process with the PID is alive; this process is
    /// untouched.
    pub fn submit_as(
        &self,
        pid: Pid,
        process: impl Process,
        method: impl Into<Symbol>,
        input: impl IntoPayloads,
    ) -> Result<ProcessHandle, SubmitError> {
        self.shared.submit(
            Birth::under(pid),
            ProcessBox::new(process),
            method.into(),
            input.into_payloads(),
        )
    }

    /// Sends an envelope by PID: to a process of this scheduler, or on to its router. Never blocks.
    ///
    /// # Errors
    /// [`SendError`], with the envelope inside, when it was not accepted.
    pub fn send(&self, envelope: Envelope) -> Result<(), SendError> {
        let result = self.shared.route(envelope);
        self.called("send");
        result
    }

    /// Sends a control message by PID: to a process of this scheduler, or on to its router. Never
    /// blocks.
    ///
    /// The message overtakes the items in the process's mailbox, as [`Address::send_control`]
    /// describes. Schedulers, nodes and routers of this program pass it on as a control message.
    /// Other receivers, a link to another program for instance, may deliver it as an ordinary
    /// message.
    ///
    /// # Errors
    /// [`SendError`], with the envelope inside, when it was not accepted.
    pub fn send_control(&self, envelope: Envelope) -> Result<(), SendError> {
        let result = self.shared.route_control(envelope);
        self.called("send_control");
        result
    }

    /// Reports a dropped message to the sink of dead letters, if any: for crates that send later,
    /// or for others.
    pub fn tell_of_dead_letter(&self, letter: &DeadLetter) {
        self.shared.tell_of_dead_letter(letter);
    }

    /// Returns whether the PID belongs to this scheduler, with a live process or without.
    #[must_use]
    pub fn is_local(&self, pid: Pid) -> bool {
        self.shared.is_local(pid)
    }

    /// Returns the address of the live process with this PID, for sends without further look-ups. A
    /// process of another scheduler has an address with a [remote](crate::Builder::remote), whether
    /// it lives or not.
    ///
    /// ```
    /// # use ganger_proc_api::{BoxError, Pid};
    /// # use ganger_sched::{Address, Handle};
    /// /// The counter, on whatever node it is.
    /// fn counter(scheduler: &Handle, pid: Pid) -> Result<Address<u64>, BoxError> {
    ///     Ok(scheduler.address(pid).ok_or("it has ended")?.typed()?)
    /// }
    /// ```
    #[must_use]
    pub fn address(&self, pid: Pid) -> Option<Address> {
        let found = self.shared.find(pid);
        let found = found.or_else(|| self.shared.find_elsewhere(pid));
        found.map(Address::new)
    }

    /// Lets the process take no further step. A running step finishes first.
    ///
    /// Its exit reason is then `Terminated`, unless this last step fails or panics.
    ///
    /// # Errors
    /// [`NotFound`] when no live process has this PID.
    pub fn terminate(&self, pid: Pid) -> Result<(), NotFound> {
        let result = self.shared.terminate(pid);
        self.called("terminate");
        result
    }

    /// Asks the process to finish: it gets a [cancel event](ganger_proc_api::Event::Cancel), which
    /// ends it unless the process decides otherwise, and its context shows the cancellation.
    ///
    /// # Errors
    /// [`NotFound`] when no live process has this PID.
    pub fn cancel(&self, pid: Pid, reason: impl Into<CancelReason>) -> Result<(), NotFound> {
        let result = self.shared.cancel(pid, reason.into());
        self.called("cancel");
        result
    }

    /// Requests the replacement of the process by another, behind the system events that have
    /// arrived so far. The new process gets the messages that no step of the old process has taken.
    ///
    /// # Errors
    /// [`UpgradeRefused`], with the request inside, when no live process has this PID, or no
    /// factory is registered under this name. When the new process can't be created or initialised,
    /// the old process ends with `ExitReason::UpgradeFailed`.
    pub fn upgrade(&self, pid: Pid, request: UpgradeRequest) -> Result<(), UpgradeRefused> {
        if let UpgradeTarget::Factory(name) = request.target
            && self.shared.factories.get(name).is_none()
        {
            let kind = UpgradeRefusedKind::UnknownFactory(name);
            return Err(UpgradeRefused {
                pid,
                kind,
                request: Box::new(request),
            });
        }
        let refused = match self.shared.find(pid) {
            Some(task) => task.upgrade(request),
            None => Err(request),
        };
        self.called("upgrade");
        refused.map_err(|request| {
            let kind = UpgradeRefusedKind::NotFound;
            UpgradeRefused {
                pid,
                kind,
                request: Box::new(request),
            }
        })
    }

    /// Returns the counts of finished and present work. No worker waits for it.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let idle = self.shared.queues.idle.snapshot();
        Stats {
            workers: self.shared.worker_slots.workers(),
            spares: self.shared.worker_slots.spares(),
            relieved: self.shared.worker_slots.replaced(),
            longest_step: self.shared.reporting.long_steps.longest(),
            sleeping: idle.sleeping as usize,
            searching: idle.searching as usize,
            live: self.shared.census.live.get(),
            global_queue: self.shared.queues.global.len(),
            ready: self.shared.ready(),
            total: self.shared.counters.total(),
        }
    }

    /// Returns the builder's limit of processes alive at a time, if set.
    #[must_use]
    pub fn max_processes(&self) -> Option<usize> {
        self.shared.config.max_processes
    }

    /// Returns the last steps, at most 16, that kept processes waiting until a spare took the place
    /// of their worker. The oldest comes first. No worker waits for it.
    ///
    /// A step announced by `Context::blocking` is among them in two cases: the monitor relieved its
    /// worker, or the step computed for long outside of the announced call.
    #[must_use]
    pub fn long_steps(&self) -> Vec<LongStep> {
        self.shared.reporting.long_steps.last()
    }

    /// Returns the work of each worker so far. No worker waits for it.
    #[must_use]
    pub fn worker_stats(&self) -> Vec<WorkerStats> {
        let used = self.shared.worker_slots.used();
        self.shared.counters.workers(used).collect()
    }

    /// Returns the live processes. Processes that start or end meanwhile may be missing.
    ///
    /// O(n), where n is the most processes alive at any time. The call copies processes with chosen
    /// PIDs ([`submit_as`](Self::submit_as)) part by part. A worker that starts or ends such a
    /// process waits for at most one part.
    #[must_use]
    pub fn processes(&self) -> Vec<ProcessInfo> {
        let tasks = self.shared.census.registry.all();
        tasks
            .map(|task| ProcessInfo::of(&task))
            .filter(|p| p.state != ProcessState::Complete)
            .collect()
    }

    /// Returns the live process with this PID.
    #[must_use]
    pub fn process(&self, pid: Pid) -> Option<ProcessInfo> {
        let info = self.shared.find(pid).as_ref().map(ProcessInfo::of)?;
        (info.state != ProcessState::Complete).then_some(info)
    }

    /// Returns whether [`Scheduler::start`](crate::Scheduler::start) has started at least one
    /// worker, so submitted processes run. Stays true after a stop.
    #[must_use]
    pub fn is_started(&self) -> bool {
        self.shared.start.is_served()
    }

    /// Returns whether submissions are refused, because the scheduler is being stopped or has been.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.shared.shutdown.is_stopping()
    }

    /// Returns the time left until the deadline of a requested stop: then the remaining processes
    /// are terminated. `None` before a stop.
    #[must_use]
    pub fn time_to_stop(&self) -> Option<Duration> {
        let left = self.shared.stopper.time_left()?;
        let virtually =
            Decider::time_of(self.shared.number).zip(Decider::stop_by(self.shared.number));
        Some(virtually.map_or(left, |(now, end)| end.saturating_sub(now)))
    }

    /// Returns the host name of the scheduler.
    #[must_use]
    pub fn host_name(&self) -> HostName {
        self.shared.host
    }

    /// Returns the number of the scheduler, unique in this program: two schedulers may share a host
    /// name, and two processes a PID.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.shared.number
    }

    /// Returns the node name of the scheduler, if it has a node.
    #[must_use]
    pub fn node_name(&self) -> Option<NodeName> {
        self.shared.node
    }

    /// Returns a handle that does not keep the scheduler's memory alive: for handlers, factories,
    /// hooks and processes, and for a router's node, as a host.
    #[must_use]
    pub fn downgrade(&self) -> WeakHandle {
        WeakHandle {
            shared: Arc::downgrade(&self.shared),
        }
    }

    /// Returns memory kept for later processes and messages to the system, as far as possible.
    ///
    /// This covers the scheduler's memory of former processes, names and chosen PIDs. A few dozen
    /// kilobytes a worker stay, and 24 bytes for each process of the largest crowd. Also covered is
    /// the memory for messages of all schedulers of the program and of the calling thread. A step
    /// that calls it also returns its worker's memory. With the GNU C library the call trims the
    /// program's allocator, too, which may otherwise keep all memory of millions of ended
    /// processes.
    ///
    /// A process's or worker's memory for yields, monitors or queued processes is returned without
    /// this call, after a burst. A process frees ended monitors, and calls taken back, over as many
    /// later events.
    ///
    /// O(memory returned), and O(n) in names and chosen PIDs. Other threads that allocate, or use
    /// names, may wait meanwhile. For programs that have had many more processes than they will
    /// have soon.
    pub fn release_memory(&self) {
        // Not dropped inside: the cache is in use there.
        let own = local::with(&self.shared, |queue| queue.cache.borrow_mut().take_cells());
        drop(own);
        self.shared.census.pool.release();
        self.shared.names.release();
        self.shared.census.registry.release();
        self.shared.closing_inbox.release();
        self.shared.revoked.release();
        self.shared.release_timers();
        ganger_mpsc::node_cache::clear();
        trim_heap();
    }

    /// Stops the scheduler: refuses submits from outside of its processes, cancels every process,
    /// serves the processes and those started by their clean-up, until all have ended, and
    /// terminates the rest when `deadline` has passed.
    ///
    /// Blocks for at most `deadline` and 50 ms. A second call waits for the end of the first, and
    /// returns the same report. Of several deadlines, the earliest counts.
    ///
    /// A step of another scheduler may call it, and keeps its worker for the whole time.
    ///
    /// # Errors
    /// [`StopError::Inside`] when it would wait for its own caller: a step, `init`, `close`, a
    /// hook, a handler, a destructor or a `tracing` subscriber, on a thread of this scheduler or in
    /// a submission to it. The call then has no effect. [`begin_stop`](Self::begin_stop) may be
    /// called there.
    ///
    /// [`StopError::NotStarted`], with the report, when the scheduler has never been started. The
    /// stop has happened then.
    #[cfg_attr(feature = "sim", track_caller)]
    pub fn stop(&self, deadline: Duration) -> Result<StopReport, StopError> {
        self.shared.stop(deadline)
    }

    /// Begins to stop the scheduler, and returns at once, on any thread, and inside of any call.
    ///
    /// Submits from outside of its processes are refused from now on. A thread of the scheduler's
    /// own does the rest of [`stop`](Self::stop). A later `stop` from outside waits for its end,
    /// and returns its report. Of several deadlines, the earliest counts. When the system refuses
    /// the thread, the deadline passes at once.
    ///
    /// ```
    /// # use ganger_proc_api::{BoxError, Context, Events, Process, StepOutput, StepResult};
    /// # use ganger_sched::{Handle, Scheduler};
    /// # use std::time::Duration;
    /// struct Last(Handle);
    /// impl Process for Last {
    ///     fn step(
    ///         &mut self,
    ///         _: &Context,
    ///         _: &mut Events<'_>,
    ///         out: &mut StepOutput,
    ///     ) -> StepResult {
    ///         self.0.begin_stop(Duration::from_secs(1));
    ///         out.done(());
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let scheduler = Scheduler::start_default()?;
    /// scheduler.spawn(Last(scheduler.handle()))?.wait();
    /// let report = scheduler.stop(Duration::from_secs(1))?;
    /// assert_eq!(report.forced, 0);
    /// # Ok::<(), BoxError>(())
    /// ```
    pub fn begin_stop(&self, deadline: Duration) {
        self.shared.begin_stop(deadline);
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("host", &self.shared.host)
            .field("node", &self.shared.node)
            .field("live", &self.shared.census.live.get())
            .finish_non_exhaustive()
    }
}

/// A live process, as it was at the moment of the look.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessInfo {
    /// Its PID.
    pub pid: Pid,
    /// Where it is in its life.
    pub state: ProcessState,
    /// The entry point.
    pub method: Symbol,
    /// How often it has been upgraded or restarted in place, modulo 2^15.
    pub incarnation: u32,
    /// Whether it has been asked to finish.
    pub is_cancelled: bool,
    /// Whether the process takes no further step.
    pub is_terminating: bool,
    /// The name of its type; for an actor, of the actor's type.
    pub type_name: &'static str,
    /// Its names, in the order of their texts.
    pub names: Vec<Box<str>>,
    /// The process that has started it: by its context, or in its step or `init`. The parent may
    /// have ended.
    pub parent: Option<Pid>,
    /// How many events its steps have left for later steps, at most 1,048,575.
    pub left: usize,
    /// How many messages and control messages no step has taken; known where mailboxes have a
    /// limit.
    pub queued: Option<usize>,
    /// How long ago its last step began, to about ten milliseconds, up to twelve days. None before
    /// the first step.
    pub ran_before: Option<Duration>,
}

impl ProcessInfo {
    pub(crate) fn of(task: &Task) -> Self {
        let ProcessCell {
            shared,
            about,
            origin,
            ..
        } = &**task;
        let now = task.state.snapshot();
        let time = nanos(Decider::time().unwrap_or_else(|| shared.timing.time.read()));
        Self {
            pid: task.pid(),
            state: now.state(),
            method: task.method,
            incarnation: now.incarnation(),
            is_cancelled: now.is_cancelled(),
            is_terminating: now.is_terminating(),
            type_name: about.type_name(),
            names: shared.names.of(task.pid()),
            parent: origin.parent().map(|id| Pid::new(shared.host, id)),
            left: about.left(),
            queued: task.limit().map(|_| task.room.messages()),
            ran_before: about.ran_before(time).map(Duration::from_nanos),
        }
    }
}

/// Has the C library return free memory to the system.
#[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
fn trim_heap() {
    unsafe extern "C" {
        safe fn malloc_trim(keep: usize) -> i32;
    }
    // The result says whether any memory was released.
    let _returned = malloc_trim(0);
}

/// Does nothing: the C library has no call for it here.
#[cfg(not(all(target_os = "linux", target_env = "gnu", not(miri))))]
fn trim_heap() {}
