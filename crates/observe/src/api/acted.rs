//! The answer to an action.

use serde::{Deserialize, Serialize};

/// The answer of `/api/v1/process/{pid}/cancel` and `/terminate`: what was asked of the process. It
/// may not have ended yet.
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
}

/// What an endpoint does to a process, where `Serve::allow_actions` allows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Action {
    /// The process is asked to finish, and chooses how.
    Cancel,
    /// The process takes no further step.
    Terminate,
}

impl Action {
    /// The name in the path and in the JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Terminate => "terminate",
        }
    }
}
