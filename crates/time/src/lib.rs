#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod commands;
mod context;
mod every;
mod keyed;
mod output;
mod rate_limiter;
mod shard;
mod timeouts;
mod timer;
mod timers;
mod within;

pub use commands::{ASK_WITHIN, SLEEP, TICKER, TIMER, ZeroPeriod};
pub use context::TimerContext;
pub use every::{Interval, MissedTicks};
pub use ganger_sched::Instant;
pub use keyed::KeyedTimers;
pub use output::TimerOutput;
pub use rate_limiter::{RateLimitError, RateLimiter};
pub use timeouts::{ReceiveTimeout, StateTimeout};
pub use timer::Timer;
pub use timers::{TimerStats, Timers};
