//! Pools, compared with a specification of theirs.

mod play;
mod spec;

pub use play::play_pool;
pub use spec::{Job, PoolAct, PoolPlan};
