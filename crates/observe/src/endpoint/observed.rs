//! The observed schedulers.

use ganger_sched::{Handle, WeakHandle};
use ganger_sync::sync::lock;
use std::sync::Mutex;

/// The schedulers, in the order of their additions. A dropped scheduler leaves.
#[derive(Default)]
pub(super) struct Observed(Mutex<List>);

#[derive(Default)]
struct List {
    all: Vec<(u64, WeakHandle)>,
    last: u64,
}

/// A scheduler, and its number in the endpoint.
pub(super) struct Shown {
    /// From 1 up, by the order of the additions. A browser's numbers hold no `Handle::number`.
    pub(super) number: u64,
    pub(super) handle: Handle,
}

impl Observed {
    pub(super) fn add(&self, scheduler: &Handle) {
        let shown = self.schedulers();
        if shown
            .iter()
            .any(|it| it.handle.number() == scheduler.number())
        {
            return;
        }
        let mut list = lock(&self.0);
        list.last += 1;
        let number = list.last;
        list.all.push((number, scheduler.downgrade()));
    }

    pub(super) fn schedulers(&self) -> Vec<Shown> {
        let mut shown = Vec::new();
        lock(&self.0).all.retain(|(number, weak)| {
            let handle = weak.upgrade();
            let is_there = handle.is_some();
            let number = *number;
            shown.extend(handle.map(|handle| Shown { number, handle }));
            is_there
        });
        shown
    }
}
