//! The answers.

use super::counts::Counts;
use super::measures::{Distributions, ProcessCounts, Wait, WorkerTimes};
use super::state::State;
use super::views::Alarm;
use serde::{Deserialize, Serialize};

/// The answer of `/api/v1/snapshot`: the observed schedulers at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// [`VERSION`](super::VERSION).
    pub version: u32,
    /// The number of the snapshot: each is one more than the snapshot before. An equal or lower
    /// number tells a viewer of a new start of the endpoint.
    pub sequence: u64,
    /// The observed schedulers, in the order in which they were added.
    pub schedulers: Vec<Scheduler>,
    /// The names of the actions on processes that the program allows, as in their paths: see
    /// [`Action::name`](super::Action::name). None where the endpoint only reads.
    #[serde(default)]
    pub actions: Vec<String>,
}

/// A scheduler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scheduler {
    /// The number of the scheduler in the endpoint, from 1 up.
    pub number: u64,
    /// The name of the host.
    pub host: String,
    /// The name of its node, if it has a node.
    pub node: Option<String>,
    /// Whether a worker has been started.
    pub is_started: bool,
    /// Whether submissions are refused, because a stop has begun.
    pub is_stopping: bool,
    /// The time left to the deadline of a stop, once a stop has begun.
    pub time_to_stop_ns: Option<u64>,
    /// The time since the scheduler was built.
    pub uptime_ns: u64,
    /// The live processes.
    pub live: u64,
    /// The processes in the global queue.
    pub global_queue: u64,
    /// The ready processes in all queues.
    #[serde(default)]
    pub ready: u64,
    /// The new events that steps have been given: messages, completions, notices; known where
    /// events are counted.
    #[serde(default)]
    pub events: Option<u64>,
    /// The threads.
    pub threads: Threads,
    /// The counts of all threads together.
    pub total: Counts,
    /// The counts of each worker; of spares, too, as soon as there was a spare.
    pub workers: Vec<Counts>,
    /// The timers.
    pub timers: Timers,
    /// The longest finished step with processes waiting behind it; 0 without such a step.
    pub longest_step_ns: u64,
    /// The last steps with processes waiting behind them, at most 16, the oldest first.
    pub long_steps: Vec<LongStep>,
    /// How much is counted and measured: `off`, `counts` or `histograms`.
    #[serde(default)]
    pub observes: String,
    /// How each worker has spent its time, where that is counted.
    #[serde(default)]
    pub worker_times: Vec<WorkerTimes>,
    /// The measured durations, where the scheduler measures.
    #[serde(default)]
    pub distributions: Option<Distributions>,
    /// The raised alarms, the oldest first.
    #[serde(default)]
    pub alarms: Vec<Alarm>,
}

/// The threads of a scheduler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Threads {
    /// Workers.
    pub workers: u64,
    /// Spare threads, for blocking steps.
    pub spares: u64,
    /// Threads inside of a step that blocks, whose places spares have taken.
    pub relieved: u64,
    /// Sleeping workers.
    pub sleeping: u64,
    /// Searching workers.
    pub searching: u64,
}

/// The timers of a scheduler. All but `pending` are cumulative.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timers {
    /// Waiting timers.
    pub pending: u64,
    /// Timers set.
    pub armed: u64,
    /// Expired timers.
    pub fired: u64,
    /// Timers taken away.
    pub cancelled: u64,
    /// Late messages, refused by their processes.
    pub refused: u64,
}

/// A step with processes waiting behind it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongStep {
    /// The process.
    pub pid: String,
    /// The entry point of the process, if it was alive at the look-up.
    pub method: Option<String>,
    /// The place of the thread in [`Scheduler::workers`].
    pub worker: u64,
    /// Whether the step blocks its thread; otherwise it computes.
    pub is_blocked: bool,
    /// Whether the step had announced itself by `Context::blocking`.
    pub is_announced: bool,
    /// Whether the step is over.
    pub is_over: bool,
    /// The length of the step; of a step that is not over, until it was noticed.
    pub lasted_ns: u64,
    /// The functions of the step, the innermost first, where backtraces are taken.
    pub backtrace: Option<String>,
}

/// The answer of `/api/v1/processes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Processes {
    /// [`VERSION`](super::VERSION).
    pub version: u32,
    /// The number of live processes in the schedulers asked for.
    pub live: u64,
    /// The number of live processes that pass the filter.
    pub matched: u64,
    /// The first of the processes that pass the filter, in the order asked for.
    pub processes: Vec<Process>,
}

/// A live process. `/api/v1/process/{pid}` answers with a [`Processes`] of a single one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// The number of its scheduler.
    pub scheduler: u64,
    /// Its PID, as `{host|id}`.
    pub pid: String,
    /// The state of its life.
    pub state: State,
    /// Its entry point.
    pub method: String,
    /// The name of its type.
    pub type_name: String,
    /// Its registered names, and behind them its name as a child of its supervisor.
    pub names: Vec<String>,
    /// Its parent, if a process has started it.
    pub parent: Option<String>,
    /// The number of its upgrades and restarts in place.
    pub incarnation: u32,
    /// Whether it is asked to finish.
    pub is_cancelled: bool,
    /// Whether it takes no further step.
    pub is_terminating: bool,
    /// The events left by its steps for later steps.
    pub left: u64,
    /// The messages in its mailbox; known where mailboxes have a limit.
    pub queued: Option<u64>,
    /// The time since its last turn began; none before the first turn.
    pub quiet_ns: Option<u64>,
    /// The label for its accounts.
    #[serde(default)]
    pub label: Option<String>,
    /// Its counts, where the scheduler counts.
    #[serde(default)]
    pub counts: Option<ProcessCounts>,
    /// The value for the order of a list; of steps, events, busy time and growth the value in the
    /// window, if the query has a window.
    #[serde(default)]
    pub value: Option<u64>,
    /// The awaited commands.
    #[serde(default)]
    pub waits: Vec<Wait>,
    /// The PIDs of the processes that it is linked to. Only of a single process.
    #[serde(default)]
    pub links: Vec<String>,
    /// How many monitors it has of other processes, as far as these wait at the moment. Only of a
    /// single process, where its scheduler has at most 4,096 live processes.
    #[serde(default)]
    pub monitors: Option<u64>,
    /// The PIDs of the first 100 of these processes.
    #[serde(default)]
    pub monitored: Vec<String>,
    /// How many monitors of processes and waits of threads are told of its end; its handle and its
    /// links do not count. Only of a single process; none while it is ready or runs.
    #[serde(default)]
    pub watched_by: Option<u64>,
    /// The PIDs of the first 100 processes among these.
    #[serde(default)]
    pub watchers: Vec<String>,
    /// How often its supervisor has started it again. Only of a single process with a supervisor,
    /// where its scheduler has at most 4,096 live processes.
    #[serde(default)]
    pub restarts: Option<u64>,
    /// Its last end or failure, where its supervisor knows it.
    #[serde(default)]
    pub last_cause: Option<String>,
    /// The bytes of its state and of the scheduler's part of it, without the mailbox and what the
    /// state points to. Only of a single process; none while it is ready or runs.
    #[serde(default)]
    pub bytes: Option<u64>,
}

/// The answer of `/api/v1/letters`: messages without a taker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Letters {
    /// [`VERSION`](super::VERSION).
    pub version: u32,
    /// The observed schedulers, in the order in which they were added.
    pub schedulers: Vec<SchedulerLetters>,
}

/// The dead letters of a scheduler. All numbers are cumulative.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulerLetters {
    /// The number of the scheduler.
    pub scheduler: u64,
    /// The name of its host.
    pub host: String,
    /// Accepted messages dropped by the end of their processes.
    pub undelivered: u64,
    /// Late messages, refused by their processes.
    pub refused: u64,
    /// The last dead letters, the oldest first, where the scheduler was built with
    /// [`keep_letters`](crate::keep_letters).
    pub last: Option<Vec<Letter>>,
}

/// A dead letter. Its payload is shown if the program shows its type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Letter {
    /// Why no process takes it: `ended`, `late_ended`, `late_full` or `late_refused`, as
    /// `ganger_sched::DeadReason`.
    pub reason: String,
    /// The sender, if known.
    pub source: Option<String>,
    /// The target of the message.
    pub target: String,
    /// The topic of the message.
    pub topic: String,
    /// When it was dropped, after the scheduler was built.
    pub at_ns: u64,
    /// The name of the message's type, if known.
    #[serde(default)]
    pub message: Option<String>,
    /// The message by its `Show`, if the program shows its type.
    #[serde(default)]
    pub text: Option<String>,
}
