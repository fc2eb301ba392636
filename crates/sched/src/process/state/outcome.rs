//! Results of a process's transitions, and the duties that they bring.

/// The result for a worker that took a process from a queue.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// Step it.
    Step,
    /// End it without a step.
    Terminate,
    /// Look at the interventions first: they decide between the other variants.
    Intervene,
    /// End the turn without a step: the process is suspended.
    Stand,
}

/// The duty of a sender after its push.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    /// The caller owns the run token: it must queue the process.
    Enqueue,
    /// Nothing: a worker or a queue has the process and will see the event.
    Noted,
}

/// The duty of a worker after a step.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leave {
    /// Nothing: the process waits for a wake-up, and must not be touched any more.
    Parked,
    /// The worker still owns the run token: it must queue the process.
    Requeue,
    /// As `Requeue`, in the urgent lane: a system event waits for the process.
    RequeueUrgent,
    /// The process ends: the worker must complete it.
    Terminate,
}

/// The phase of a waiting process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// With commands outstanding.
    Blocked,
    /// Without.
    Idle,
}
