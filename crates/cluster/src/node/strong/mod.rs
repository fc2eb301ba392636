//! Names and locks with at most one owner in the whole cluster.
//!
//! **Problem.** A process should be the only one of its kind in the cluster, also when nodes can't
//! hear each other, pause, or lose the store. An owner that has been asleep must not act as if no
//! time had passed.
//!
//! **Rejected.**
//! - A lease for each name: renewals would grow with the names.
//! - A time in the store's entries: clocks of machines differ.
//! - To keep names while the store is away: its other side may give them to another.
//!
//! **Parts.** The *machine* has the rules, and neither I/O nor a clock. The *keeper*, a process at
//! each node with a store, does what the machine says. The *cache* is what the watch of the node
//! tells. A *hold* says until when the lease is good; owners look at it by themselves.
//!
//! May import the store, and parts of nodes that know nothing of links.

mod cache;
mod clock;
mod guarded;
mod hold;
mod keeper;
#[cfg(test)]
mod late;
mod lock;
mod look;
mod machine;
#[cfg(test)]
mod model;
mod names;
mod values;

pub(crate) use clock::{LeaseClock, now};
pub use guarded::Guarded;
pub(crate) use keeper::{Keeper, Shared};
pub use lock::{LockLost, StrongLock};
pub use look::{LeaseLook, NameLook, StoreLook};
pub(crate) use machine::Machine;
pub use names::StrongNames;
pub use values::{FencingToken, NameLost, NoStore, Owner, StrongError};

use std::time::Duration;

/// The time of a node's lease.
pub(crate) const TTL: Duration = Duration::from_secs(10);
