//! A view of a scheduler from outside, for a program that stands still and should not.
//!
//! Loads read everything, one thing after the other, while the workers continue. Each entry of a
//! process or a worker was right at a moment of its own.

use crate::api::handle::{Handle, ProcessInfo};
use crate::base::stats::Stats;
use crate::process::state::ProcessState;
use crate::runtime::cell::Task;
use ganger_proc_api::{HostName, Pid};
use std::fmt;

/// The result of [`Handle::dump`]. Its text, by `Display`, has a line for the scheduler, for each
/// worker and for each process. The text does not end with a new line.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Dump {
    /// The host name of the scheduler.
    pub host: HostName,
    /// Whether it has workers: without, nothing runs.
    pub is_started: bool,
    /// Finished and present work.
    pub stats: Stats,
    /// Processes in front of all others, because a system event has woken them.
    pub urgent_queue: usize,
    /// Processes woken by a timer.
    pub arrivals_queue: usize,
    /// The threads that run steps: the configured workers, and then spares in the places of others,
    /// as in [`Handle::worker_stats`].
    pub workers: Vec<WorkerDump>,
    /// The live processes.
    pub processes: Vec<ProcessDump>,
}

/// The activity of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerDump {
    /// The thread, as the system counts it; none where it is not known, or has ended.
    pub thread: Option<u32>,
    /// The process whose turn the worker is in, if any.
    pub running: Option<Pid>,
    /// The number of turns begun. While it stays the same, the worker is in the same turn, or in
    /// none.
    pub turns: u64,
    /// How many processes wait in its deque.
    pub queued: usize,
    /// Whether it looks for work, or sleeps, because it has found none.
    pub is_looking: bool,
    /// Whether another thread has taken the worker's place, so that it stands down after its turn.
    pub is_relieved: bool,
}

/// The activity of a process, and the events waiting for it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessDump {
    /// Its state and marks.
    pub info: ProcessInfo,
    /// Whether the mailbox has an item that its runner has not taken out: a message, a completion,
    /// a system event, or the nudge of a termination. The event that has woken a process is not in
    /// its mailbox: the sender hands it to the next turn.
    pub has_mail: bool,
    /// How many cancellations, control messages and upgrades no step has been given.
    pub system_events: usize,
}

impl Handle {
    /// Returns a view of the scheduler: its workers, its processes, and the lengths of its queues.
    /// For a log, when a program does not continue as it should. Never stops a worker, and blocks
    /// no longer than reading takes: O(workers), and O(the most processes alive at any time).
    ///
    /// ```
    /// use ganger_proc_api::{BoxError, Context, Events, Process, StepOutput, StepResult};
    /// use ganger_sched::Scheduler;
    ///
    /// struct Waits;
    ///
    /// impl Process for Waits {
    ///     fn step(
    ///         &mut self,
    ///         _: &Context,
    ///         _: &mut Events<'_>,
    ///         out: &mut StepOutput,
    ///     ) -> StepResult {
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let scheduler = Scheduler::builder().workers(1).build()?;
    /// drop(scheduler.spawn(Waits)?);
    /// let dump = scheduler.dump();
    /// assert_eq!((dump.workers.len(), dump.processes.len()), (1, 1));
    /// assert!(dump.to_string().contains("Waits): Ready"));
    /// # Ok::<(), BoxError>(())
    /// ```
    #[must_use]
    pub fn dump(&self) -> Dump {
        let shared = &self.shared;
        let worker = |index| WorkerDump {
            thread: shared.worker_slots.thread(index),
            running: shared.running_on(index),
            turns: shared.counters.of(Some(index)).turns.get(),
            queued: shared.stealers()[index].len(),
            is_looking: shared.worker_slots.is_looking(index),
            is_relieved: shared.worker_slots.is_replaced(index),
        };
        let tasks = shared.census.registry.all();
        let processes = tasks.map(|task| ProcessDump::of(&task));
        Dump {
            host: shared.host,
            is_started: shared.start.is_served(),
            stats: self.stats(),
            urgent_queue: shared.queues.urgent.len(),
            arrivals_queue: shared.queues.arrivals.len(),
            workers: (0..shared.stealers().len()).map(worker).collect(),
            processes: processes
                .filter(|process| process.info.state != ProcessState::Complete)
                .collect(),
        }
    }
}

impl ProcessDump {
    fn of(task: &Task) -> Self {
        Self {
            info: ProcessInfo::of(task),
            has_mail: task.state.has_events(),
            system_events: task.state.system_events(),
        }
    }
}

impl fmt::Display for Dump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stats {
            workers,
            spares,
            relieved,
            sleeping,
            searching,
            live,
            global_queue,
            ..
        } = self.stats;
        write!(
            f,
            "scheduler {}{}: {workers} workers ({sleeping} asleep, {searching} \
            searching), {spares} spares, \
             {relieved} relieved; {live} processes, {global_queue} in the global queue, {} urgent, \
             {} woken by timers",
            self.host,
            if self.is_started { "" } else { ", not started" },
            self.urgent_queue,
            self.arrivals_queue
        )?;
        for (index, worker) in self.workers.iter().enumerate() {
            write!(f, "\n  worker {index}: {worker}")?;
        }
        for process in &self.processes {
            write!(f, "\n  {process}")?;
        }
        Ok(())
    }
}

impl fmt::Display for WorkerDump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.running, self.thread) {
            (Some(pid), _) => write!(f, "runs {pid}")?,
            (None, None) if cfg!(target_os = "linux") => f.write_str("has no thread")?,
            (None, _) if self.is_looking => f.write_str("looks for work, or sleeps")?,
            (None, _) => f.write_str("is between two turns")?,
        }
        if let Some(thread) = self.thread {
            write!(f, ", thread {thread}")?;
        }
        write!(f, ", {} turns, {} queued", self.turns, self.queued)?;
        f.write_str(if self.is_relieved { ", relieved" } else { "" })
    }
}

impl fmt::Display for ProcessDump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ProcessInfo {
            pid,
            state,
            method,
            incarnation,
            is_cancelled,
            is_terminating,
            type_name,
            names,
            parent,
            left,
            queued,
            ran_before,
        } = &self.info;
        write!(f, "{pid}")?;
        for name in names {
            write!(f, " {name:?}")?;
        }
        write!(f, " ({method} of {type_name}): {state:?}")?;
        match ran_before {
            Some(before) => write!(f, ", ran {before:.0?} ago")?,
            None => f.write_str(", has not run")?,
        }
        if let Some(parent) = parent {
            write!(f, ", started by {parent}")?;
        }
        if *incarnation > 0 {
            write!(f, ", upgraded {incarnation} times")?;
        }
        let marks = [
            (self.has_mail, ", has mail"),
            (*is_cancelled, ", cancelled"),
            (*is_terminating, ", terminating"),
        ];
        for (_, mark) in marks.iter().filter(|(is_set, _)| *is_set) {
            f.write_str(mark)?;
        }
        if *left > 0 {
            write!(f, ", has left {left}")?;
        }
        if let Some(queued) = queued {
            write!(f, ", {queued} messages")?;
        }
        match self.system_events {
            0 => Ok(()),
            count => write!(f, ", {count} system events"),
        }
    }
}
