//! The states of a process's life.

use serde::{Deserialize, Serialize};

/// The state of a process's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It waits in a queue for a worker.
    Ready,
    /// A worker is inside of its step.
    Running,
    /// It waits for the completion of a command.
    Blocked,
    /// It waits, and no command is outstanding.
    Idle,
    /// It takes no steps until it is resumed.
    Suspended,
    /// The endpoint does not know its state.
    Other,
}

impl State {
    /// Returns the name of the state, as in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Blocked => "blocked",
            Self::Idle => "idle",
            Self::Suspended => "suspended",
            Self::Other => "other",
        }
    }
}
