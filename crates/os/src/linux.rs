//! Linux: `/proc` has an account of each thread, and a thread has a mask of cores.

use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_setaffinity};
use std::fs::read_to_string;
use std::io;
use std::time::Duration;

/// The id that the system knows the calling thread by; 0 where it says none.
#[must_use]
pub fn thread_id() -> u32 {
    gettid().as_raw_nonzero().get().unsigned_abs()
}

/// Whether the thread sleeps at this moment, in whatever call; `None` where the system does not
/// say.
#[must_use]
pub fn is_asleep(thread: u32) -> Option<bool> {
    let account = read_to_string(format!("/proc/self/task/{thread}/stat")).ok()?;
    // The name before it is in brackets, and may have brackets in it.
    let (_, after) = account.rsplit_once(") ")?;
    Some(after.starts_with(['S', 'D']))
}

/// How long the thread has had a processor; `None` where the system does not say.
#[must_use]
pub fn computed(thread: u32) -> Option<Duration> {
    let account = read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
    let nanos = account.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}

/// The cores that the calling thread may use, in order.
pub(crate) fn allowed_cores() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|&core| set.is_set(core))
        .collect())
}

/// Lets a thread, or with 0 the calling one, run on these cores alone.
pub(crate) fn allow_cores(thread: u32, cores: &[usize]) -> io::Result<()> {
    let thread = i32::try_from(thread).ok().and_then(Pid::from_raw);
    let mut set = CpuSet::new();
    cores.iter().for_each(|&core| set.set(core));
    Ok(sched_setaffinity(thread, &set)?)
}
