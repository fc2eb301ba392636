//! Errors of supervisors.

use crate::child::ChildRef;
use ganger_proc_api::{BoxError, Pid, SendErrorKind};
use ganger_sched::CallRefused;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// Why a supervisor has refused an order for a child, or has failed.
///
/// The text has the text of an inner error, and the source is the inner error's source.
#[derive(Debug)]
#[non_exhaustive]
pub enum SuperviseError {
    /// A child has not started. At the start of the supervisor this error fails the start, and the
    /// supervisor stops the earlier children.
    NotStarted {
        /// The child's name.
        child: Arc<str>,
        /// The reason.
        error: BoxError,
    },
    /// The children of the supervisor failed more often than the
    /// [intensity](crate::Supervisor::intensity) allows. The supervisor has stopped its children,
    /// and has ended.
    GaveUp {
        /// The child that failed last.
        child: Arc<str>,
        /// How it failed.
        cause: Box<str>,
    },
    /// Another child has the name.
    NameTaken(Arc<str>),
    /// The supervisor has as many children as [`max_children`](crate::Supervisor::max_children)
    /// allows.
    Full {
        /// The limit.
        most: usize,
    },
    /// The supervisor does not know the child.
    NoChild(ChildRef),
    /// The supervisor is stopping.
    Stopping,
    /// A stop or a removal of the child came before its start.
    Overtaken {
        /// The child's name.
        child: Arc<str>,
    },
    /// The process has asked for its own stop or restart, or for the stop of a supervisor above.
    /// The stop is under way. The process must not wait for it, and finishes instead.
    WaitsForItself(Pid),
    /// The supervisor is gone, for this reason.
    Gone {
        /// Its process.
        supervisor: Pid,
        /// Why it takes no orders.
        kind: SendErrorKind,
    },
}

/// Creates the error of an order that the supervisor refuses.
pub(crate) fn refused(refused: CallRefused) -> BoxError {
    let CallRefused { pid, kind, .. } = refused;
    match kind {
        kind if kind.is_closed() => {
            let supervisor = pid;
            SuperviseError::Gone { supervisor, kind }.into()
        }
        _ => refused.into(),
    }
}

impl fmt::Display for SuperviseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted { child, error } => {
                write!(f, "the child {child:?} was not started: {error}")
            }
            Self::GaveUp { child, cause } => write!(
                f,
                "gave up: children failed more often than allowed, at last {child:?}: {cause}"
            ),
            Self::NameTaken(name) => write!(f, "a child named {name:?} already exists"),
            Self::Full { most } => {
                write!(f, "too many children: max_children is {most}")
            }
            Self::NoChild(child) => write!(f, "no child {child}"),
            Self::Stopping => f.write_str("the supervisor is stopping"),
            Self::Overtaken { child } => write!(
                f,
                "the child {child:?} is not started: a stop of it was requested meanwhile"
            ),
            Self::WaitsForItself(pid) => write!(
                f,
                "{pid} can't wait for its own end; the stop that it requested is under way"
            ),
            Self::Gone { supervisor, kind } => {
                write!(f, "the supervisor {supervisor} has ended: {kind}")
            }
        }
    }
}

impl Error for SuperviseError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NotStarted { error, .. } => error.source(),
            _ => None,
        }
    }
}
