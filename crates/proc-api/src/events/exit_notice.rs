//! The notice that a monitor gets when its target ends.

use super::{ExitCause, ExitReason};
use crate::commands::Tag;
use crate::values::Pid;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The end of a process, as its [monitor](crate::Context::monitor) sees it.
#[derive(Debug, Clone)]
pub struct ExitNotice {
    /// The ended process.
    pub pid: Pid,
    /// The monitoring process's tag.
    pub tag: Tag,
    /// How it ended.
    pub cause: ExitCause,
    in_order: bool,
    withdrawal: Option<Withdrawal>,
    /// Withdrawn with the incarnation that the notice is for.
    incarnation: Option<Withdrawal>,
}

impl ExitNotice {
    /// Creates a notice, for schedulers and for unit tests of processes.
    #[must_use]
    pub fn new(pid: Pid, tag: Tag, cause: ExitCause) -> Self {
        Self {
            pid,
            tag,
            cause,
            in_order: false,
            withdrawal: None,
            incarnation: None,
        }
    }

    /// Makes the notice overtake nothing: for schedulers.
    #[must_use]
    pub fn in_order(self) -> Self {
        Self {
            in_order: true,
            ..self
        }
    }

    /// Returns whether the notice stays behind the messages that have arrived before it.
    #[must_use]
    pub fn is_in_order(&self) -> bool {
        self.in_order
    }

    /// Makes a withdrawal hide the notice from later steps: for crates above the scheduler.
    #[must_use]
    pub fn withdrawn_by(self, withdrawal: &Withdrawal) -> Self {
        Self {
            withdrawal: Some(withdrawal.clone()),
            ..self
        }
    }

    /// Makes the notice one for an incarnation of a process that is restarted in place: no other
    /// incarnation is shown it. For crates above the scheduler.
    #[must_use]
    pub fn for_incarnation(self, end: Option<Withdrawal>) -> Self {
        Self {
            incarnation: end,
            ..self
        }
    }

    /// Returns whether the notice has been withdrawn: [`Events`](crate::Events) passes it over.
    #[must_use]
    #[inline]
    pub fn is_withdrawn(&self) -> bool {
        let either = [&self.withdrawal, &self.incarnation];
        either.into_iter().flatten().any(Withdrawal::is_withdrawn)
    }
}

/// Two notices are equal when they say the same.
impl PartialEq for ExitNotice {
    fn eq(&self, other: &Self) -> bool {
        (self.pid, self.tag, &self.cause) == (other.pid, other.tag, &other.cause)
    }
}

impl Eq for ExitNotice {}

/// Withdraws notices of exits, queued notices included. A clone withdraws the same notices.
///
/// ```
/// use ganger_proc_api::{Event, Events, ExitCause, ExitNotice, Withdrawal};
/// use std::collections::VecDeque;
///
/// let withdrawal = Withdrawal::default();
/// let notice = ExitNotice::new("{main|7}".parse()?, 1, ExitCause::Done);
/// let notice = Event::Exit(Box::new(notice.withdrawn_by(&withdrawal)));
/// let mut queue = VecDeque::from([notice]);
/// withdrawal.withdraw();
/// assert!(Events::new(&mut queue).next().is_none());
/// # Ok::<(), ganger_proc_api::BoxError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Withdrawal(Arc<AtomicBool>);

impl Withdrawal {
    /// Withdraws the notices: later steps are not shown them. A step that runs at this moment may
    /// have seen a notice already.
    pub fn withdraw(&self) {
        // Ordering: Relaxed: the flag publishes nothing. A later step of the same process comes
        // after this store in the order of the process's turns.
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether the notices have been withdrawn.
    #[must_use]
    #[inline]
    pub fn is_withdrawn(&self) -> bool {
        // Ordering: Relaxed: reads the store of `withdraw`, which publishes nothing.
        self.0.load(Ordering::Relaxed)
    }

    /// Returns whether both withdraw the same notices.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns whether a clone exists, for example in a notice that no step has taken.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

impl ExitCause {
    /// Returns the cause for `reason`; `text` makes the texts of errors. For schedulers.
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
            ExitReason::Exited(cause) => cause.clone(),
        }
    }
}

/// A process can't be monitored from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("can't monitor {pid}: not a process of this scheduler")]
pub struct MonitorError {
    /// The PID of the intended target.
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
