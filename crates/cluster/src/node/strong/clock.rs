//! The clock of leases: it counts the time that the machine sleeps.

use ganger_proc_api::Instant;
use ganger_sched::internal::here;

/// A clock for leases. Tests have others.
pub(crate) type LeaseClock = Box<dyn Fn() -> Instant + Send + Sync>;

/// Returns the time of this thread's simulation, or else of the machine, with its sleep where the
/// system has such a clock (`CLOCK_BOOTTIME` of Linux).
pub(crate) fn now() -> Instant {
    let now = here::simulated().unwrap_or_else(machine);
    Instant::from_nanos(0) + now
}

#[cfg(target_os = "linux")]
fn machine() -> std::time::Duration {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::Boottime);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    std::time::Duration::new(seconds.unwrap_or(0), nanos.unwrap_or(0))
}

#[cfg(not(target_os = "linux"))]
fn machine() -> std::time::Duration {
    here::now()
}
