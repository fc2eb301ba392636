//! The deque as its users see it, and the models of what its two sides do at the same time.
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
