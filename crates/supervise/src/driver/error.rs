//! What goes wrong with supervisors and their children.

use crate::child::ChildRef;
use ganger_proc_api::{BoxError, Pid, SendErrorKind};
use ganger_sched::CallRefused;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// Why a supervisor has not done what it was to do with a child, or has ended.
///
/// The text of an error inside is part of this one's text, and the source of that error is this
/// one's source.
#[derive(Debug)]
#[non_exhaustive]
pub enum SuperviseError {
    /// The child was not started. A supervisor that starts with it has not started either, and
    /// stops the children before it.
    NotStarted {
        /// The child's name.
        child: Arc<str>,
        /// The reason.
        error: BoxError,
    },
    /// That child, and perhaps others, failed more often than the
    /// [intensity](crate::Supervisor::intensity) allows. The supervisor has stopped its children,
    /// and has ended.
    GaveUp {
        /// The child that failed last.
        child: Arc<str>,
        /// How it failed.
        cause: Box<str>,
    },
    /// A child has that name already.
    NameTaken(Arc<str>),
    /// The supervisor has as many children as it may have.
    Full {
        /// How many.
        most: usize,
    },
    /// The supervisor has no such child.
    NoChild(ChildRef),
    /// The supervisor is stopping.
    Stopping,
    /// The child was to be started, and is to be stopped or forgotten meanwhile.
    Overtaken {
        /// The child's name.
        child: Arc<str>,
    },
    /// That process has asked for its own stop or restart, or for the stop of a supervisor above
    /// it. That is under way. The process would wait for itself, and finishes instead.
    WaitsForItself(Pid),
    /// The supervisor is gone, for this reason.
    Gone {
        /// Its process.
        supervisor: Pid,
        /// Why it takes no orders.
        kind: SendErrorKind,
    },
    /// The scheduler was built without timers.
    NoTimers,
}

/// An order that the supervisor refuses.
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
            Self::NoTimers => f.write_str(
                "a supervisor needs timers: give the scheduler's builder `.source(Timers)`",
            ),
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
