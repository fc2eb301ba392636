//! How a process ends.

use super::{CancelReason, ExitCause};
use crate::values::{BoxError, Payload, Symbol};
use std::any::Any;
use std::error::Error;
use std::fmt;

/// Why a process ended. Every process has exactly one exit reason.
#[derive(Debug)]
#[non_exhaustive]
pub enum ExitReason {
    /// The process finished by itself, with this result.
    Done(Payload),
    /// A step returned this error.
    Failed(BoxError),
    /// A step panicked, with this message.
    Panicked(Box<str>),
    /// The process was cancelled for this reason, and did not say how it finishes.
    Cancelled(CancelReason),
    /// The process was terminated: by a call, or because a shutdown's deadline had passed.
    Terminated,
    /// The process asked to be replaced, and the replacement failed.
    UpgradeFailed(UpgradeError),
    /// An exit signal ended it, of a linked process for instance, for this cause.
    Exited(ExitCause),
}

impl ExitReason {
    /// Returns the result, if the process finished by itself.
    ///
    /// ```
    /// use ganger_proc_api::{BoxError, ExitReason, Payload};
    ///
    /// fn number(exit: ExitReason) -> Result<Option<u64>, BoxError> {
    ///     Ok(exit.into_result()?.as_u64())
    /// }
    /// assert_eq!(number(ExitReason::Done(Payload::from(7_u64))).unwrap(), Some(7));
    /// let error = number(ExitReason::Failed("no luck".into())).unwrap_err();
    /// assert_eq!(error.to_string(), "failed: no luck");
    /// ```
    ///
    /// # Errors
    /// Gives the reason back when the process ended in another way.
    pub fn into_result(self) -> Result<Payload, Self> {
        match self {
            Self::Done(payload) => Ok(payload),
            other => Err(other),
        }
    }

    /// Returns the result as a `T`, if the process finished by itself with a `T`.
    ///
    /// ```
    /// use ganger_proc_api::ExitReason;
    ///
    /// let sum: u64 = ExitReason::Done(42_u64.into()).take()?;
    /// assert_eq!(sum, 42);
    /// let error = ExitReason::Failed("no luck".into()).take::<u64>().unwrap_err();
    /// assert_eq!(error.to_string(), "failed: no luck");
    /// # Ok::<(), ganger_proc_api::BoxError>(())
    /// ```
    ///
    /// # Errors
    /// The reason itself when the process ended in another way, and [`WrongType`], with the result
    /// inside, when the result is of another type.
    ///
    /// [`WrongType`]: crate::WrongType
    pub fn take<T: Any>(self) -> Result<T, BoxError> {
        Ok(self.into_result()?.take()?)
    }

    /// Returns whether the process finished by itself.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }
}

impl fmt::Display for ExitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(_) => f.write_str("done"),
            Self::Failed(error) => write!(f, "failed: {error}"),
            Self::Panicked(message) => write!(f, "panicked: {message}"),
            Self::Cancelled(reason) => write!(f, "cancelled: {reason}"),
            Self::Terminated => f.write_str("terminated"),
            Self::UpgradeFailed(error) => write!(f, "upgrade failed: {error}"),
            Self::Exited(cause) => write!(f, "{cause}"),
        }
    }
}

/// Lets `exit.into_result()?` report the failure. The text of an inner error is part of the
/// reason's text, and the inner error's source is the reason's source.
impl Error for ExitReason {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Failed(error) => error.source(),
            Self::UpgradeFailed(error) => error.source(),
            _ => None,
        }
    }
}

/// Why a process could not be replaced.
///
/// The text of an inner error is part of this error's text, and the inner error's source is this
/// error's source.
#[derive(Debug)]
#[non_exhaustive]
pub enum UpgradeError {
    /// No factory has this name.
    UnknownFactory(Symbol),
    /// The factory panicked, with this message.
    FactoryPanicked(Box<str>),
    /// The new process's `init` returned this error.
    InitFailed(BoxError),
    /// The new process's `init` panicked, with this message.
    InitPanicked(Box<str>),
}

impl fmt::Display for UpgradeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownFactory(name) => write!(f, "no factory named {name:?} is registered"),
            Self::FactoryPanicked(message) => write!(f, "the factory panicked: {message}"),
            Self::InitFailed(error) => write!(f, "the new process's init failed: {error}"),
            Self::InitPanicked(message) => write!(f, "the new process's init panicked: {message}"),
        }
    }
}

impl Error for UpgradeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::InitFailed(error) => error.source(),
            _ => None,
        }
    }
}
