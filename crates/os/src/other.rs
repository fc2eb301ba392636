//! Systems that say nothing of threads.

use std::io;
use std::time::Duration;

/// The id that the system knows the calling thread by; 0 where it says none.
#[must_use]
pub fn thread_id() -> u32 {
    0
}

/// Whether the thread sleeps at this moment, in whatever call; `None` where the system does not
/// say.
#[must_use]
pub fn is_asleep(_: u32) -> Option<bool> {
    None
}

/// How long the thread has had a processor; `None` where the system does not say.
#[must_use]
pub fn computed(_: u32) -> Option<Duration> {
    None
}

pub(crate) fn allowed_cores() -> io::Result<Vec<usize>> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn allow_cores(_: u32, _: &[usize]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
