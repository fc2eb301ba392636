//! How a process ended.

use crate::{BoxError, Payload, Symbol};

/// Why a process ended. Every process has exactly one.
#[derive(Debug)]
#[non_exhaustive]
pub enum ExitReason {
    /// It finished, with this result.
    Done(Payload),
    /// A step returned this error.
    Failed(BoxError),
    /// A step panicked, with this message.
    Panicked(Box<str>),
    /// It was terminated: by a call, or because a shutdown's deadline had passed.
    Terminated,
    /// It was to be replaced, and could not be.
    UpgradeFailed(UpgradeError),
}

impl ExitReason {
    /// The result, if it finished by itself.
    ///
    /// # Errors
    /// Gives the reason back when the process ended in another way.
    pub fn into_result(self) -> Result<Payload, Self> {
        match self {
            Self::Done(payload) => Ok(payload),
            other => Err(other),
        }
    }

    /// Whether it finished by itself.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }
}

impl std::fmt::Display for ExitReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Done(_) => f.write_str("done"),
            Self::Failed(error) => write!(f, "failed: {error}"),
            Self::Panicked(message) => write!(f, "panicked: {message}"),
            Self::Terminated => f.write_str("terminated"),
            Self::UpgradeFailed(error) => write!(f, "upgrade failed: {error}"),
        }
    }
}

/// Why a process could not be replaced.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpgradeError {
    /// No factory of that name is registered.
    #[error("no factory named {0:?} is registered")]
    UnknownFactory(Symbol),
    /// The factory panicked, with this message.
    #[error("the factory panicked: {0}")]
    FactoryPanicked(Box<str>),
    /// The new process's `init` returned this error.
    #[error("the new process's init failed: {0}")]
    InitFailed(#[source] BoxError),
    /// The new process's `init` panicked, with this message.
    #[error("the new process's init panicked: {0}")]
    InitPanicked(Box<str>),
}
