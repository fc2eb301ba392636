//! The notice that a monitor gets when its target ends.

use super::{ExitCause, ExitReason};
use crate::commands::Tag;
use crate::values::Pid;

/// The end of a process, as a process that [monitors](crate::Context::monitor) it sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExitNotice {
    /// The process that has ended.
    pub pid: Pid,
    /// The tag that the monitoring process chose.
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

impl ExitCause {
    /// The cause that belongs to `reason`; `text` makes the texts of errors. For schedulers.
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
            ExitReason::Cancelled(reason) => Self::Cancelled(reason.clone()),
            ExitReason::Terminated => Self::Terminated,
            ExitReason::UpgradeFailed(error) => Self::UpgradeFailed(text(error).into()),
        }
    }
}

/// A process can't be monitored from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{pid} can't be monitored from here: it is no process of the same scheduler")]
pub struct MonitorError {
    /// The PID that was to be monitored.
    pub pid: Pid,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::UpgradeError;
    use crate::values::{BoxError, Payload};

    #[test]
    fn a_cause_says_what_its_reason_says() {
        let error = || BoxError::from("no luck");
        let reasons = [
            ExitReason::Done(Payload::UNIT),
            ExitReason::Failed(error()),
            ExitReason::Panicked("oh".into()),
            ExitReason::Cancelled("enough".into()),
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
