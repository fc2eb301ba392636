//! The yields taken back by processes, until their completions come: for handlers that ask.
//!
//! A table of the scheduler under one lock. Only processes and handlers with such yields take the
//! lock: a mark in the state of the process spares all other processes the lock.

use ganger_sync::sync::{Mutex, lock};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The numbers of the yields, by the ids of their processes.
#[derive(Default)]
pub(crate) struct Revoked(Mutex<HashMap<u64, HashSet<u64>>>);

impl Revoked {
    /// Returns whether the process has taken the yield back, and it has not completed.
    pub(crate) fn contains(&self, id: u64, token: u64) -> bool {
        let table = lock(&self.0);
        table.get(&id).is_some_and(|tokens| tokens.contains(&token))
    }

    /// Releases the memory of completed yields. O(n) in the processes with entries.
    pub(crate) fn release(&self) {
        lock(&self.0).shrink_to_fit();
    }
}

/// The yields taken back by a process. Its drop forgets them.
pub(crate) struct OwnRevoked {
    all: Arc<Revoked>,
    id: u64,
}

impl OwnRevoked {
    pub(crate) fn new(all: &Arc<Revoked>, id: u64) -> Self {
        let all = Arc::clone(all);
        Self { all, id }
    }

    pub(crate) fn add(&self, tokens: &[u64]) {
        let mut table = lock(&self.all.0);
        table.entry(self.id).or_default().extend(tokens);
    }

    pub(crate) fn contains(&self, token: u64) -> bool {
        self.all.contains(self.id, token)
    }

    /// Notes the completion of a yield, which may have been taken back.
    pub(crate) fn finish(&self, token: u64) {
        let mut table = lock(&self.all.0);
        if let Some(tokens) = table.get_mut(&self.id) {
            tokens.remove(&token);
            if tokens.is_empty() {
                table.remove(&self.id);
            }
        }
    }
}

impl Drop for OwnRevoked {
    fn drop(&mut self) {
        lock(&self.all.0).remove(&self.id);
    }
}
