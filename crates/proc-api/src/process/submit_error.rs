//! Why a process was not started.

use super::{Process, RegisterNameError};
use crate::raw::Exclusive;
use crate::values::{BoxError, Payloads, Pid};
use std::error::Error;
use std::fmt;

/// A process was not started.
///
/// [`into_process`](Self::into_process) gives the process back if it can be submitted again.
pub struct SubmitError {
    /// Why it was not started.
    pub kind: SubmitErrorKind,
    refused: Option<(Exclusive<Box<dyn Process>>, Payloads)>,
}

/// Why a process was not started.
///
/// The text of an inner error is part of this error's text, and the inner error's source is this
/// error's source.
#[derive(Debug)]
#[non_exhaustive]
pub enum SubmitErrorKind {
    /// The scheduler is stopping, or has stopped. A live process may start others until the
    /// deadline of the stop.
    Stopping,
    /// The scheduler has as many live processes as it may have.
    LimitReached {
        /// The limit.
        max: usize,
    },
    /// The start is too deep inside of other starts, each in the `init` of the one before: 64, or
    /// fewer when they take a mebibyte of the thread's stack. Nothing was started; a step of the
    /// process may start it.
    TooDeep {
        /// The number of starts around this start.
        depth: usize,
    },
    /// A live process has this PID. The live process is untouched.
    AlreadyExists(Pid),
    /// The scheduler cannot give the requested PID to a process.
    InvalidPid {
        /// The PID.
        pid: Pid,
        /// The reason.
        why: &'static str,
    },
    /// The process did not get its name.
    NotNamed(RegisterNameError),
    /// An action before its `init` has failed or panicked.
    Prevented(BoxError),
    /// `init` returned this error.
    InitFailed(BoxError),
    /// `init` panicked, with this message.
    InitPanicked(Box<str>),
    /// `Lifecycle::on_start` returned this error. The process has been closed.
    StartRefused(BoxError),
    /// `Lifecycle::on_start` panicked, with this message. The process has been closed.
    StartPanicked(Box<str>),
}

impl fmt::Display for SubmitErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopping => f.write_str("the scheduler is stopping"),
            Self::LimitReached { max } => write!(f, "too many processes: max_processes is {max}"),
            Self::TooDeep { depth } => write!(
                f,
                "nested starts are {depth} deep, each in the init of its parent; start the \
                 process in a step, for instance in `Actor::started`"
            ),
            Self::AlreadyExists(pid) => write!(f, "the PID {pid} is taken by a live process"),
            Self::InvalidPid { pid, why } => {
                write!(f, "invalid PID {pid}: {why}")
            }
            Self::NotNamed(error) => write!(f, "{error}"),
            Self::Prevented(error) => write!(f, "a step before init failed: {error}"),
            Self::InitFailed(error) => write!(f, "init failed: {error}"),
            Self::InitPanicked(message) => write!(f, "init panicked: {message}"),
            Self::StartRefused(error) => {
                write!(f, "the lifecycle hook refused the start: {error}")
            }
            Self::StartPanicked(message) => write!(f, "the lifecycle hook panicked: {message}"),
        }
    }
}

impl Error for SubmitErrorKind {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::InitFailed(error) | Self::StartRefused(error) | Self::Prevented(error) => {
                error.source()
            }
            _ => None,
        }
    }
}

impl SubmitError {
    /// Creates the refusal for the reason `kind`, without a process.
    #[must_use]
    pub fn new(kind: SubmitErrorKind) -> Self {
        Self {
            kind,
            refused: None,
        }
    }

    /// Puts the refused process and its input into the refusal.
    #[must_use]
    pub fn with_process(self, process: Box<dyn Process>, input: Payloads) -> Self {
        Self {
            refused: Some((Exclusive::new(process), input)),
            ..self
        }
    }

    /// Returns the process, if it can be submitted again; see [`into_parts`](Self::into_parts).
    #[must_use]
    pub fn into_process(self) -> Option<Box<dyn Process>> {
        self.into_parts().map(|(process, _)| process)
    }

    /// Returns the process and its input, if it can be submitted again: when it was refused before
    /// its `init`, or when `init` returned an error. In the latter case the input has been
    /// consumed.
    ///
    /// `None` when `init` panicked, or when it succeeded and the start was refused afterwards. Then
    /// the process has been dropped.
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

/// The text of the kind is part of this error's text. So its source is the source of the kind.
impl Error for SubmitError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.kind.source()
    }
}
