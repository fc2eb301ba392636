//! Setting a scheduler up.

use crate::api::handle::Handle;
#[cfg(feature = "observe")]
use crate::base::level::Observe;
#[cfg(feature = "observe")]
use crate::base::recorder::Recorder;
#[cfg(feature = "observe")]
use crate::base::tracer::StepTracer;
use crate::config::{BuildError, Config, MAX_LIMIT, MAX_WORKERS, in_range};
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

/// Parts of the names of functions that give processes their turns. A backtrace ends before them.
const RUNS_PROCESSES: [&str; 3] = [
    "ganger_sched::turn::",
    "ganger_sched::worker::",
    "ganger_sched::runtime::turn_place::",
];

/// Builds a [`Scheduler`](crate::Scheduler). Every setting has a default that just works.
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
    additions: Vec<Addition>,
}

/// What a crate above the scheduler does to a new one.
pub(super) type Addition = Box<dyn FnOnce(&Handle) + Send>;

impl Default for Builder {
    fn default() -> Self {
        Self {
            workers: None,
            host: "main".to_owned(),
            node: None,
            config: Config::default(),
            driver: None,
            additions: Vec::new(),
        }
    }
}

impl Builder {
    /// A builder with the defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many worker threads run steps. Default: as many as the machine runs at once
    /// (`std::thread::available_parallelism`).
    pub fn workers(self, workers: usize) -> Self {
        Self {
            workers: Some(workers),
            ..self
        }
    }

    /// The name of the host that the scheduler is: the first part of its processes' PIDs. Default:
    /// `main`.
    pub fn host(self, host: impl Into<String>) -> Self {
        Self {
            host: host.into(),
            ..self
        }
    }

    /// The name of the node that the scheduler is on, so that PIDs with that node's name are known
    /// to be local. Default: none.
    pub fn node(self, node: impl Into<String>) -> Self {
        Self {
            node: Some(node.into()),
            ..self
        }
    }

    /// How many processes a worker's deque holds before it grows. From 1 to 2^24. Default: 256.
    pub fn deque_capacity(self, processes: usize) -> Self {
        self.with(|config| config.deque_capacity = processes)
    }

    /// The most new events that one step is shown. From 1 to 2^24. Default: 256.
    ///
    /// A process that has three times as many left, or more, when a worker picks it may have up to
    /// 64 turns in a row, and begins none after 100 us.
    pub fn event_batch(self, events: usize) -> Self {
        self.with(|config| config.event_batch = events)
    }

    /// How many processes a worker moves to its own deque when it takes one from the global queue.
    /// Up to 2^16. Default: 16.
    pub fn global_batch(self, processes: usize) -> Self {
        self.with(|config| config.global_batch = processes)
    }

    /// How a worker waits for work: below `spin` empty looks it spins, below `yields` it yields its
    /// thread, then it blocks. Default: 4 and 4, so that it never yields. After a wait of less than
    /// 50 us a worker spins for 256 looks more, before it blocks.
    ///
    /// Where other programs compete for the processors, a thread that yields gets its own back a
    /// time slice later, which is milliseconds, and is not woken meanwhile because it is awake. So
    /// `yields` above `spin` is for machines that run this program alone.
    pub fn spin_limits(self, spin: u32, yields: u32) -> Self {
        self.with(|config| (config.spin_looks, config.yield_looks) = (spin, yields))
    }

    /// After how many picks a worker makes a rotation, at the latest: it looks at the global queue
    /// first, and takes the oldest process of its own deque next. Where steps are long it does so
    /// earlier. From 1 up. Default: 127.
    pub fn rotation(self, picks: u32) -> Self {
        self.with(|config| config.rotation = picks)
    }

    /// How long a worker goes without a [rotation](Self::rotation) at the most: the next pick is
    /// one. Also how long a step lasts before
    /// [`should_yield`](ganger_proc_api::Context::should_yield) is true, when others wait.
    /// With zero, every pick is a rotation. Default: 10 ms.
    pub fn chain_limit(self, limit: Duration) -> Self {
        self.with(|config| config.chain_limit = limit)
    }

    /// How long a process that a running step has woken is left to the step's own worker while
    /// other workers sleep, if it is the only one. From 1 us to 2 ms. Default: 50 us.
    ///
    /// Where steps were short for a while, the monitor notices a long one later: after 4 ms at the
    /// most.
    pub fn hand_off_delay(self, delay: Duration) -> Self {
        self.with(|config| config.hand_off_delay = delay)
    }

    /// How long a step may block its thread, and how long it may compute, before another thread
    /// takes its worker's place. That happens when processes wait and no other worker is free for
    /// them. The monitor may take up to 4.5 ms more to notice. Default: 1 ms and 10 ms.
    pub fn step_limits(self, blocked: Duration, long: Duration) -> Self {
        self.with(|config| (config.blocked_step, config.long_step) = (blocked, long))
    }

    /// The least time between two reports of steps that kept others waiting, for each method. A
    /// report says how many such steps of its method had none before it. All are counted, and the
    /// last are in [`long_steps`](crate::Handle::long_steps). Of more than 256 methods at a time
    /// those that come last have no report. Default: 1 s; with zero each step is reported.
    pub fn report_interval(self, interval: Duration) -> Self {
        self.with(|config| config.report_interval = interval)
    }

    /// Writes one line a period to the standard error stream: what the scheduler is doing, and what
    /// it has done since the line before. The guide says what each column means. Default: the
    /// period in the environment's `GANGER_REPORT`, such as `1s` or `500ms`, or else no line. Zero
    /// is no line, whatever the environment says.
    ///
    /// A thread of its own wakes once a period; without a period there is none. A simulation writes
    /// no line.
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

    /// Whether the report of a step that keeps others waiting says where the step is, on Linux, on
    /// x86-64 and AArch64; elsewhere [`build`](Self::build) refuses it. Default: no. Needs the
    /// feature `backtraces`.
    ///
    /// The thread whose step is reported gets a signal
    /// ([`backtrace_signal`](Self::backtrace_signal)) and copies its registers and the innermost 64
    /// KiB of its stack in the handler, without a lock, an allocation or a call. The thread that
    /// writes the report waits for that, 10 ms at the most, and turns it into text, which takes a
    /// moment where there is much debug information. There is no backtrace when the step is over
    /// by then, when the thread was given no processor in time or blocks the signal, or when the
    /// signal's handler has been replaced.
    ///
    /// What a step has to know:
    /// - Calls that the system does not begin again after a signal return `EINTR`, whatever the
    ///   handler's flags: `poll`, `select`, `epoll_wait`, `nanosleep`, `usleep`, and calls on
    ///   sockets with a timeout (`man 7 signal` lists them). The standard library's sleeps, locks,
    ///   reads and writes begin again by themselves; C libraries may not.
    /// - On a stack that is not the thread's own (a coroutine's), only the innermost function is
    ///   seen.
    /// - Without symbols, in a program that was stripped, there are addresses. Lines need debug
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

    /// Whether profiles of the steps may be made, on Linux, on x86-64 and AArch64; elsewhere
    /// [`build`](Self::build) refuses it. Default: no. Needs the feature `backtraces`.
    ///
    /// A thread that makes a profile, by `Observer::profile` of `ganger-observe`, asks the workers
    /// that are not idle where they are, some 99 times a second. A worker copies its registers and
    /// its stack in the handler of a signal;
    /// [`long_step_backtraces`](Self::long_step_backtraces) says what a step has to know of the
    /// signal. While no profile is made, there is no signal. Each thread of the scheduler needs 64
    /// KiB for it.
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

    /// Which real-time signal asks a thread where it is, when backtraces are taken or profiles
    /// made: from `SIGRTMIN` to `SIGRTMAX`. Default: `SIGRTMAX - 1`, which is 63. Needs the feature
    /// `backtraces`.
    ///
    /// The handler is the whole program's; all schedulers share it, and it stays when they are
    /// gone. [`build`](Self::build) refuses a signal that other code handles or ignores.
    #[cfg(feature = "backtraces")]
    pub fn backtrace_signal(self, signal: i32) -> Self {
        self.with(|config| config.backtrace_signal = Some(signal))
    }

    /// How many threads there may be beside the workers, to take the places of those whose steps
    /// block or compute for long. They are started when they are needed. Up to 4096. Default: 64;
    /// with 0 such a step costs the worker that runs it.
    pub fn max_spares(self, threads: usize) -> Self {
        self.with(|config| config.max_spares = threads)
    }

    /// For how long such a thread waits to be needed again before it ends. Default: 10 s.
    pub fn keep_spares(self, time: Duration) -> Self {
        self.with(|config| config.keep_spares = time)
    }

    /// The most processes that may be alive at a time; exact under concurrent submits. From 1 up.
    /// Default: none.
    pub fn max_processes(self, processes: usize) -> Self {
        self.with(|config| config.max_processes = Some(processes))
    }

    /// The most messages that a process's mailbox may hold; further ones are refused with `Full`,
    /// or wait ([`Address::send_blocking`](crate::Address::send_blocking)). It may hold as many
    /// control messages beside them. Completions, cancellations and upgrades are never refused.
    /// From 1 up; a limit above 2^31 - 1 counts as 2^31 - 1. Default: none. One process may have
    /// another one ([`Spawner::mailbox_limit`](crate::Spawner::mailbox_limit)).
    pub fn mailbox_limit(self, messages: usize) -> Self {
        self.with(|config| config.mailbox_limit = Some(messages.min(MAX_LIMIT)))
    }

    /// How long dropping the scheduler waits for processes to finish. Default: 5 s.
    pub fn shutdown_deadline(self, deadline: Duration) -> Self {
        self.with(|config| config.shutdown_deadline = deadline)
    }

    /// The start of the threads' names; `-0`, `-1`, … follows for workers and spares, `-monitor`
    /// for the monitor. Default: `ganger-worker`.
    pub fn thread_name(self, prefix: impl Into<String>) -> Self {
        let prefix = prefix.into();
        self.with(|config| config.thread_name = prefix)
    }

    /// The worker threads' stack size in bytes. Default: that of the standard library.
    pub fn stack_size(self, bytes: usize) -> Self {
        self.with(|config| config.stack_size = Some(bytes))
    }

    /// Pins each worker to a core, on Linux; elsewhere [`build`](Self::build) refuses anything but
    /// [`Pinning::Off`]. Default: `Off`.
    ///
    /// Worth a try where the scheduler has its cores to itself and no more workers than cores;
    /// where it has not, a pinned worker waits for its core while others are free. The core belongs
    /// to the worker's place: a spare thread that takes the place is pinned to it, and the thread
    /// whose step blocks or takes long may run on any core that the calling thread of `build` could
    /// use. The monitor is not pinned. Threads that a step starts inherit its worker's core.
    ///
    /// Should the system refuse a core later, because the process's cpuset has shrunk, the worker
    /// goes on without it, which is reported.
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

    /// Hooks that are told when processes start and end. Default: none.
    pub fn lifecycle(self, lifecycle: impl Lifecycle) -> Self {
        self.with(|config| config.lifecycle = Some(Arc::new(lifecycle)))
    }

    /// Tells a watch of the starts, upgrades and ends of processes. A later call takes the place of
    /// this one. The crate for observation hands them to subscribers.
    pub fn watch_life(self, watch: Arc<dyn LifeWatch>) -> Self {
        self.with(|config| config.life = Some(watch))
    }

    /// Is told of the messages that no process takes and no sender gets back. Default: they are
    /// counted (`Stats::total.undelivered`), and no more.
    pub fn dead_letters(self, sink: Arc<dyn DeadLetters>) -> Self {
        self.with(|config| config.dead_letters = Some(sink))
    }

    /// Is told of each failure that nothing else in the program is told of: see [`FailureReport`].
    /// Default: a line now and then.
    ///
    /// A report is made
    ///
    /// - when a process has failed or panicked, or one that it was linked to has, and nothing
    ///   watches it: no monitor, no link, no supervisor, and no [`ProcessHandle`]. With a handle
    ///   it is made when that is dropped and the reason has not been taken;
    /// - when an actor without [`completed`](ganger_proc_api::Actor::completed) gets an error as
    ///   the answer to a command or question;
    /// - when an [`Answer`](crate::Answer) is dropped that is an error, and was not looked at.
    ///
    /// The line is an event of `tracing`, at `error`, with the target `ganger::failure`. Where the
    /// thread has no subscriber, it is written to the standard error stream, and then without the
    /// message of a panic, which the panic hook has written there. There is one a second at the
    /// most, which says how many had none; so does the end of a stop.
    ///
    /// `report` gets all of them, contained, on the thread that ends the process, or drops the
    /// handle or the answer. That may hold locks of the program's, so that `report` should take
    /// none that others hold for long.
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

    /// Nothing is told of failures that nothing watches: see [`on_failure`](Self::on_failure). A
    /// simulation is so unless its builder says otherwise.
    pub fn quiet_failures(self) -> Self {
        self.with(|config| config.on_failure = OnFailure::Quiet)
    }

    /// Takes the envelopes whose PID names another host or node. Default: no router; they come back
    /// with `HostNotFound` or `NodeNotFound`.
    pub fn router(self, router: Arc<dyn EnvelopeReceiver>) -> Self {
        self.with(|config| config.router = Some(router))
    }

    /// Whether an envelope for a PID of this scheduler that has no process goes to the router,
    /// once. Default: no, it comes back with `NotFound`. So does an envelope that the router
    /// refuses.
    ///
    /// For channels in front of the scheduler (`ganger_relay::Mailbox::in_front_of`), so that its
    /// own processes reach them, too. Envelopes for live processes do not come by there.
    pub fn route_unknown(self, routes_unknown: bool) -> Self {
        self.with(|config| config.routes_unknown = routes_unknown)
    }

    /// Where the scheduler's threads wait for the system. Default: they wait for each other alone.
    ///
    /// A thread of the scheduler that has nothing to do waits there, one at a time. Busy workers
    /// look there at rotations, and the monitor when no worker has for 2 to 4 ms. A simulation has
    /// no use for it.
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

    /// How much is counted and measured, at most: [`Handle::set_observe`] changes it up to that
    /// level while the scheduler runs. Default: [`Observe::Off`].
    #[cfg(feature = "observe")]
    pub fn observe(self, level: Observe) -> Self {
        self.with(|config| config.observe = level)
    }

    /// Shows each step to a tracer, before the step begins and when the step is over. A later call
    /// takes the place of this one. The scheduler counts, too: see
    /// [`observe`](Self::observe).
    ///
    /// What a traced step sends, starts, wakes and yields is known to come from there: the steps
    /// that this leads to have it as a [`Cause`](crate::Cause).
    #[cfg(feature = "observe")]
    pub fn trace_steps(self, tracer: Arc<dyn StepTracer>) -> Self {
        self.with(|config| config.tracer = Some(tracer))
    }

    /// Records what happens, event by event, in rings of memory: see [`Recorder`] for what that
    /// costs, and [`Handle::recording`] for the way out. Counts as well, as
    /// [`observe`](Self::observe) does with [`Observe::Counts`].
    #[cfg(feature = "observe")]
    pub fn record(self, recorder: Recorder) -> Self {
        self.with(|config| config.record = Some(recorder))
    }

    /// Checks promises while the scheduler runs, and ends the program when one is broken: see
    /// [`check`](crate::check).
    #[cfg(feature = "check")]
    #[doc(hidden)]
    pub fn check_promises(self) -> Self {
        self.with(|config| config.is_checked = true)
    }

    /// No time passes for this scheduler. Where a tool counts instructions, each step lasts long,
    /// and what a worker does after long steps would be counted with it.
    #[cfg(feature = "internals")]
    #[doc(hidden)]
    pub fn still_clock(self) -> Self {
        self.with(|config| config.clock_is_still = true)
    }

    /// A handle to a scheduler that is not started, and the additions that it needs first.
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
