//! The request to put another process in the place of a process.

use super::Process;
use crate::events::ExitCause;
use crate::raw::Exclusive;
use crate::values::{IntoPayloads, Payloads, Symbol};
use std::fmt;

/// Asks for a process to be replaced by another under the same PID.
///
/// The scheduler first creates and initialises the new process. Then it closes the old process.
/// Then the new process steps. Messages that the old process has not taken go to the new process,
/// even if they arrived before the request. Completions of the old process's commands do not.
pub struct UpgradeRequest {
    /// The replacement.
    pub target: UpgradeTarget,
    /// The entry point for the new process's `init`.
    pub method: Symbol,
    /// The input for the new process's `init`.
    pub input: Payloads,
}

/// The replacement of a process.
#[non_exhaustive]
pub enum UpgradeTarget {
    /// A process from the factory with this name. The scheduler knows the factory.
    Factory(Symbol),
    /// This process.
    Process(Exclusive<Box<dyn Process>>),
    /// This process, after the failure of the process before: the registrations of the failed
    /// process go as at its end.
    #[doc(hidden)]
    Restart(Exclusive<Box<dyn Process>>, ExitCause),
}

impl UpgradeRequest {
    /// Makes an upgrade to a process from the factory `name`.
    #[must_use]
    pub fn factory(
        name: impl Into<Symbol>,
        method: impl Into<Symbol>,
        input: impl IntoPayloads,
    ) -> Self {
        let target = UpgradeTarget::Factory(name.into());
        Self {
            target,
            method: method.into(),
            input: input.into_payloads(),
        }
    }

    /// Creates an upgrade to `process`.
    #[must_use]
    pub fn process(
        process: impl Process,
        method: impl Into<Symbol>,
        input: impl IntoPayloads,
    ) -> Self {
        let target = UpgradeTarget::Process(Exclusive::new(Box::new(process)));
        Self {
            target,
            method: method.into(),
            input: input.into_payloads(),
        }
    }

    /// Makes a restart in place, by `process`, of a process that has failed for this cause: for
    /// crates above the scheduler.
    #[doc(hidden)]
    #[must_use]
    pub fn restart(process: impl Process, method: impl Into<Symbol>, cause: ExitCause) -> Self {
        let process = Exclusive::new(Box::new(process) as Box<dyn Process>);
        Self {
            target: UpgradeTarget::Restart(process, cause),
            method: method.into(),
            input: Payloads::new(),
        }
    }
}

impl fmt::Debug for UpgradeRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpgradeRequest")
            .field("target", &self.target)
            .field("method", &self.method)
            .field("input", &self.input)
            .finish()
    }
}

impl fmt::Debug for UpgradeTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Factory(name) => f.debug_tuple("Factory").field(name).finish(),
            Self::Process(_) => f.write_str("Process(..)"),
            Self::Restart(_, cause) => f.debug_tuple("Restart").field(cause).finish(),
        }
    }
}
