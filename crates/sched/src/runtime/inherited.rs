//! Values that processes hand down to their children.

use crate::process::origin::{Value, Values};
use crate::runtime::cell::ProcessCell;
use crate::runtime::shared::Shared;
use ganger_sync::atomic::Ordering;
use std::sync::Arc;

impl Shared {
    /// Returns the values for a child that starts now, inherited from this parent. The id 0 stands
    /// for no parent.
    pub(crate) fn values_of(&self, parent: u64) -> Option<Arc<Values>> {
        // Ordering: Relaxed, because this thread owns the parent's run token: its passing orders
        // the load after the parent's own calls, and after its start. Calls of other threads may
        // come too late.
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
    /// Sets a value for this process and for its later children.
    pub(crate) fn set_inherited(&self, value: Value) {
        // Ordering: Relaxed pairs with the load in `values_of`.
        self.shared.has_inherited.store(true, Ordering::Relaxed);
        drop(self.origin.set(value));
    }
}
