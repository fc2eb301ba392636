//! The limits and the time-outs of a server.

use std::time::Duration;

/// The limits of a server's connections.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) connections: usize,
    pub(super) header: Duration,
    pub(super) idle: Duration,
    pub(super) write: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            header: Duration::from_secs(30),
            idle: Duration::from_secs(75),
            write: Duration::from_secs(30),
        }
    }
}
