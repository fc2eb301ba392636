#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod event;

mod ring;

pub use ring::{Reader, SharedWriter, Snapshot, Writer, ring};
