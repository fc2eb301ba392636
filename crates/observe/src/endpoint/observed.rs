//! The observed schedulers.

use ganger_sched::{Handle, WeakHandle};
use ganger_sync::sync::lock;
use std::sync::Mutex;

/// The schedulers, in the order of their additions. A dropped scheduler leaves.
#[derive(Default)]
pub(super) struct Observed(Mutex<Vec<WeakHandle>>);

impl Observed {
    pub(super) fn add(&self, scheduler: &Handle) {
        if !self
            .schedulers()
            .iter()
            .any(|it| it.number() == scheduler.number())
        {
            lock(&self.0).push(scheduler.downgrade());
        }
    }

    pub(super) fn schedulers(&self) -> Vec<Handle> {
        let mut all = Vec::new();
        lock(&self.0).retain(|weak| {
            let handle = weak.upgrade();
            let is_there = handle.is_some();
            all.extend(handle);
            is_there
        });
        all
    }
}
