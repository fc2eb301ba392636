#![doc = include_str!("../README.md")]

pub mod atomic;
pub mod cell;
#[doc(hidden)]
pub mod failing;
pub mod fence;
pub mod hint;
pub mod model;
pub mod sync;
pub mod thread;

mod burst;
mod count;
mod driving;
mod foreign;
mod lent_parker;
mod parker;
mod scoped;
mod table;
mod try_lock;
mod wait_table;

pub use burst::{Roomy, shrink_after_burst};
pub use count::{ShardedCount, WaitableCount};
pub use crossbeam_utils::CachePadded;
pub use driving::{driving, is_driving, refuse_to_wait_in_driver};
pub use foreign::{contain, discard_panic, for_each_past_panics, panic_text, wake_all};
pub use lent_parker::LentParker;
pub use parker::Parker;
pub use scoped::{Scoped, scoped};
pub use table::Table;
pub use try_lock::TryLock;
pub use wait_table::{WaitList, WaitTable};

/// Picks a size: the first in production, the second under loom.
///
/// Loom explores every interleaving, so a ring of 256 slots becomes a ring of 4. The code around
/// the size stays the same.
///
/// ```
/// const SLOTS: usize = ganger_sync::sized(256, 4);
/// assert_eq!(SLOTS, 256);
/// ```
#[must_use]
pub const fn sized(production: usize, under_loom: usize) -> usize {
    if cfg!(ganger_loom) {
        under_loom
    } else {
        production
    }
}
