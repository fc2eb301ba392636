//! The answer with the last events of a process.

use serde::{Deserialize, Serialize};

/// The answer of `/api/v1/process/{pid}/events`: what the flight recorder has of the process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessEvents {
    /// [`VERSION`](super::VERSION).
    pub version: u32,
    /// The number of the scheduler in the endpoint.
    pub scheduler: u64,
    /// The PID of the process, which may have ended.
    pub pid: String,
    /// The events, the oldest first.
    pub events: Vec<ProcessEvent>,
}

/// An event of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessEvent {
    /// When, in nanoseconds since the scheduler's start.
    pub at_ns: u64,
    /// The recording thread: `worker 0`.
    pub thread: String,
    /// The act of the process: `takes`, `turn begins`, `is spawned`.
    pub what: String,
    /// The rest: types, methods, commands and other processes. No payloads.
    pub text: String,
}
