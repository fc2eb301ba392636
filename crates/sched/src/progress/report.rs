//! What a stop comes to.

use ganger_proc_api::Pid;

/// Why a scheduler was not stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StopError {
    /// `stop` would wait for the call that it is made from: a step, `init`, `close`, a hook, a
    /// handler, a destructor or a `tracing` subscriber, on a thread of the scheduler or in a
    /// submission to it.
    #[error(
        "`stop` would wait for the call of the scheduler that it is made from; use \
         `begin_stop(deadline)`, which returns at once"
    )]
    Inside,
}

/// What became of the processes that were alive when a scheduler was stopped.
///
/// When `closing` is not zero, the workers went on while these were counted: a process or two that
/// were just ending may count as stuck.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct StopReport {
    /// Processes that ended by themselves, before the deadline or in the step that it fell in.
    pub completed: u64,
    /// Those of them that were terminated meanwhile, by supervisors for which they were too slow
    /// to finish for instance.
    pub terminated: u64,
    /// Processes that had not, and were terminated: they take no further step.
    pub forced: u64,
    /// How many of those were still to be closed when `stop` returned, because there were too many
    /// for its time. The workers go on with them, or other threads where workers are stuck: up to
    /// sixteen.
    pub closing: u64,
    /// Processes whose step, `close` or exit hook had not returned when `stop` did. They end when
    /// it returns.
    pub stuck: Vec<Pid>,
}
