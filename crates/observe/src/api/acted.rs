//! The answer to an action.

use serde::{Deserialize, Serialize};

/// The answer of an action, such as `/api/v1/process/{pid}/cancel`: what was asked of the process.
/// It may not have happened yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acted {
    /// [`VERSION`](super::VERSION).
    pub version: u32,
    /// The number of the scheduler in the endpoint.
    pub scheduler: u64,
    /// The PID of the process.
    pub pid: String,
    /// What was done.
    pub action: Action,
    /// Of [`Action::Suspend`]: whether the process stands still by now. Else it does so when its
    /// turn is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stands: Option<bool>,
    /// Of [`Action::Restart`]: the PID of the new process, where it has started by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successor: Option<String>,
}

/// An action of an endpoint on a process, where `Serve::allow_actions` allows actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Action {
    /// The process is asked to finish, and chooses how.
    Cancel,
    /// The process takes no further step.
    Terminate,
    /// The process takes no step until it is resumed.
    Suspend,
    /// The process takes steps again.
    Resume,
    /// The supervisor of the process stops it, and starts another one in its place.
    Restart,
}

impl Action {
    /// Returns the name in the path and in the JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Terminate => "terminate",
            Self::Suspend => "suspend",
            Self::Resume => "resume",
            Self::Restart => "restart",
        }
    }
}
