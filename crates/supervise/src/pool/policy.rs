//! The policies of a pool.

/// The policy by which a job without a key gets its worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Routing {
    /// The first free worker.
    #[default]
    Free,
    /// Each worker in turn.
    RoundRobin,
    /// A random worker.
    Random,
    /// The worker with the fewest jobs, waiting and in hand.
    LeastLoaded,
}

/// The policy for jobs that find the queue full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Overload {
    /// New jobs wait nevertheless, and their callers with them, in the order of the calls.
    #[default]
    Wait,
    /// The pool refuses the new job.
    RefuseNewest,
    /// The pool refuses the job that has waited longest, and admits the new job.
    RefuseOldest,
}
