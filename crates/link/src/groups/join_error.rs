//! Why a process was not taken into a group.

use ganger_proc_api::Pid;

/// A process was not taken into a group.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("can't add {pid} to a group: {kind}")]
pub struct JoinError {
    /// The process.
    pub pid: Pid,
    /// The reason.
    pub kind: JoinErrorKind,
}

/// Why a process was not taken into a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JoinErrorKind {
    /// The process has ended.
    #[error("the process has ended")]
    Ended,
    /// The process is of another node: let it join there.
    #[error("the process is of another node, which alone may let it join")]
    Elsewhere,
    /// The name of the group or of its scope is too long for other nodes.
    #[error("the name of the group or of its scope is longer than 255 bytes")]
    NameTooLong,
    /// The node has as many entries as other nodes take, or the process has joined the group as
    /// often as other nodes take.
    #[error("the node has as many entries as other nodes take: let processes leave first")]
    Full,
}
