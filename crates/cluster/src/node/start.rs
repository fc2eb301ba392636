//! The time at which a node starts, which its incarnation says.

use crate::id::Incarnation;
use ganger_sched::internal::here;
use std::time::{SystemTime, UNIX_EPOCH};

/// The incarnation of a node that starts now. Two starts in one millisecond differ by the
/// nanoseconds of another clock.
pub(super) fn incarnation() -> Incarnation {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = since.map_or(0, |it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX));
    let [low, high, ..] = here::now().subsec_nanos().to_le_bytes();
    Incarnation::new(millis, u16::from_le_bytes([low, high]))
}

/// The time of the clock, in microseconds since 1970.
pub(super) fn micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |it| u64::try_from(it.as_micros()).unwrap_or(u64::MAX))
}
