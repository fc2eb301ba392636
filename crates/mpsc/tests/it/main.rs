//! Tests of queues and channels, and models of both sides at the same time.
#![allow(missing_docs)]

mod auto_traits;
mod bounded;
mod large_items;
mod loom_bounded;
mod loom_channel;
mod loom_close;
mod loom_len;
mod loom_park;
mod loom_push_drain;
mod loom_task;
mod model;
mod outcomes;
mod panics;
#[cfg(feature = "async")]
mod polling;
mod send_async;
mod stress;
mod support;
mod task;
mod tokens;
