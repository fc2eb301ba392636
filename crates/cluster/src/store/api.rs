//! The operations of a store, and their answers.

use super::change::{StoreWatch, StoreWatcher};
use super::entry::{Entry, LeaseId, Revision};
use ganger_proc_api::Reply;
use ganger_sched::Call;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// The longest key, in bytes.
pub const MAX_KEY: usize = 512;

/// The longest value, in bytes.
pub const MAX_VALUE: usize = 32 << 10;

/// The shortest time of a lease.
pub const MIN_TTL: Duration = Duration::from_millis(100);

/// The longest time of a lease.
pub const MAX_TTL: Duration = Duration::from_hours(24);

/// A consistent store of small entries.
///
/// Operations are linearizable: each takes effect at one moment between the call and its answer. A
/// store that can't promise this refuses with [`StoreError::Unavailable`].
///
/// ```
/// use ganger_cluster::{Store, StoreAnswer, StoreError, StoreOp, StoreReply, TwinStore};
/// use std::sync::mpsc::channel;
///
/// let twin = TwinStore::new(1);
/// let store = twin.port("alpha");
/// let ask = |op| {
///     let (tell, told) = channel();
///     store.apply(op, StoreReply::new(move |answer| tell.send(answer).unwrap()));
///     told.recv().unwrap()
/// };
/// let Ok(StoreAnswer::Written(revision)) = ask(StoreOp::create("color", "red")) else {
///     panic!("the key is free");
/// };
/// let taken = ask(StoreOp::create("color", "blue"));
/// assert!(matches!(taken, Err(StoreError::Exists(_))));
/// let Ok(StoreAnswer::Written(next)) = ask(StoreOp::update("color", "blue", revision)) else {
///     panic!("the revision is right");
/// };
/// assert!(next > revision);
/// ```
pub trait Store: Send + Sync {
    /// Carries an operation out, and gives the answer to `reply`. Never blocks. The store may
    /// answer on any thread, also before this call returns.
    fn apply(&self, op: StoreOp, reply: StoreReply);

    /// Tells `watcher` of all entries whose keys begin with `prefix`, and then of each change,
    /// until the result is dropped: see [`StoreChange`](crate::StoreChange). Never blocks. A change
    /// that is under way may still be told while the result is dropped.
    #[must_use = "dropping it ends the watch"]
    fn watch(&self, prefix: &str, watcher: StoreWatcher) -> StoreWatch;

    /// Says in a few words what the store promises, for logs: a single authority, for instance.
    fn describe(&self) -> String;
}

impl dyn Store {
    /// Returns a question to the store, for steps, tasks and threads. An error is
    /// [`CommandError::Failed`](ganger_proc_api::CommandError::Failed), with a [`StoreError`]
    /// inside.
    pub fn ask(self: &Arc<Self>, op: StoreOp) -> Call<StoreAnswer> {
        let store = Arc::clone(self);
        Call::by(move |reply: Reply<StoreAnswer>| {
            let reply = StoreReply::new(move |answer| match answer {
                Ok(answer) => reply.complete(answer),
                Err(error) => reply.fail(error),
            });
            store.apply(op, reply);
            Ok(())
        })
    }
}

/// An operation on a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum StoreOp {
    /// Reads an entry: [`StoreAnswer::Found`].
    Get {
        /// The key.
        key: Box<str>,
    },
    /// Writes an entry whose key is free: [`StoreAnswer::Written`], or [`StoreError::Exists`].
    Create {
        /// The key.
        key: Box<str>,
        /// The value.
        value: Vec<u8>,
        /// The lease with which the entry ends.
        lease: Option<LeaseId>,
    },
    /// Writes an entry that has this revision: [`StoreAnswer::Written`], or
    /// [`StoreError::Conflict`].
    Update {
        /// The key.
        key: Box<str>,
        /// The value.
        value: Vec<u8>,
        /// The revision that the entry must have.
        revision: Revision,
        /// The lease with which the entry ends from now on.
        lease: Option<LeaseId>,
    },
    /// Takes away an entry that has this revision: [`StoreAnswer::Deleted`], or
    /// [`StoreError::Conflict`].
    Delete {
        /// The key.
        key: Box<str>,
        /// The revision that the entry must have.
        revision: Revision,
    },
    /// Makes a lease: [`StoreAnswer::Lease`].
    Grant {
        /// The lease ends when it is not renewed for so long, from [`MIN_TTL`] to [`MAX_TTL`].
        ttl: Duration,
    },
    /// Gives a lease its whole time again: [`StoreAnswer::Lease`], or [`StoreError::NoLease`].
    Renew {
        /// The lease.
        lease: LeaseId,
    },
    /// Ends a lease, with its entries: [`StoreAnswer::Revoked`], also where the lease has ended
    /// before.
    Revoke {
        /// The lease.
        lease: LeaseId,
    },
}

impl StoreOp {
    /// Makes a [`Get`](Self::Get).
    #[must_use]
    pub fn get(key: impl Into<Box<str>>) -> Self {
        Self::Get { key: key.into() }
    }

    /// Makes a [`Create`](Self::Create) without a lease.
    #[must_use]
    pub fn create(key: impl Into<Box<str>>, value: impl Into<Vec<u8>>) -> Self {
        Self::Create {
            key: key.into(),
            value: value.into(),
            lease: None,
        }
    }

    /// Makes an [`Update`](Self::Update) to an entry without a lease.
    #[must_use]
    pub fn update(key: impl Into<Box<str>>, value: impl Into<Vec<u8>>, revision: Revision) -> Self {
        Self::Update {
            key: key.into(),
            value: value.into(),
            revision,
            lease: None,
        }
    }

    /// Makes a [`Delete`](Self::Delete).
    #[must_use]
    pub fn delete(key: impl Into<Box<str>>, revision: Revision) -> Self {
        Self::Delete {
            key: key.into(),
            revision,
        }
    }

    /// Has the written entry end with a lease. Other operations stay as they are.
    #[must_use]
    pub fn with_lease(mut self, of: LeaseId) -> Self {
        if let Self::Create { lease, .. } | Self::Update { lease, .. } = &mut self {
            *lease = Some(of);
        }
        self
    }

    /// Returns whether the operation only reads. A lost answer of another operation leaves its
    /// outcome unknown.
    #[must_use]
    pub fn is_read(&self) -> bool {
        matches!(self, Self::Get { .. })
    }

    /// Checks the sizes and times of the operation; for stores.
    ///
    /// # Errors
    /// [`StoreError::Invalid`], with the reason.
    pub fn check(&self) -> Result<(), StoreError> {
        let (key, value, ttl): (Option<&str>, &[u8], _) = match self {
            Self::Get { key } | Self::Delete { key, .. } => (Some(key), &[], None),
            Self::Create { key, value, .. } | Self::Update { key, value, .. } => {
                (Some(key), value, None)
            }
            Self::Grant { ttl } => (None, &[], Some(*ttl)),
            Self::Renew { .. } | Self::Revoke { .. } => (None, &[], None),
        };
        let invalid = |why: String| Err(StoreError::Invalid(why.into()));
        if key.is_some_and(|key| key.is_empty() || key.len() > MAX_KEY) {
            return invalid(format!("a key has 1 to {MAX_KEY} bytes"));
        }
        if value.len() > MAX_VALUE {
            return invalid(format!("a value has at most {MAX_VALUE} bytes"));
        }
        if ttl.is_some_and(|ttl| !(MIN_TTL..=MAX_TTL).contains(&ttl)) {
            return invalid(format!("a lease has {MIN_TTL:?} to {MAX_TTL:?}"));
        }
        Ok(())
    }
}

/// The answer of a store to an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum StoreAnswer {
    /// The entry, or none.
    Found(Option<Entry>),
    /// The entry is written.
    Written(Revision),
    /// The entry is gone.
    Deleted(Revision),
    /// The lease, with its whole time from the moment when the store had the operation.
    Lease(LeaseId),
    /// The lease has ended.
    Revoked,
}

/// Why a store has not carried an operation out, or that the outcome is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum StoreError {
    /// The key has an entry.
    #[error("the key {:?} has an entry already, of revision {}", .0.key, .0.revision)]
    Exists(Entry),
    /// The entry has another revision, or is gone. Nothing was written.
    #[error("the entry has another revision by now: read it again")]
    Conflict(Option<Entry>),
    /// The lease has ended, or never was. Nothing was written.
    #[error("the lease has ended")]
    NoLease,
    /// The store takes no further entries or leases. Nothing was written.
    #[error("the store is full: delete entries")]
    Full,
    /// The operation is beyond a limit. Nothing was written.
    #[error("invalid operation: {0}")]
    Invalid(Box<str>),
    /// The store can't be reached, or can't decide. Nothing was written.
    #[error("the store is not available: {0}")]
    Unavailable(Box<str>),
    /// The answer is lost. The store has carried the operation out, or will, or never does: ask
    /// again to learn more.
    #[error("the answer of the store is lost: the operation may have been carried out")]
    Unknown,
}

type Answered = Box<dyn FnOnce(Result<StoreAnswer, StoreError>) + Send>;

/// The right, and the duty, to answer an operation. A drop answers with [`StoreError::Unknown`].
#[must_use = "dropping it says that the outcome is unknown"]
pub struct StoreReply(Option<Answered>);

impl StoreReply {
    /// Makes a reply that gives the answer to `done`. The function must return at once, and must
    /// not panic.
    pub fn new(done: impl FnOnce(Result<StoreAnswer, StoreError>) + Send + 'static) -> Self {
        Self(Some(Box::new(done)))
    }

    /// Gives the answer to the operation.
    pub fn answer(mut self, answer: Result<StoreAnswer, StoreError>) {
        if let Some(done) = self.0.take() {
            done(answer);
        }
    }
}

impl Drop for StoreReply {
    fn drop(&mut self) {
        if let Some(done) = self.0.take() {
            done(Err(StoreError::Unknown));
        }
    }
}

impl fmt::Debug for StoreReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreReply").finish_non_exhaustive()
    }
}
