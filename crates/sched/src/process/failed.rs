//! The data of a failed process, until it is known whether anything watches it.

use crate::base::stats::Counters;
use crate::process::exit_actions::ExitActions;
use ganger_proc_api::{ExitCause, ExitReason};

pub(crate) struct Failed {
    /// The names of the process before it released them.
    pub(crate) names: Vec<Box<str>>,
}

impl Failed {
    /// Returns the data, unless an action notifies code that handles the failure.
    pub(crate) fn unless_watched(
        self: Box<Self>,
        actions: Option<&ExitActions>,
        counters: &Counters,
    ) -> Option<Box<Self>> {
        let is_watched = actions.is_some_and(|it| it.are_watched(counters));
        (!is_watched).then_some(self)
    }
}

/// Returns whether the process has failed, or has ended because another process has, or because the
/// connection to a linked process is lost.
pub(crate) fn is_failure(reason: &ExitReason) -> bool {
    match reason {
        ExitReason::Failed(_) | ExitReason::Panicked(_) | ExitReason::UpgradeFailed(_) => true,
        ExitReason::Exited(cause) => matches!(
            cause,
            ExitCause::Failed(_)
                | ExitCause::Panicked(_)
                | ExitCause::UpgradeFailed(_)
                | ExitCause::NoConnection
        ),
        _ => false,
    }
}
