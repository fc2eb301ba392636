//! Systems without information on threads.

use std::io;
use std::time::Duration;

/// Returns the system's id of the calling thread; 0 if the system has none.
#[must_use]
pub fn thread_id() -> u32 {
    0
}

/// Nothing is known of threads.
#[derive(Debug, Default)]
pub struct ThreadFiles(());

impl ThreadFiles {
    /// Returns whether the thread sleeps at this moment, in any call; `None` if the system does not
    /// say.
    #[must_use]
    pub fn is_asleep(&mut self, _: u32) -> Option<bool> {
        None
    }

    /// Returns how long the thread has had a processor; `None` if the system does not say.
    #[must_use]
    pub fn computed(&mut self, _: u32) -> Option<Duration> {
        None
    }
}

pub(crate) fn allowed_cores() -> io::Result<Vec<usize>> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn allow_cores(_: u32, _: &[usize]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
