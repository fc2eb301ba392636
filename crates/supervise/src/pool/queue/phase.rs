//! The phase of a pool, and the next act of its front.

use ganger_proc_api::Pid;
use ganger_sched::Instant;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The pool has not started, or has stopped.
    Over,
    Open,
    /// Workers complete the admitted jobs.
    Drains,
}

/// An act of the front.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Next {
    /// Starts a worker, for jobs.
    Start(usize),
    /// Monitors the process of a worker.
    Monitor(usize, Pid),
    /// Looks again after a wake-up, or at this time.
    Wait(Instant),
}
