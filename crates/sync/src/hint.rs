//! The spin hint: `std`'s, or a yield to the model under loom (a spinning thread makes no progress
//! there unless it lets another one run).

#[cfg(loom)]
pub use loom::hint::spin_loop;
#[cfg(not(loom))]
pub use std::hint::spin_loop;
