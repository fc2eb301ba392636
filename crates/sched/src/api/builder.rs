//! Setting a scheduler up.

use crate::api::handle::Handle;
#[cfg(feature = "observe")]
use crate::base::level::Observe;
#[cfg(feature = "observe")]
use crate::base::recorder::Recorder;
#[cfg(feature = "observe")]
use crate::base::tracer::StepTracer;
use crate::config::{BuildError, Config, MAX_LIMIT, MAX_WORKERS, in_range};
use crate::process::remote::Remote;
use crate::reports::dead_letters::DeadLetters;
use crate::reports::failures::{FailureReport, OnFailure};
use crate::reports::life::LifeWatch;
use crate::runtime::driver::Driver;
use crate::runtime::shared::{Above, Shared};
use crate::send::timers::make_timers;
use crate::stop;
use ganger_os::{Pinning, Pins, backtraces};
use ganger_proc_api::{EnvelopeReceiver, HostName, Lifecycle, NodeName};
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Parts of the names of functions around the turns of processes. A backtrace ends before them.
const RUNS_PROCESSES: [&str; 3] = [
    "ganger_sched::turn::",
    "ganger_sched::worker::",
    "ganger_sched::runtime::turn_place::",
];

/// Builds a [`Scheduler`](crate::Scheduler). Every setting has a working default.
///
/// ```
/// use ganger_sched::Scheduler;
/// let scheduler = Scheduler::builder().workers(2).host("orders").start()?;
/// assert_eq!(scheduler.stats().workers, 2);
///
/// let error = Scheduler::builder().workers(0).build().unwrap_err();
/// assert_eq!(error.to_string(), "workers is 0; it must be from 1 to 4096");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a builder does nothing until `start` or `build` is called"]
pub struct Builder {
    workers: Option<usize>,
    host: String,
    node: Option<String>,
    config: Config,
    driver: Option<Arc<dyn Driver>>,
    remote: Option<Arc<dyn Remote>>,
    additions: Vec<Addition>,
}

/// A change that a crate above the scheduler makes to a new scheduler.
pub(super) type Addition = Box<dyn FnOnce(&Handle) + Send>;

impl Default for Builder {
    fn default() -> Self {
        Self {
            workers: None,
            host: "main".to_owned(),
            node: None,
            config: Config::default(),
            driver: None,
            remote: None,
            additions: Vec::new(),
        }
    }
}

impl Builder {
    /// Creates a builder with the defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how many worker threads run steps. Default: as many as the machine runs at once
    /// (`std::thread::available_parallelism`).
    pub fn workers(self, workers: usize) -> Self {
        Self {
            workers: Some(workers),
            ..self
        }
    }

    /// Sets the name of the scheduler's host: the first part of its processes' PIDs. Default:
    /// `main`.
    pub fn host(self, host: impl Into<String>) -> Self {
        Self {
            host: host.into(),
            ..self
        }
    }

    /// Sets the name of the scheduler's node: PIDs with this node name are local. Default: none.
    pub fn node(self, node: impl Into<String>) -> Self {
        Self {
            node: Some(node.into()),
            ..self
        }
    }

    /// Sets how many processes a worker's deque holds before it grows. From 1 to 2^24. Default:
    /// 256.
    pub fn deque_capacity(self, processes: usize) -> Self {
        self.with(|config| config.deque_capacity = processes)
    }

    /// Sets the most new events shown to one step. From 1 to 2^24. Default: 256.
    ///
    /// A process with three times as many events left, or more, when a worker picks it may have up
    /// to 64 turns in a row. The process begins no such turn after 100 us.
    pub fn event_batch(self, events: usize) -> Self {
        self.with(|config| config.event_batch = events)
    }

    /// Sets how many processes a worker moves to its own deque when it takes a process from the
    /// global queue. Up to 2^16. Default: 16.
    pub fn global_batch(self, processes: usize) -> Self {
        self.with(|config| config.global_batch = processes)
    }

    /// Sets how a worker waits for work: below `spin` empty looks it spins, below `yields` it
    /// yields its thread, then it blocks. Default: 4 and 4, so the worker never yields. After a
    /// wait of less than 50 us a worker spins for 256 more looks before it blocks.
    ///
    /// Where other programs compete for the processors, a thread that yields gets its processor
    /// back a time slice later, after milliseconds, and is not woken meanwhile because it is awake.
    /// So `yields` above `spin` is for machines without other programs.
    pub fn spin_limits(self, spin: u32, yields: u32) -> Self {
        self.with(|config| (config.spin_looks, config.yield_looks) = (spin, yields))
    }

    /// Sets after how many picks a worker makes a rotation, at the latest: it looks at the global
    /// queue first, and takes the oldest process of its own deque next. Where steps are long it
    /// does so earlier. From 1 up. Default: 127.
    pub fn rotation(self, picks: u32) -> Self {
        self.with(|config| config.rotation = picks)
    }

    /// Sets the longest time of a worker without a [rotation](Self::rotation): the next pick is a
    /// rotation. Also sets how long a step lasts before
    /// [`should_yield`](ganger_proc_api::Context::should_yield) is true, when other processes wait.
    /// With zero, every pick is a rotation. Default: 10 ms.
    pub fn chain_limit(self, limit: Duration) -> Self {
        self.with(|config| config.chain_limit = limit)
    }

    /// Sets how long a process woken by a running step is left to the step's own worker while other
    /// workers sleep, if no other process is queued there. From 1 us to 2 ms. Default: 50 us.
    ///
    /// Where steps were short for a while, the monitor notices a long step later: after at most 4
    /// ms.
    pub fn hand_off_delay(self, delay: Duration) -> Self {
        self.with(|config| config.hand_off_delay = delay)
    }

    /// Sets how long a step may block its thread, and how long it may compute, before another
    /// thread takes its worker's place. The thread does so when processes wait and no other worker
    /// is free for them. The monitor may take up to 4.5 ms more to notice. Default: 1 ms and 10 ms.
    pub fn step_limits(self, blocked: Duration, long: Duration) -> Self {
        self.with(|config| (config.blocked_step, config.long_step) = (blocked, long))
    }

    /// Sets the least time between two reports of steps that kept others waiting, for each method.
    /// A report says how many such steps of its method had no report before. All are counted, and
    /// the last are in [`long_steps`](crate::Handle::long_steps). Beyond 256 methods at a time,
    /// later methods have no report. Default: 1 s; with zero each step is reported.
    pub fn report_interval(self, interval: Duration) -> Self {
        self.with(|config| config.report_interval = interval)
    }

    /// Writes one line a period to the standard error stream: the present work of the scheduler,
    /// and its work since the line before. Default: the period in the environment's
    /// `GANGER_REPORT`, such as `1s` or `500ms`, or else no line. Zero means no line, whatever the
    /// environment says.
    ///
    /// A thread of its own wakes once a period; without a period no thread is started. A simulation
    /// writes no line.
    ///
    /// | column | meaning |
    /// |---|---|
    /// | `live`, `workers` to `asleep` | now: processes; worker threads, and their states |
    /// | `spares`, `relieved` | spare threads; threads in a blocking step, whose places they have |
    /// | `ready`, `global` | ready processes in all queues; in the global queue: overload if long |
    /// | `timers`, `fired` | waiting timers; fired timers since the line before |
    /// | `turns` to `failed` | since the line before: picks, steps, commands, processes |
    /// | `undelivered` | dead letters since the line before |
    /// | `steals`, `sleeps` | thefts, sleeps of workers |
    /// | `blocked`, `long` | steps that blocked or computed while processes waited |
    /// | `turns=[ … ]` | turns of each worker: a zero beside large numbers is a stuck worker |
    ///
    /// ```
    /// use ganger_sched::Scheduler;
    /// use std::time::Duration;
    ///
    /// let scheduler = Scheduler::builder().report_every(Duration::from_secs(10)).start()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn report_every(self, period: Duration) -> Self {
        self.with(|config| config.report_every = Some(period))
    }

    /// Sets whether the report of a step that keeps others waiting says where the step is, on
    /// Linux, on x86-64 and AArch64; elsewhere [`build`](Self::build) refuses it. Default: no.
    /// Needs the feature `backtraces`.
    ///
    /// The thread of the reported step gets a signal ([`backtrace_signal`](Self::backtrace_signal))
    /// and copies its registers and the innermost 64 KiB of its stack in the handler, without a
    /// lock, an allocation or a call. The writer of the report waits for the copy, for at most 10
    /// ms, and turns it into text, which takes a moment with much debug information. The report has
    /// no backtrace when the step is over by then, when the thread was given no processor in time
    /// or blocks the signal, or when the signal's handler has been replaced.
    ///
    /// Consequences for steps:
    /// - System calls that do not restart after a signal return `EINTR`, whatever the handler's
    ///   flags: `poll`, `select`, `epoll_wait`, `nanosleep`, `usleep`, and calls on sockets with a
    ///   timeout (`man 7 signal` lists them). The standard library's sleeps, locks, reads and
    ///   writes restart by themselves; C libraries may not.
    /// - On a stack other than the thread's own (a coroutine's), only the innermost function is
    ///   seen.
    /// - Without symbols, in a stripped program, the report shows addresses. Lines need debug
    ///   information (`debug = "line-tables-only"`).
    ///
    /// Each thread of the scheduler needs 64 KiB for it.
    ///
    /// ```
    /// use ganger_sched::{BuildError, Scheduler};
    /// let built = Scheduler::builder().long_step_backtraces(true).build();
    /// match built {
    ///     Ok(_) => assert!(cfg!(target_os = "linux")),
    ///     Err(error) => assert!(matches!(error, BuildError::Backtraces(_))),
    /// }
    /// ```
    #[cfg(feature = "backtraces")]
    pub fn long_step_backtraces(self, are_taken: bool) -> Self {
        self.with(|config| config.long_step_backtraces = are_taken)
    }

    /// Sets whether profiles of the steps may be made, on Linux, on x86-64 and AArch64; elsewhere
    /// [`build`](Self::build) refuses it. Default: no. Needs the feature `backtraces`.
    ///
    /// A thread that makes a profile, by `Observer::profile` of `ganger-observe`, asks the busy
    /// workers where in the code they are, some 99 times a second. A worker copies its registers
    /// and its stack in the handler of a signal;
    /// [`long_step_backtraces`](Self::long_step_backtraces) lists the consequences for steps.
    /// Without a profile under way, no signal is sent. Each thread of the scheduler needs 64 KiB
    /// for it.
    ///
    /// ```
    /// use ganger_sched::{BuildError, Scheduler};
    /// match Scheduler::builder().profiles(true).build() {
    ///     Ok(scheduler) => assert!(scheduler.step_looks().is_ok()),
    ///     Err(error) => assert!(matches!(error, BuildError::Backtraces(_))),
    /// }
    /// ```
    #[cfg(feature = "backtraces")]
    pub fn profiles(self, are_allowed: bool) -> Self {
        self.with(|config| config.profiles = are_allowed)
    }

    /// Sets the real-time signal that asks a thread for its place, when backtraces are taken or
    /// profiles made: from `SIGRTMIN` to `SIGRTMAX`. Default: `SIGRTMAX - 1`, the number 63. Needs
    /// the feature `backtraces`.
    ///
    /// The handler serves the whole program: all schedulers share it, and it stays when they are
    /// gone. [`build`](Self::build) refuses a signal that other code handles or ignores.
    #[cfg(feature = "backtraces")]
    pub fn backtrace_signal(self, signal: i32) -> Self {
        self.with(|config| config.backtrace_signal = Some(signal))
    }

    /// Sets the most threads besides the workers, to take the places of workers whose steps block
    /// or compute for long. They are started when needed. Up to 4096. Default: 64; with 0 such a
    /// step costs its worker.
    pub fn max_spares(self, threads: usize) -> Self {
        self.with(|config| config.max_spares = threads)
    }

    /// Sets for how long a thread besides the workers waits to be needed again before it ends.
    /// Default: 10 s.
    pub fn keep_spares(self, time: Duration) -> Self {
        self.with(|config| config.keep_spares = time)
    }

    /// Sets the most processes alive at a time; exact under concurrent submits. From 1 up. Default:
    /// none.
    pub fn max_processes(self, processes: usize) -> Self {
        self.with(|config| config.max_processes = Some(processes))
    }

    /// Sets the most messages in a process's mailbox; further messages are refused with `Full`, or
    /// their senders wait ([`Address::send_blocking`](crate::Address::send_blocking)). The mailbox
    /// may hold as many control messages as well. Completions, cancellations and upgrades are never
    /// refused. From 1 up; a limit above 2^31 - 1 counts as 2^31 - 1. Default: none. A process may
    /// have a limit of its own ([`Spawner::mailbox_limit`](crate::Spawner::mailbox_limit)).
    pub fn mailbox_limit(self, messages: usize) -> Self {
        self.with(|config| config.mailbox_limit = Some(messages.min(MAX_LIMIT)))
    }

    /// Sets how long dropping the scheduler waits for processes to finish. Default: 5 s.
    pub fn shutdown_deadline(self, deadline: Duration) -> Self {
        self.with(|config| config.shutdown_deadline = deadline)
    }

    /// Sets the start of the threads' names; `-0`, `-1`, … follows for workers and spares,
    /// `-monitor` for the monitor. Default: `ganger-worker`.
    pub fn thread_name(self, prefix: impl Into<String>) -> Self {
        let prefix = prefix.into();
        self.with(|config| config.thread_name = prefix)
    }

    /// Sets the worker threads' stack size in bytes. Default: the standard library's.
    pub fn stack_size(self, bytes: usize) -> Self {
        self.with(|config| config.stack_size = Some(bytes))
    }

    /// Pins each worker to a core, on Linux; elsewhere [`build`](Self::build) refuses anything but
    /// [`Pinning::Off`]. Default: `Off`.
    ///
    /// Worth a try where the scheduler has its cores to itself and no more workers than cores;
    /// elsewhere a pinned worker waits for its core while other cores are free. The core belongs to
    /// the worker's place: a spare thread in the place is pinned to it, and the thread whose step
    /// blocks or takes long may run on any core that the calling thread of `build` could use. The
    /// monitor is not pinned. Threads started by a step inherit its worker's core.
    ///
    /// If the system refuses a core later, because the process's cpuset has shrunk, the worker
    /// continues without it, and a report says so.
    ///
    /// ```
    /// use ganger_sched::{Pinning, Scheduler};
    /// # if cfg!(target_os = "linux") {
    /// let scheduler = Scheduler::builder().pin_workers(Pinning::RoundRobin).build()?;
    ///
    /// let none = Scheduler::builder().pin_workers(Pinning::Cores(vec![100_000])).build();
    /// assert!(none.unwrap_err().to_string().contains("core 100000 does not exist"));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pin_workers(self, pinning: Pinning) -> Self {
        self.with(|config| config.pinning = pinning)
    }

    /// Sets the hooks for the starts and ends of processes. Default: none.
    pub fn lifecycle(self, lifecycle: impl Lifecycle) -> Self {
        self.with(|config| config.lifecycle = Some(Arc::new(lifecycle)))
    }

    /// Sets the watch, which is notified of the starts, upgrades and ends of processes. A later
    /// call replaces the watch. The crate for observation hands these events to subscribers.
    pub fn watch_life(self, watch: Arc<dyn LifeWatch>) -> Self {
        self.with(|config| config.life = Some(watch))
    }

    /// Sets the sink for messages that no process takes and no sender gets back. Default: the
    /// scheduler only counts them (`Stats::total.undelivered`).
    pub fn dead_letters(self, sink: Arc<dyn DeadLetters>) -> Self {
        self.with(|config| config.dead_letters = Some(sink))
    }

    /// Calls `report` for each failure that nothing else in the program learns of: see
    /// [`FailureReport`]. Default: a line now and then.
    ///
    /// A report is made
    ///
    /// - when a process has failed or panicked, by itself or through a link, and nothing watches
    ///   it: no monitor, no link, no supervisor, and no [`ProcessHandle`]. With a handle, the
    ///   report is made when the handle is dropped and the reason has not been taken;
    /// - when an actor without [`completed`](ganger_proc_api::Actor::completed) gets an error as
    ///   the answer to a command or question;
    /// - when a dropped [`Answer`](crate::Answer) is an error, and was not looked at.
    ///
    /// The line is an event of `tracing`, at `error`, with the target `ganger::failure`. On a
    /// thread without a subscriber, the line goes to the standard error stream, and then without
    /// the message of a panic, which the panic hook has written there. At most one line a second is
    /// written, with the number of failures left out; so is one at the end of a stop.
    ///
    /// `report` gets all of them, contained, on the thread that ends the process, or drops the
    /// handle or the answer. This thread may hold locks of the program's, so `report` should take
    /// no lock that other threads hold for long.
    ///
    /// ```
    /// use ganger_proc_api::{BoxError, process_fn};
    /// use ganger_sched::Scheduler;
    /// use std::sync::mpsc;
    ///
    /// let (tell, told) = mpsc::channel();
    /// let scheduler = Scheduler::builder()
    ///     .on_failure(move |report| drop(tell.send(report.to_string())))
    ///     .start()?;
    /// drop(scheduler.spawn(process_fn(|_, _, _| Err("the disk is full".into())))?);
    /// let line = told.recv()?;
    /// assert!(line.ends_with("failed, and no process monitors it: the disk is full"));
    /// # Ok::<(), BoxError>(())
    /// ```
    ///
    /// [`ProcessHandle`]: crate::ProcessHandle
    /// [`FailureReport`]: crate::FailureReport
    pub fn on_failure(self, report: impl Fn(&FailureReport) + Send + Sync + 'static) -> Self {
        self.with(|config| config.on_failure = OnFailure::Call(Arc::new(report)))
    }

    /// Reports no failures at all: see [`on_failure`](Self::on_failure). The default in a
    /// simulation.
    pub fn quiet_failures(self) -> Self {
        self.with(|config| config.on_failure = OnFailure::Quiet)
    }

    /// Takes the envelopes whose PID names another host or node. Default: no router; they come back
    /// with `HostNotFound` or `NodeNotFound`.
    pub fn router(self, router: Arc<dyn EnvelopeReceiver>) -> Self {
        self.with(|config| config.router = Some(router))
    }

    /// Takes the monitors, links and requests for processes whose PID names another host or node:
    /// for crates that connect nodes. Messages go to the [router](Self::router). Default: no
    /// remote; these calls are refused, or say that there is no such process.
    ///
    /// With a remote, `monitor`, `demonitor`, `cancel` and `terminate` of contexts and handles take
    /// PIDs of any node, and so do links, watches and ends of `ganger-link`. A notice of another
    /// node's process may have the cause
    /// [`NoConnection`](ganger_proc_api::ExitCause::NoConnection).
    pub fn remote(self, remote: Arc<dyn Remote>) -> Self {
        Self {
            remote: Some(remote),
            ..self
        }
    }

    /// Sets where the scheduler's threads wait for the system. Default: they wait for each other
    /// alone.
    ///
    /// An idle thread of the scheduler waits in the driver, one thread at a time. Busy workers poll
    /// it at rotations, and the monitor when no worker has for 2 to 4 ms. A simulation does not use
    /// it.
    pub fn driver(self, driver: impl Driver) -> Self {
        Self {
            driver: Some(Arc::new(driver)),
            ..self
        }
    }

    /// Has `add` called with the scheduler when it is built, for a crate that adds commands or
    /// extensions to it.
    #[doc(hidden)]
    pub fn when_built(mut self, add: impl FnOnce(&Handle) + Send + 'static) -> Self {
        self.additions.push(Box::new(add));
        self
    }

    /// Sets the highest level of counting and measuring: [`Handle::set_observe`] changes the level
    /// up to this limit while the scheduler runs. Default: [`Observe::Off`].
    #[cfg(feature = "observe")]
    pub fn observe(self, level: Observe) -> Self {
        self.with(|config| config.observe = level)
    }

    /// Shows each step to a tracer, before the step begins and when the step is over. A later call
    /// replaces the tracer. The scheduler counts, too: see [`observe`](Self::observe).
    ///
    /// The messages, starts, wakes and yields of a traced step are traced back to it: the steps
    /// that they lead to have it as a [`Cause`](crate::Cause).
    #[cfg(feature = "observe")]
    pub fn trace_steps(self, tracer: Arc<dyn StepTracer>) -> Self {
        self.with(|config| config.tracer = Some(tracer))
    }

    /// Records events in rings of memory: see [`Recorder`] for the costs, and [`Handle::recording`]
    /// for the way out. Counts as well, as [`observe`](Self::observe) does with
    /// [`Observe::Counts`].
    #[cfg(feature = "observe")]
    pub fn record(self, recorder: Recorder) -> Self {
        self.with(|config| config.record = Some(recorder))
    }

    /// Allows [`Handle::suspend`], [`Handle::resume`] and [`Handle::inspect`], which refuse by
    /// default.
    #[cfg(feature = "observe")]
    pub fn allow_interventions(self) -> Self {
        self.with(|config| config.interventions = true)
    }

    /// Checks promises while the scheduler runs, and ends the program at a broken promise: see
    /// [`check`](crate::check).
    #[cfg(feature = "check")]
    #[doc(hidden)]
    pub fn check_promises(self) -> Self {
        self.with(|config| config.is_checked = true)
    }

    /// Stops the clock of this scheduler. Under a tool that counts instructions each step lasts
    /// long, and the count would include the workers' reactions to long steps.
    #[cfg(feature = "internals")]
    #[doc(hidden)]
    pub fn still_clock(self) -> Self {
        self.with(|config| config.clock_is_still = true)
    }

    /// Makes a handle to a scheduler that is not started, and the additions to apply first.
    pub(super) fn into_parts(self) -> Result<(Handle, Vec<Addition>), BuildError> {
        let cores = || thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let workers = self.workers.unwrap_or_else(|| cores().min(MAX_WORKERS));
        in_range("workers", workers, 1, MAX_WORKERS)?;
        self.config.check()?;
        let pins = Pins::new(&self.config.pinning)?;
        let (slots, signal) = (
            workers + self.config.max_spares,
            self.config.backtrace_signal,
        );
        let are_needed = self.config.long_step_backtraces || self.config.profiles;
        let backtraces = are_needed.then(|| backtraces(signal, slots, &RUNS_PROCESSES));
        let host = HostName::new(&self.host).map_err(|error| BuildError::Name {
            what: "host",
            name: self.host,
            error,
        })?;
        let node = self.node.map(|name| {
            NodeName::new(&name).map_err(|error| BuildError::Name {
                what: "node",
                name,
                error,
            })
        });
        let shared = Shared::new(
            workers,
            (host, node.transpose()?),
            self.config,
            self.driver,
            pins,
            backtraces.transpose()?,
            Above {
                end_queued: stop::end_after_halt,
                make_timers,
            },
        );
        if let Some(remote) = self.remote {
            // The scheduler is new.
            let _first = shared.remote.set(remote);
        }
        Ok((Handle { shared }, self.additions))
    }

    fn with<R>(mut self, set: impl FnOnce(&mut Config) -> R) -> Self {
        set(&mut self.config);
        self
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("workers", &self.workers)
            .field("host", &self.host)
            .field("node", &self.node)
            .field("max_processes", &self.config.max_processes)
            .field("mailbox_limit", &self.config.mailbox_limit)
            .finish_non_exhaustive()
    }
}
