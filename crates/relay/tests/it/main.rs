//! What the relay promises: R2 to R5. Each test names the promise that it pins.
#![cfg(not(ganger_loom))]

mod channel_host;
mod common;
mod model;
mod node;
mod order;
mod reentry;
mod router;
mod stress;
