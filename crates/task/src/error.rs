//! Errors of waits and scopes.

use ganger_proc_api::{
    BoxError, CancelReason, CommandError, ExitCause, MonitorError, Pid, WrongType,
};
use std::error::Error;

/// Why a wait of a task has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The task was cancelled. A task that ends with this error ends as cancelled:
    /// `ExitReason::Cancelled`.
    #[error("cancelled: {0}")]
    Cancelled(CancelReason),
    /// The time is over.
    #[error("timed out")]
    TimedOut,
    /// The command has failed.
    #[error(transparent)]
    Command(CommandError),
    /// The process can't be monitored from here.
    #[error(transparent)]
    Monitor(MonitorError),
}

impl WaitError {
    /// Returns whether the error is a cancellation.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Cancelled(_))
    }
}

impl From<WrongType> for WaitError {
    fn from(error: WrongType) -> Self {
        Self::Command(error.into())
    }
}

/// A child of a scope has not finished by itself, so the scope has failed.
#[derive(Debug, thiserror::Error)]
#[error("the child {pid} has ended: {cause}")]
#[non_exhaustive]
pub struct ChildError {
    /// The child.
    pub pid: Pid,
    /// The end of the child.
    pub cause: ExitCause,
    /// The child's own error, if any.
    pub source: Option<BoxError>,
}

/// A child has ended without a result. The scope reports the cause.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the child ended without a result")]
pub struct ChildLost;

/// Returns whether this error, or an error in its sources, is a cancellation of the task.
pub(crate) fn is_cancelled(error: &BoxError) -> bool {
    has_source(error, |it| {
        it.downcast_ref().is_some_and(WaitError::is_cancelled)
    })
}

pub(crate) fn has_source(error: &BoxError, is: impl Fn(&(dyn Error + 'static)) -> bool) -> bool {
    let mut next: Option<&(dyn Error + 'static)> = Some(&**error);
    while let Some(error) = next {
        if is(error) {
            return true;
        }
        next = error.source();
    }
    false
}

/// Returns the error's text, with the texts of its sources.
pub(crate) fn text(error: &BoxError) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text = format!("{text}: {source}");
        next = source.source();
    }
    text
}
