//! Entries, and the numbers of writes and leases.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The number of a write. Greater for each later write to the store, whatever the key, and never
/// used again, also after a restart of the store.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Revision(pub u64);

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The name of a lease. A store uses none twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LeaseId(pub u64);

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An entry of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The key.
    pub key: Box<str>,
    /// The value.
    pub value: Vec<u8>,
    /// The last write of the entry.
    pub revision: Revision,
    /// The lease that ends the entry, if any.
    pub lease: Option<LeaseId>,
}
