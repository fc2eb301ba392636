//! The counts of a thread.

use serde::{Deserialize, Serialize};

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// The counts of a thread, or of all threads together: see `ganger_sched::WorkerStats`.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Counts { $($(#[$doc])* pub $name: u64,)+ }

        #[cfg(feature = "serve")]
        impl From<ganger_sched::WorkerStats> for Counts {
            fn from(stats: ganger_sched::WorkerStats) -> Self {
                Self { $($name: stats.$name,)+ }
            }
        }
    };
}

counts! {
    /// Turns: picks of a process.
    turns,
    /// Steps.
    steps,
    /// Picks from the worker's own deque.
    local_picks,
    /// Picks from the global queue.
    global_picks,
    /// Picks from the urgent lane.
    urgent_picks,
    /// Picks of processes woken by a timer.
    arrival_picks,
    /// Looks at the global queue before the own deque.
    rotations,
    /// Successful steals.
    steals,
    /// Processes moved by the steals.
    stolen,
    /// Sleeps of the worker.
    sleeps,
    /// Steps blocked while processes waited. In the total alone.
    blocked_steps,
    /// Steps in a long computation while processes waited. In the total alone.
    long_steps,
    /// Commands.
    yields,
    /// Completions after the end or the upgrade of their processes.
    stale_completions,
    /// Accepted messages dropped by the end of their processes.
    undelivered,
    /// Panics in code of users.
    panics,
    /// Processes started.
    started,
    /// Processes with a result of their own.
    done,
    /// Processes ended by a cancellation.
    cancelled,
    /// Processes ended by a failed step.
    failed,
    /// Processes ended by a panic.
    panicked,
    /// Terminated processes.
    terminated,
    /// Processes terminated by the deadline of a stop.
    forced,
    /// Upgrades.
    upgrades,
    /// Processes ended by a failed upgrade.
    upgrades_failed,
}
