//! Owners, their tokens, and the errors of strong names.

use crate::store::{MAX_KEY, Revision, StoreError};
use ganger_proc_api::Pid;
use ganger_sched::WeakHandle;
use serde::{Deserialize, Serialize};
use std::fmt;
use thiserror::Error;

/// The longest name, in bytes.
pub(crate) const MAX_STRONG_NAME: usize = MAX_KEY - 64;

/// The number of an ownership. Each later owner of the same name or lock has a greater number, also
/// after restarts. A resource that remembers the greatest number, and refuses smaller numbers, is
/// safe from a former owner that has not learnt of the loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FencingToken(pub u64);

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The process has lost a strong name: its node could not renew its lease in time, or the store has
/// ended it. Another process may have the name soon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameLost {
    /// The name.
    pub name: Box<str>,
}

/// The node has no store: see [`Builder::store`](crate::Builder::store).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the node has no store, and strong names need one: call `Builder::store`")]
pub struct NoStore;

/// The owner of a strong name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Owner {
    /// The process.
    pub pid: Pid,
    /// Its node.
    pub node: Box<str>,
    /// The number of its ownership.
    pub token: FencingToken,
}

/// Why a name or a lock was not given, or not found.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StrongError {
    /// Another process has the name.
    #[error(
        "the name is taken by {} of the node {}; after a crash it is free when the lease of its \
         node has ended",
        .0.pid, .0.node
    )]
    Taken(Box<Owner>),
    /// The owner is not a live process of this node.
    #[error("{0} is not a live process of this node")]
    NoProcess(Pid),
    /// The lease of the node has ended while the question was open: begin again.
    #[error("the lease of the node has ended meanwhile: try again")]
    Lapsed,
    /// The name is empty, or too long.
    #[error("a strong name has 1 to {MAX_STRONG_NAME} bytes")]
    Name,
    /// The entry of the name was written by a later version.
    #[error("the owner of the name can't be read: a later version has written it")]
    Unreadable,
    /// The store has refused, or is out of reach.
    #[error(transparent)]
    Store(StoreError),
}

/// The value of an entry. The node, its run and the number of the claim tell each from all others.
#[derive(Serialize, Deserialize)]
pub(crate) struct Value {
    pub(crate) node: Box<str>,
    pub(crate) incarnation: u64,
    pub(crate) claim: u64,
    pub(crate) pid: Box<str>,
}

impl Owner {
    /// Reads the value of an entry. The PID is as this scheduler knows it.
    pub(crate) fn read(value: &[u8], revision: Revision, scheduler: &WeakHandle) -> Option<Self> {
        let value: Value = postcard::from_bytes(value).ok()?;
        let pid: Pid = value.pid.parse().ok()?;
        let scheduler = scheduler.upgrade();
        Some(Self {
            pid: scheduler.map_or(pid, |it| it.canonical(pid)),
            node: value.node,
            token: FencingToken(revision.0),
        })
    }
}
