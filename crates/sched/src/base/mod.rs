//! The base of all layers: the clock, counters, and the containment of panics.
//!
//! **Promise.** No function here blocks for another thread. A reader of `shares` waits until a
//! worker has written some words.
//!
//! **Imports.** No folder of this crate.

pub(crate) mod clock;
pub(crate) mod contain;
pub(crate) mod level;
pub(crate) mod recorder;
#[cfg(any(test, feature = "observe"))]
pub(crate) mod shares;
pub(crate) mod stats;
#[cfg(any(test, feature = "observe"))]
pub(crate) mod ticks;
#[cfg_attr(
    not(feature = "observe"),
    expect(dead_code, unreachable_pub, reason = "the feature makes it public")
)]
pub(crate) mod tracer;
