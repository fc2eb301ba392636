//! Names of processes.

use crate::Pid;

/// A process was not given a name. The name comes back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{pid} can't be named {name:?}: {kind}")]
pub struct RegisterNameError {
    /// The name.
    pub name: Box<str>,
    /// The process.
    pub pid: Pid,
    /// Why it was not given the name.
    pub kind: RegisterNameErrorKind,
}

/// Why a process was not given a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterNameErrorKind {
    /// A process has that name: another one, or this one already.
    #[error("{holder} has that name")]
    Taken {
        /// Who has it.
        holder: Pid,
    },
    /// No live process of the scheduler has that PID.
    #[error("there is no such process here")]
    NotFound,
}
