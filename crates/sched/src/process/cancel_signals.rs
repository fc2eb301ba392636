//! Wakers, outside of a process's steps, for the moment at which the process is asked to finish.
//!
//! **Problem.** A future polled by other code, on any thread, must be ready when a process is asked
//! to finish, whether the process waits or is in a long step. A process without such futures must
//! not pay for them, neither when it is cancelled nor at its end.
//!
//! **Rejected.** A full fence and a look at a count, as for steps that wait for room
//! (`waiting_steps.rs`): each end of a process would have the fence. A list in the cell: a word of
//! memory for every process.
//!
//! **Protocol.** A scheduler has one table for its processes.
//! 1. *Watcher*: it puts its waker into the table, and then marks the process as `watched`
//!    (`State::watch`). When an earlier mark shows that the process is asked to finish or has
//!    ended, it takes its waker out, and is done.
//! 2. *Canceller*, and *the worker that ends the process*: it sets its own mark, `cancelled` or
//!    `ended`. When the process is marked as `watched`, it takes the wakers out of the table, and
//!    wakes them.
//!
//! **Proof sketch.** All marks are read-modify-writes of one word. When the watcher's is the first,
//! the other thread sees it, and finds the waker. When it is the second, the watcher sees the other
//! mark.
//!
//! A terminator wakes none: the end of the process follows.

use ganger_sync::sync::{Mutex, lock};
use std::collections::BTreeMap;
use std::task::Waker;

/// See the head of this file.
#[derive(Default)]
pub(crate) struct CancelSignals(Mutex<Table>);

#[derive(Default)]
struct Table {
    last_key: u64,
    /// By the id of their process, and then by their key.
    wakers: BTreeMap<u64, BTreeMap<u64, Waker>>,
}

impl CancelSignals {
    /// Puts a waker into the table, in the place of the waker with this key. Returns its key. The
    /// caller marks the process next. The former waker is dropped outside of the lock.
    pub(crate) fn enter(&self, id: u64, key: Option<u64>, waker: Waker) -> u64 {
        let mut table = lock(&self.0);
        let key = key.unwrap_or_else(|| {
            table.last_key += 1;
            table.last_key
        });
        let before = table.wakers.entry(id).or_default().insert(key, waker);
        drop(table);
        drop(before);
        key
    }

    /// Takes a waker out of the table, if it is still there.
    pub(crate) fn leave(&self, id: u64, key: u64) {
        let mut table = lock(&self.0);
        let Some(wakers) = table.wakers.get_mut(&id) else {
            return;
        };
        let waker = wakers.remove(&key);
        if wakers.is_empty() {
            table.wakers.remove(&id);
        }
        drop(table);
        drop(waker);
    }

    /// Takes out all wakers of a process. The caller wakes them.
    #[must_use]
    pub(crate) fn take(&self, id: u64) -> Vec<Waker> {
        let taken = lock(&self.0).wakers.remove(&id);
        taken
            .into_iter()
            .flatten()
            .map(|(_, waker)| waker)
            .collect()
    }
}
