//! Requests for a process while it is being closed: its mailbox is closed, and its PID is not gone.
//!
//! **Problem.** A requester must know whether the end of the process will find its request. The
//! end of a process without requests must not pay for the requests of others.
//!
//! **Rejected.** A list in the process, or a look with a full fence on both sides: each end pays.
//!
//! **Protocol.** A scheduler has one table, under a lock, and the count of its lists.
//! 1. The requester puts its request into the table inside of
//!    [`Registry::read`](crate::runtime::registry::Registry::read) of the process, which keeps the
//!    PID.
//! 2. The terminator of the process takes its PID away, and then looks at the count. When the
//!    count is not 0, the terminator takes the requests for its process.
//!
//! **Proof sketch.** The PID goes when the readers have left it, after their requests. So the
//! terminator sees their requests, and the count. A later requester finds no PID, and knows that it
//! is too late.

use ganger_sync::atomic::{AtomicUsize, Ordering};
use ganger_sync::sync::{Mutex, lock};
use std::collections::HashMap;

/// See the head of this file.
pub(crate) struct ClosingInbox<T> {
    /// How many processes have requests. Written under the lock, read by each terminator.
    count: AtomicUsize,
    /// The requests in the order of their arrival, by the
    /// [key](crate::runtime::cell::ProcessCell::key) of their process.
    lists: Mutex<HashMap<u64, Vec<T>>>,
}

impl<T> ClosingInbox<T> {
    pub(crate) fn new() -> Self {
        Self {
            count: AtomicUsize::new(0),
            lists: Mutex::new(HashMap::new()),
        }
    }

    /// Returns whether any process has a request.
    pub(crate) fn is_any(&self) -> bool {
        // Ordering: Relaxed: a requester for this process has put its request there before the PID
        // went. This thread has taken the PID away.
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Puts a request for the process with the key. The caller is inside of the process's
    /// `Registry::read`.
    pub(crate) fn put(&self, key: u64, late: T) {
        let mut lists = lock(&self.lists);
        lists.entry(key).or_default().push(late);
        // Ordering: Relaxed: the end reads it after it has taken the PID away, as in `is_any`.
        self.count.store(lists.len(), Ordering::Relaxed);
    }

    /// Releases the memory of processes without requests. O(n) in the processes with requests.
    pub(crate) fn release(&self) {
        lock(&self.lists).shrink_to_fit();
    }

    /// Takes the requests for the process with the key, in the order of their arrival.
    pub(crate) fn take(&self, key: u64) -> Vec<T> {
        let mut lists = lock(&self.lists);
        let taken = lists.remove(&key);
        // Ordering: Relaxed: the lock orders the writes, and the end reads it as in `is_any`.
        self.count.store(lists.len(), Ordering::Relaxed);
        taken.unwrap_or_default()
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_burst_of_requests_leaves_nothing() {
        let late = ClosingInbox::new();
        (0..10_000).for_each(|key| late.put(key, ()));
        assert!((0..10_000).all(|key| late.take(key).len() == 1));
        assert!(!late.is_any());
        late.release();
        assert_eq!(lock(&late.lists).capacity(), 0);
    }
}
