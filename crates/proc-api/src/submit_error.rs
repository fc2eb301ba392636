//! Why a process was not started.

use crate::{BoxError, Exclusive, Payloads, Pid, Process};
use std::fmt;

/// A process was not started.
///
/// [`into_process`](Self::into_process) gives it back, so that nothing is lost.
pub struct SubmitError {
    /// Why it was not started.
    pub kind: SubmitErrorKind,
    refused: Option<(Exclusive<Box<dyn Process>>, Payloads)>,
}

/// Why a process was not started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitErrorKind {
    /// The scheduler is stopping, or has stopped.
    #[error("the scheduler is stopping")]
    Stopping,
    /// As many processes as the scheduler may have are alive.
    #[error("there are {max} processes already, and max_processes is {max}")]
    LimitReached {
        /// The limit.
        max: usize,
    },
    /// A process with that PID is alive; it is untouched.
    #[error("a process with the PID {0} exists already")]
    AlreadyExists(Pid),
    /// The requested PID is not one that this scheduler can give.
    #[error("{pid} can't be given to a process here: {why}")]
    InvalidPid {
        /// The PID.
        pid: Pid,
        /// What is wrong with it.
        why: &'static str,
    },
    /// `init` returned this error.
    #[error("init failed: {0}")]
    InitFailed(#[source] BoxError),
    /// `init` panicked, with this message.
    #[error("init panicked: {0}")]
    InitPanicked(Box<str>),
    /// `Lifecycle::on_start` returned this error; the process has been closed.
    #[error("the lifecycle hook refused the start: {0}")]
    StartRefused(#[source] BoxError),
    /// `Lifecycle::on_start` panicked, with this message; the process has been closed.
    #[error("the lifecycle hook panicked: {0}")]
    StartPanicked(Box<str>),
}

impl SubmitError {
    /// The refusal for the reason `kind`, without a process.
    #[must_use]
    pub fn new(kind: SubmitErrorKind) -> Self {
        Self {
            kind,
            refused: None,
        }
    }

    /// The same refusal with the process and the input that it is about.
    #[must_use]
    pub fn with_process(self, process: Box<dyn Process>, input: Payloads) -> Self {
        Self {
            refused: Some((Exclusive::new(process), input)),
            ..self
        }
    }

    /// The process, if it can be submitted again; see [`into_parts`](Self::into_parts).
    #[must_use]
    pub fn into_process(self) -> Option<Box<dyn Process>> {
        self.into_parts().map(|(process, _)| process)
    }

    /// The process and its input, if it can be submitted again: it was refused before its `init`,
    /// or that returned an error, and has consumed the input then.
    ///
    /// `None` when `init` panicked, or when it succeeded and the start was refused afterwards: the
    /// process has been closed, and what was left of it dropped.
    #[must_use]
    pub fn into_parts(self) -> Option<(Box<dyn Process>, Payloads)> {
        self.refused
            .map(|(process, input)| (process.into_inner(), input))
    }
}

impl fmt::Debug for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubmitError")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the process was not started: {}", self.kind)
    }
}

impl std::error::Error for SubmitError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.kind)
    }
}
