//! Refusals to callers of a handle.

use ganger_proc_api::{Pid, Symbol, UpgradeRequest};

/// An upgrade was not accepted. The request is inside: nothing is lost.
#[derive(Debug, thiserror::Error)]
#[error("can't upgrade {pid}: {kind}")]
pub struct UpgradeRefused {
    /// The process of the refused upgrade; it is untouched.
    pub pid: Pid,
    /// Why the request was refused.
    pub kind: UpgradeRefusedKind,
    /// The request.
    pub request: Box<UpgradeRequest>,
}

/// Why an upgrade was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UpgradeRefusedKind {
    /// No live process has this PID.
    #[error("no live process has that PID")]
    NotFound,
    /// No factory of this name is registered.
    #[error("no factory named {0:?} is registered")]
    UnknownFactory(Symbol),
}
