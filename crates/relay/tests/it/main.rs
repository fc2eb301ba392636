//! Tests of the relay's promises R2 to R5. Each test names its promise.
#![cfg(not(ganger_loom))]

mod channel_host;
mod common;
mod model;
mod node;
mod order;
mod reentry;
mod router;
mod stress;
