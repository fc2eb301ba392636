//! A small consistent store: what nodes must agree on, such as owners of names.
//!
//! **Problem.** Of two nodes that can't hear each other, at most one may own a name. Only a
//! consistent third party can decide, and the answer to a question may be lost on its way.
//!
//! **Protocol.** A [`Store`] keeps entries: a key, a value, and the *revision* of the last write.
//! Later writes have greater revisions.
//! 1. *Writes* name the revision to replace, or demand a free key.
//! 2. A *lease* ends when its time passes without a renewal. Entries of a lease end with the lease.
//! 3. *Watchers* get a snapshot, and then each change, in the order of the revisions.
//! 4. An answer that may be lost after the write is an error of its own: [`StoreError::Unknown`].
//!
//! **Parts.** The *table* is the store without I/O or clock. A twin's store is a table with
//! faults; a registrar (`node/registrar`) is a table with a *log*.

mod api;
mod change;
mod entry;
mod log;
mod simulated;
mod table;
mod twin;

pub use api::{
    MAX_KEY, MAX_TTL, MAX_VALUE, MIN_TTL, Store, StoreAnswer, StoreError, StoreOp, StoreReply,
};
pub use change::{StoreChange, StoreWatch, StoreWatcher};
pub use entry::{Entry, LeaseId, Revision};
pub(crate) use log::Log;
pub use log::LogError;
pub(crate) use table::{Effect, Table};
pub use twin::{RunningStore, StoreFaults, TwinStore};
