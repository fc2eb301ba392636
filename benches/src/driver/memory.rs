//! The machine's memory before a run.
//!
//! A virtual machine gives memory that was unused for a while back to its host. The first run after
//! a pause would wait in the host for each of its pages. So the driver touches the pages before
//! each run, whichever peer runs.

use crate::text::number;
use std::fs;
use std::hint::black_box;

/// The requested bytes, if the machine has enough.
const WANTED: u64 = 512 << 20;

/// The divisor of the available memory for a request.
const PART: u64 = 4;

/// Returns how many bytes of memory may be used; `None` where the system does not say.
pub(super) fn available() -> Option<u64> {
    let info = fs::read_to_string("/proc/meminfo").ok()?;
    Some(1024 * number(&info, "MemAvailable:")?)
}

/// Writes to as much memory as a run may need, and frees it. Does nothing if the system does not
/// say how much it has. Takes longer if the host must give the memory first.
pub(super) fn warm() {
    let bytes = available().map_or(0, wanted);
    let mut memory: Vec<u8> = Vec::new();
    // Refused: then no run can have it either.
    if memory.try_reserve_exact(bytes).is_ok() {
        memory.resize(bytes, 1);
        black_box(&memory);
    }
}

/// Returns how many of the available bytes are touched.
fn wanted(available: u64) -> usize {
    usize::try_from(WANTED.min(available / PART)).unwrap_or(0)
}
