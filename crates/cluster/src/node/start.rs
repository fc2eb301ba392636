//! The time of a node's start, as its incarnation says.

use crate::id::Incarnation;
use ganger_sched::internal::here;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// When simulations begin, since the Unix epoch.
const SIMULATED: Duration = Duration::from_secs(1_700_000_000);

/// Returns the time of the clock since the Unix epoch. In a simulation, of the machine.
fn since_epoch() -> Duration {
    match here::simulated() {
        Some(now) => SIMULATED + now,
        None => (SystemTime::now().duration_since(UNIX_EPOCH)).unwrap_or_default(),
    }
}

/// Returns the incarnation of a node that starts now. Two starts in one millisecond differ by the
/// nanoseconds of another clock.
pub(super) fn incarnation() -> Incarnation {
    let millis = u64::try_from(since_epoch().as_millis()).unwrap_or(u64::MAX);
    let [low, high, ..] = here::now().subsec_nanos().to_le_bytes();
    Incarnation::new(millis, u16::from_le_bytes([low, high]))
}

/// Returns the time of the clock, in microseconds since 1970.
pub(super) fn micros() -> u64 {
    u64::try_from(since_epoch().as_micros()).unwrap_or(u64::MAX)
}
