//! What transitions of a process ask for, and what they owe.

/// What a worker may do with a process that it took from a queue.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// Step it.
    Step,
    /// End it without a step.
    Terminate,
}

/// What a sender owes after its push.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    /// The caller owns the run token: it must queue the process.
    Enqueue,
    /// Nothing: a worker or a queue has the process and will see the event.
    Noted,
}

/// What a worker owes after a step.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leave {
    /// Nothing: the process waits for a wake-up, and must not be touched any more.
    Parked,
    /// The worker still owns the run token: it must queue the process.
    Requeue,
    /// As `Requeue`, in the urgent lane: a system event waits for the process.
    RequeueUrgent,
    /// The process is to end: the worker must complete it.
    Terminate,
}

/// In which phase a process waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// With commands outstanding.
    Blocked,
    /// Without.
    Idle,
}
