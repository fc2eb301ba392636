#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

// Each of these may import those to its right: wheel > entries > slots > blocks.
mod blocks;
mod entries;
mod slots;
mod wheel;

pub use entries::Key;
pub use wheel::Wheel;
