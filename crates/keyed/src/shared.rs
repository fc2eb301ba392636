//! The state that the processes of a kind share.

use crate::table::Table;
use ganger_proc_api::{Context, Payloads, Process, SubmitErrorKind, Symbol, Tag};
use ganger_sched::WeakHandle;
use ganger_sync::atomic::{AtomicUsize, Ordering};
use ganger_time::Timers;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

/// The name of a process in its kind: text, a number, or a type of the program's own.
///
/// Hashes are keyed with a secret, so strangers can't choose keys with equal hashes.
pub trait Key: Hash + Eq + Clone + Send + Sync + 'static {}

impl<K: Hash + Eq + Clone + Send + Sync + 'static> Key for K {}

/// Makes the process of a key.
pub(crate) type Make<K> = Box<dyn Fn(&K, &Context) -> Box<dyn Process> + Send + Sync>;

/// The tag of the notice that asks a process to leave.
pub(crate) const LEAVE: Tag = Tag::MAX - 1;

pub(crate) struct Inner<M, K> {
    pub(crate) table: Table<K, M>,
    pub(crate) make: Make<K>,
    pub(crate) namer: fn() -> &'static str,
    pub(crate) name: Symbol,
    pub(crate) idle: Option<Duration>,
    pub(crate) timers: Timers,
    pub(crate) scheduler: WeakHandle,
    /// The count of all kinds of the scheduler.
    pub(crate) keyed: Arc<LiveCount>,
}

/// The keyed processes of a scheduler.
#[derive(Default)]
pub(crate) struct LiveCount(AtomicUsize);

impl LiveCount {
    pub(crate) fn add(&self) {
        // Ordering: Relaxed: a count.
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn subtract(&self) {
        // Ordering: Relaxed: a count.
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn count(&self) -> usize {
        // Ordering: Relaxed: a count, read again and again.
        self.0.load(Ordering::Relaxed)
    }
}

impl<M, K> Inner<M, K> {
    /// Starts a process.
    pub(crate) fn start(&self, process: impl Process) -> Result<(), NotClaimed> {
        let Some(scheduler) = self.scheduler.upgrade() else {
            return Err(NotClaimed::NotStarted(SubmitErrorKind::Stopping));
        };
        match scheduler.submit(process, self.name, Payloads::new()) {
            Ok(_) => Ok(()),
            Err(error) => Err(match error.kind {
                SubmitErrorKind::InitFailed(error) if error.is::<NotClaimed>() => NotClaimed::Taken,
                kind => NotClaimed::NotStarted(kind),
            }),
        }
    }
}

/// Why a start has made no new process.
#[derive(Debug)]
pub(crate) enum NotClaimed {
    /// Another process has been quicker.
    Taken,
    NotStarted(SubmitErrorKind),
}

impl fmt::Display for NotClaimed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken => f.write_str("another process has the key"),
            Self::NotStarted(kind) => kind.fmt(f),
        }
    }
}

impl std::error::Error for NotClaimed {}
