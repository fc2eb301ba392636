#![doc = include_str!("../README.md")]

// Each of these may import those to its right: small_box > values, typed > cache > blocks >
// runs > set > slab, and cache > exchange. slots is alone.
mod blocks;
mod cache;
#[cfg(all(test, not(ganger_loom)))]
mod counting;
mod exchange;
#[cfg(test)]
mod loom_exchange;
#[cfg(test)]
mod loom_slab;
#[cfg(test)]
mod loom_slots;
mod runs;
mod set;
mod slab;
pub mod slots;
mod small_box;
mod typed;
pub mod values;

pub use cache::{DEFAULT_LIMIT, SLAB_BYTES, clear, end_runs, limit, set_limit};
pub use small_box::SmallBox;
pub use typed::{Returns, allocate, allocate_behind, free, stride};
