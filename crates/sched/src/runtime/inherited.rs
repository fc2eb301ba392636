//! Values that processes hand down to their children.

use crate::process::origin::{Value, Values};
use crate::runtime::cell::ProcessCell;
use crate::runtime::shared::Shared;
use ganger_sync::atomic::Ordering;
use std::sync::Arc;

impl Shared {
    /// What a child inherits that the process with that id, or zero, starts now.
    pub(crate) fn values_of(&self, parent: u64) -> Option<Arc<Values>> {
        // Ordering: Relaxed, because this thread owns the parent's run token, which orders it after
        // the parent's own calls, and after its start. Those of other threads may come too late.
        if parent == 0 || !self.has_inherited.load(Ordering::Relaxed) {
            return None;
        }
        self.census
            .registry
            .read(parent, |task| task.origin.values())
            .flatten()
    }
}

impl ProcessCell {
    /// Sets a value for this process and for the children that it starts from now on.
    pub(crate) fn set_inherited(&self, value: Value) {
        // Ordering: Relaxed pairs with the one in `values_of`.
        self.shared.has_inherited.store(true, Ordering::Relaxed);
        drop(self.origin.set(value));
    }
}
