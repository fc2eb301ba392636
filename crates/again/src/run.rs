//! The run of the program, and the numbers of its messages.
//!
//! Both differ from run to run, also in a simulation: receivers compare numbers, and no decision
//! depends on their values.

use ganger_sync::atomic::{AtomicU64, Ordering};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// A run of a program: two runs are never the same.
pub(crate) type Run = u128;

/// Returns the run of this program.
pub(crate) fn own() -> Run {
    static RUN: OnceLock<Run> = OnceLock::new();
    *RUN.get_or_init(|| {
        let half = || u128::from(RandomState::new().hash_one(next_number()));
        half() << 64 | half()
    })
}

/// Returns a number greater than all earlier numbers in the program. Numbers of two programs differ
/// by about the time between: microseconds since 1970.
pub(crate) fn next_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = since.map_or(0, |it| u64::try_from(it.as_micros()).unwrap_or(0));
    let next = |last: u64| now.max(last.saturating_add(1));
    // Ordering: Relaxed: the numbers alone count.
    let before = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
        Some(next(last))
    });
    next(before.unwrap_or_else(|last| last))
}
