#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod barrier;
mod blocking;
mod cancel;
mod deadlock;
mod mark;
mod mutex;
mod notify;
mod once;
mod rate_limiter;
mod rw_lock;
mod seat;
mod semaphore;
mod wait_group;

pub use barrier::{Barrier, BarrierWait};
pub use cancel::{CancellationToken, Cancelled};
pub use deadlock::{DeadlockKind, DeadlockReport, DeadlockWatch, Watch};
#[doc(inline)]
pub use ganger_wait::watch::{Party, Thing, Waiting};
pub use ganger_wait::{Until, block_on, block_on_for};
pub use mutex::{Guard, Lock, Locked, Mutex, MutexGuard, OwnedMutexGuard};
pub use notify::{Notified, Notify};
pub use once::{OnceCell, SingleFlight};
pub use rate_limiter::{RateLimitError, RateLimiter};
pub use rw_lock::{Mode, ReadGuard, Reads, RwGuard, RwLock, RwWait, WriteGuard, Writes};
pub use semaphore::{Acquire, AcquireError, Permits, Semaphore};
pub use wait_group::{BelowZero, GroupWait, Member, WaitGroup};
