//! Tests of the public behaviour, and models of both sides at the same time.
#![allow(missing_docs)]

mod behaviour;
mod fork_join;
mod loom_drop;
mod loom_exposure;
mod loom_fallback;
mod loom_growth;
mod loom_shrink;
mod loom_steal_half;
mod loom_two_thieves;
mod model;
mod support;
