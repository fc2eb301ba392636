//! What the system knows of a worker's thread: which it is, whether it sleeps, how long it has computed.
//!
//! Linux alone says so, in `/proc`; elsewhere nothing is known.

use std::time::Duration;

#[cfg(target_os = "linux")]
pub(super) fn thread_id() -> u32 {
    rustix::thread::gettid()
        .as_raw_nonzero()
        .get()
        .unsigned_abs()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn thread_id() -> u32 {
    0
}

/// Asks the system's account of the thread.
#[cfg(target_os = "linux")]
pub(super) fn is_asleep(thread: u32) -> Option<bool> {
    let account = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).ok()?;
    // The name before it is in brackets, and may have brackets in it.
    let (_, after) = account.rsplit_once(") ")?;
    Some(after.starts_with(['S', 'D']))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn is_asleep(_: u32) -> Option<bool> {
    None
}

/// Asks the system's account of the thread, in nanoseconds.
#[cfg(target_os = "linux")]
pub(super) fn computed(thread: u32) -> Option<Duration> {
    let account = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
    let nanos = account.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn computed(_: u32) -> Option<Duration> {
    None
}
