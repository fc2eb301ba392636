//! What a user chooses for a pool.

/// Which worker gets a job that is called without a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Routing {
    /// The first that is free.
    #[default]
    Free,
    /// Each in turn.
    RoundRobin,
    /// Any, by chance.
    Random,
    /// That which has the fewest jobs, the one in hand included.
    LeastLoaded,
}

/// What becomes of jobs that find as many waiting as may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Overload {
    /// They wait nevertheless, and their callers with them, in the order of the calls.
    #[default]
    Wait,
    /// They are refused.
    RefuseNewest,
    /// The job that has waited longest is refused in their place.
    RefuseOldest,
}
