//! Tests of the ring and its records.
#![allow(missing_docs)]

mod behaviour;
mod loom_ring;

#[cfg(not(ganger_loom))]
mod event;
#[cfg(not(ganger_loom))]
mod model;
#[cfg(not(ganger_loom))]
mod stress;
