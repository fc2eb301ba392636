//! Inherited values of processes started by a scheduler on behalf of another scheduler.
//!
//! **Problem.** A process of another node asks for a start, and the process that reads for the node
//! starts. The new process should have the asker's values, and none of the reader's.
//!
//! **Rejected.** A property of the start: code that starts processes for other nodes is of users,
//! and starts them in its own ways.
//!
//! **Protocol.** The reader's values are replaced while the code runs, on the reader's own thread,
//! which has its run token. So no other thread starts a child of the reader meanwhile.

use crate::api::handle::Handle;
use crate::process::origin::Values;
use ganger_sync::atomic::Ordering;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// The inherited values of a process, at most one of each type. Cloning is cheap.
#[derive(Clone, Default)]
pub struct Inherited(Option<Arc<Values>>);

impl Inherited {
    /// Returns the values of a process that this thread would start now: the values of the process
    /// in whose step or `init` the thread is, or none. O(1).
    #[must_use]
    pub fn here(scheduler: &Handle) -> Self {
        let shared = &scheduler.shared;
        Self(shared.values_of(shared.own_process_id()))
    }

    /// Returns all values, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Any + Send + Sync>> {
        self.0.iter().flat_map(|it| it.iter())
    }

    /// Returns these values with `value` in the place of the value of its type. O(values).
    #[must_use]
    pub fn with(&self, value: Arc<dyn Any + Send + Sync>) -> Self {
        let with = match &self.0 {
            Some(values) => values.with(value),
            None => Values::default().with(value),
        };
        Self(Some(Arc::new(with)))
    }

    /// Calls `f`, in a step of the scheduler. The processes that `f` starts on this thread inherit
    /// these values, in the place of those of the step's process. Outside of steps it only calls
    /// `f`.
    pub fn within<R>(self, scheduler: &Handle, f: impl FnOnce() -> R) -> R {
        let shared = &scheduler.shared;
        let own = shared.own_process_id();
        // Ordering: Relaxed, as in `values_of`: this thread owns the run token of the process,
        // which orders the load behind the stores of the process and of its start.
        let has_any = self.0.is_some() || shared.has_inherited.load(Ordering::Relaxed);
        if own == 0 || !has_any {
            return f();
        }
        // Ordering: Relaxed pairs with the load in `values_of`.
        shared.has_inherited.store(true, Ordering::Relaxed);
        let swap = |values: Option<Arc<Values>>| {
            let registry = &shared.census.registry;
            registry
                .read(own, |task| task.origin.replace(values))
                .flatten()
        };
        let _restore = Restore {
            before: swap(self.0),
            put: |before| drop(swap(before)),
        };
        f()
    }
}

/// Puts the values back that were there before.
struct Restore<F: FnMut(Option<Arc<Values>>)> {
    before: Option<Arc<Values>>,
    put: F,
}

impl<F: FnMut(Option<Arc<Values>>)> Drop for Restore<F> {
    fn drop(&mut self) {
        (self.put)(self.before.take());
    }
}

impl fmt::Debug for Inherited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Inherited")
            .field(&self.iter().count())
            .finish()
    }
}
