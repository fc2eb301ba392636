//! Linux: `/proc` has an account of each thread, and a thread has a mask of cores.

use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_setaffinity};
use std::fs::read_to_string;
use std::io;
use std::time::Duration;

/// Returns the system's id of the calling thread; 0 if the system has none.
#[must_use]
pub fn thread_id() -> u32 {
    gettid().as_raw_nonzero().get().unsigned_abs()
}

/// Returns whether the thread sleeps at this moment, in any call; `None` if the system does not
/// say.
#[must_use]
pub fn is_asleep(thread: u32) -> Option<bool> {
    let account = read_to_string(format!("/proc/self/task/{thread}/stat")).ok()?;
    // The thread's name, before the state, is in brackets and may contain brackets.
    let (_, after) = account.rsplit_once(") ")?;
    Some(after.starts_with(['S', 'D']))
}

/// Returns how long the thread has had a processor; `None` if the system does not say.
#[must_use]
pub fn computed(thread: u32) -> Option<Duration> {
    let account = read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
    let nanos = account.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}

/// Returns the cores that the calling thread may use, in order.
pub(crate) fn allowed_cores() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|&core| set.is_set(core))
        .collect())
}

/// Restricts a thread, or with 0 the calling thread, to these cores.
pub(crate) fn allow_cores(thread: u32, cores: &[usize]) -> io::Result<()> {
    let thread = i32::try_from(thread).ok().and_then(Pid::from_raw);
    let mut set = CpuSet::new();
    cores.iter().for_each(|&core| set.set(core));
    Ok(sched_setaffinity(thread, &set)?)
}
