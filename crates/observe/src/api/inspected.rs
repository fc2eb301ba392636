//! The answer with the state of a process.

use serde::{Deserialize, Serialize};

/// The answer of `/api/v1/process/{pid}/state`: the text of the hook `Process::inspect`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inspected {
    /// [`VERSION`](super::VERSION).
    pub version: u32,
    /// The number of the scheduler in the endpoint.
    pub scheduler: u64,
    /// The PID of the process.
    pub pid: String,
    /// The state; `None` where the type of the process has no hook.
    pub state: Option<String>,
    /// The message of the hook's panic. The process goes on.
    pub panic: Option<String>,
}
