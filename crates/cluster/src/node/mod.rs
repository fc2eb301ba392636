//! A scheduler as a node: its processes reach those of other nodes by their PIDs.
//!
//! **Problem.** A message, a monitor, a link, a name must mean the same between nodes as within
//! one; what can't be the same, a lost connection, must be said.
//!
//! **Parts.** The *gateway* is what the scheduler and its router know. Each peer has a *session*
//! behind a lock, which senders use in their own threads, and a *link*, a process that reads what
//! the peer sends. The *warden* is the process that lets the links end in time. *Tables* keep what
//! waits for an answer, and are told as a whole when the session ends. The *directory* has the
//! groups and names that nodes tell each other.
//!
//! The module may import the session, the engine and the wire. No part of it knows a concrete
//! engine.

mod accept;
mod askers;
mod base;
mod builder;
mod calls;
mod causes;
mod changes;
mod cluster;
mod cookie;
mod core;
mod directory;
mod far_links;
mod feed;
mod functions;
mod gateway;
mod helpers;
mod inbox;
mod inherited;
mod kinds;
mod link;
mod listed;
mod listing;
mod look;
mod multi;
mod names;
mod not_asked;
mod owners;
mod parked;
mod past;
mod peer;
mod places;
mod publish;
mod questions;
mod refusals;
mod registrar;
mod requests;
mod served;
mod sink;
mod spawns;
mod start;
mod starts;
mod streams;
mod strong;
mod tables;
mod traces;
mod types;
mod unknown;
mod values;
mod waiting;
mod warden;
mod watch;

pub use builder::{Builder, JoinError};
pub use changes::NodeChange;
pub use cluster::Cluster;
pub use functions::{FunctionRefused, Place};
pub use look::PeerLook;
pub use names::{ClusterNameError, ClusterNameErrorKind, NameRevoked};
pub use owners::Owners;
pub use registrar::{Registrar, StoreSource};
pub use spawns::FarSpawn;
pub use strong::{
    FencingToken, Guarded, LeaseLook, LockLost, NameLook, NameLost, NoStore, Owner, StoreLook,
    StrongError, StrongLock, StrongNames,
};
pub use traces::TraceContext;
pub use types::{Foreign, MAX_MESSAGE, TypeTaken, Types};
