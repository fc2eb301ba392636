//! What comes for a process while it is being closed: its mailbox takes nothing any more, and its PID is not gone.
//!
//! **Problem.** Whoever puts something there wants to know whether the end of the process will find it; and an end that
//! nobody has anything for is not to pay for those that somebody has.
//!
//! **Rejected.** A list in the process, or a look with a full fence on both sides: each end would pay.
//!
//! **Protocol.** One table for a scheduler, under a lock, and the count of what is in it.
//! 1. Who puts something there does so inside of [`Registry::read`](crate::core::registry::Registry::read) of the process: as
//!    long as that lasts, its PID can't go.
//! 2. Who ends the process takes its PID away, and then looks at the count; when that is not 0, it takes what is its own.
//!
//! **Proof sketch.** The PID goes when the readers have left it, which comes after what they did inside: so whoever ends
//! the process sees what they have put there, also the count. Who comes later finds no PID, and knows that it is too
//! late.

use ganger_sync::atomic::{AtomicUsize, Ordering};
use ganger_sync::sync::{Mutex, lock};
use rustc_hash::FxHashMap;

/// See the head of this file.
pub(crate) struct Late<T> {
    /// For how many processes there is something. Written under the lock, read by whoever ends a process.
    count: AtomicUsize,
    /// By the [key](crate::core::cell::ProcessCell::key) of the process that they are for, in the order of their arrival.
    lists: Mutex<FxHashMap<u64, Vec<T>>>,
}

impl<T> Late<T> {
    pub(crate) fn new() -> Self {
        Self {
            count: AtomicUsize::new(0),
            lists: Mutex::new(FxHashMap::default()),
        }
    }

    /// Whether there is something for anybody.
    #[inline]
    pub(crate) fn is_any(&self) -> bool {
        // Ordering: Relaxed: who has put something there for this process did so before its PID went, and this thread has
        // taken that away.
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Puts something there for the process with that key. For who is inside of `Registry::read` of it.
    pub(crate) fn put(&self, key: u64, late: T) {
        let mut lists = lock(&self.lists);
        lists.entry(key).or_default().push(late);
        // Ordering: Relaxed, as above.
        self.count.store(lists.len(), Ordering::Relaxed);
    }

    /// Takes what is for the process with that key, in the order of its arrival.
    pub(crate) fn take(&self, key: u64) -> Vec<T> {
        let mut lists = lock(&self.lists);
        let taken = lists.remove(&key);
        // Ordering: Relaxed, as above.
        self.count.store(lists.len(), Ordering::Relaxed);
        taken.unwrap_or_default()
    }
}
