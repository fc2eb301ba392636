//! Why a process did not get a name.

use crate::values::Pid;

/// A process did not get a name. The name is inside.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("can't register {pid} as {name:?}: {kind}")]
pub struct RegisterNameError {
    /// The name.
    pub name: Box<str>,
    /// The process.
    pub pid: Pid,
    /// Why it did not get the name.
    pub kind: RegisterNameErrorKind,
}

/// Why a process did not get a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterNameErrorKind {
    /// Another process has the name already.
    #[error("the name is taken by {holder}")]
    Taken {
        /// The holder of the name.
        holder: Pid,
    },
    /// No live process of the scheduler has this PID.
    #[error("no live process of this scheduler has that PID")]
    NotFound,
}
