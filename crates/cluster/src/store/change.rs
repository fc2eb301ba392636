//! Watches of a store.

use super::entry::{Entry, Revision};
use ganger_sync::sync::{Mutex, lock};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A change, as a watch tells it. First comes a [`Snapshot`](Self::Snapshot), then each change,
/// with growing revisions. After [`Lost`](Self::Lost) comes another snapshot, when the store is
/// there again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum StoreChange {
    /// All entries, in place of all that the watch has told before.
    Snapshot {
        /// In the order of their keys.
        entries: Vec<Entry>,
        /// The last write of the store before the snapshot. Later changes follow.
        revision: Revision,
    },
    /// An entry is written.
    Put(Entry),
    /// An entry is gone: deleted, or ended with its lease.
    Gone {
        /// The key.
        key: Box<str>,
        /// The number of this change.
        revision: Revision,
    },
    /// The store is out of reach, or the watch was too slow. Changes may be missing.
    Lost,
}

/// A callback of a watch. The callback must return at once, and must not call the store: a store
/// may hold a lock during the call, to keep the order.
pub type StoreWatcher = Box<dyn Fn(StoreChange) + Send + Sync>;

/// Keeps a watch. Dropping it ends the watch.
#[must_use = "dropping it ends the watch"]
pub struct StoreWatch(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl StoreWatch {
    /// Makes a watch that is ended by `end`; for stores.
    pub fn new(end: impl FnOnce() + Send + 'static) -> Self {
        Self(Mutex::new(Some(Box::new(end))))
    }
}

impl Drop for StoreWatch {
    fn drop(&mut self) {
        let end = lock(&self.0).take();
        if let Some(end) = end {
            end();
        }
    }
}

impl fmt::Debug for StoreWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreWatch").finish_non_exhaustive()
    }
}
