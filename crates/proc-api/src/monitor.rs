//! Being told that another process has ended.

use crate::{ExitReason, Pid, Tag};
use std::fmt;
use std::sync::Arc;

/// Says to a process that one which it [monitors](crate::ProcessContext::monitor) has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExitNotice {
    /// Who has ended.
    pub pid: Pid,
    /// The tag that the process gave the monitor.
    pub tag: Tag,
    /// How it ended.
    pub cause: ExitCause,
}

impl ExitNotice {
    /// A notice, for schedulers and for unit tests of processes.
    #[must_use]
    pub fn new(pid: Pid, tag: Tag, cause: ExitCause) -> Self {
        Self { pid, tag, cause }
    }
}

/// How a process ended, for those who monitor it. Its result, or its error, goes to whoever has its handle; here is what
/// many can be told.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExitCause {
    /// It finished by itself.
    Done,
    /// A step returned an error, with this text: the error's, and those of its sources, of which there may be many.
    /// Whoever ends the process asks for the text before it is told to anybody.
    Failed(Arc<str>),
    /// A step panicked, with this message.
    Panicked(Arc<str>),
    /// It was terminated: by a call, or because a shutdown's deadline had passed.
    Terminated,
    /// It was to be replaced, and could not be, for this reason.
    UpgradeFailed(Arc<str>),
    /// There was no such process when the monitor came to it: it had ended before, or there has never been one.
    NotFound,
}

impl ExitCause {
    /// The cause that a reason comes to, with the texts of errors by `text`; for schedulers.
    #[doc(hidden)]
    #[must_use]
    pub fn of(
        reason: &ExitReason,
        text: impl Fn(&(dyn std::error::Error + 'static)) -> Box<str>,
    ) -> Self {
        match reason {
            ExitReason::Done(_) => Self::Done,
            ExitReason::Failed(error) => Self::Failed(text(&**error).into()),
            ExitReason::Panicked(message) => Self::Panicked(message.clone().into()),
            ExitReason::Terminated => Self::Terminated,
            ExitReason::UpgradeFailed(error) => Self::UpgradeFailed(text(error).into()),
        }
    }

    /// Whether it finished by itself.
    #[must_use]
    pub fn is_done(&self) -> bool {
        *self == Self::Done
    }
}

impl fmt::Display for ExitCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Failed(error) => write!(f, "failed: {error}"),
            Self::Panicked(message) => write!(f, "panicked: {message}"),
            Self::Terminated => f.write_str("terminated"),
            Self::UpgradeFailed(error) => write!(f, "upgrade failed: {error}"),
            Self::NotFound => f.write_str("no such process"),
        }
    }
}

/// A process can't be monitored from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{pid} can't be monitored from here: it is no process of the same scheduler")]
pub struct MonitorError {
    /// Who was to be monitored.
    pub pid: Pid,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BoxError, Payload, UpgradeError};

    #[test]
    fn a_cause_says_what_its_reason_says() {
        let error = || BoxError::from("no luck");
        let reasons = [
            ExitReason::Done(Payload::UNIT),
            ExitReason::Failed(error()),
            ExitReason::Panicked("oh".into()),
            ExitReason::Terminated,
            ExitReason::UpgradeFailed(UpgradeError::InitFailed(error())),
        ];
        for reason in reasons {
            let cause = ExitCause::of(&reason, |error| error.to_string().into());
            assert_eq!(cause.to_string(), reason.to_string());
            assert_eq!(cause.is_done(), reason.is_done());
        }
    }
}
