#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

// Each module may import the modules before it in: host, entry < shard < shards < timer, within <
// commands, timers. The tools of processes import none of them.
mod commands;
mod entry;
mod every;
mod host;
mod keyed;
mod shard;
mod shards;
mod timeouts;
mod timer;
mod timers;
mod within;

pub use commands::ZeroPeriod;
pub use every::{Interval, MissedTicks};
pub use ganger_proc_api::Instant;
pub use keyed::KeyedTimers;
pub use shard::TimerStats;
pub use timeouts::{ReceiveTimeout, StateTimeout};
pub use timer::Timer;
pub use timers::Timers;

/// For the scheduler that has the timers, and for crates that add to it. No part of the promises.
#[doc(hidden)]
pub mod internal {
    pub use crate::commands::{COMMANDS, Commands, due};
    pub use crate::entry::OnTime;
    pub use crate::host::{Cause, ShardId, Ticket, TimerHost};
    pub use crate::shards::{NotSet, Shards, TimerKey};
}
