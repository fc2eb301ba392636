//! What crates above the scheduler ask of a scheduler, a context and an address, and programs do
//! not.

use crate::api::handle::Handle;
use crate::api::process_handle::Address;
use crate::runtime::cell::ProcessCell;
use crate::runtime::lent_context::LentWaker;
use ganger_proc_api::Context;
use std::any::Any;
use std::sync::Arc;

/// What a scheduler does for the crates above it.
pub trait HandleInternals {
    /// What a crate above the scheduler keeps for this scheduler: one value of that type, which
    /// `make` makes at the first call. It goes with the scheduler's memory, and keeps no `Handle`.
    #[must_use]
    fn extension<T: Any + Send + Sync>(&self, make: impl FnOnce(&Self) -> T) -> Arc<T>;

    /// The value of that type, if a crate above the scheduler keeps one for this scheduler.
    #[must_use]
    fn find_extension<T: Any + Send + Sync>(&self) -> Option<Arc<T>>;

    /// Has `call` called when a worker has returned for good, at once if that has been. A crate
    /// above the scheduler gives up there what its extension keeps of users. A scheduler that was
    /// never started does not call it.
    fn at_halt(&self, call: impl FnOnce() + Send + 'static);

    /// Whether a timer is set.
    #[must_use]
    fn waits_for_time(&self) -> bool;

    /// Whether a process may wait for what becomes ready in the driver.
    #[must_use]
    fn waits_for_driver(&self) -> bool;
}

impl HandleInternals for Handle {
    fn extension<T: Any + Send + Sync>(&self, make: impl FnOnce(&Self) -> T) -> Arc<T> {
        self.shared.extensions.get(|| make(self))
    }

    fn find_extension<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.shared.extensions.find()
    }

    fn at_halt(&self, call: impl FnOnce() + Send + 'static) {
        self.shared.extensions.at_halt(Box::new(call));
    }

    fn waits_for_time(&self) -> bool {
        self.shared.waits_for_time()
    }

    fn waits_for_driver(&self) -> bool {
        let driven = self.shared.timing.driven.as_ref();
        driven.is_some_and(|it| it.is_awaited())
    }
}

/// What the context of a process does for the crates above the scheduler.
pub trait ContextInternals {
    /// This process may be restarted in place, by [`UpgradeRequest::restart`]: for crates above the
    /// scheduler.
    ///
    /// [`UpgradeRequest::restart`]: ganger_proc_api::UpgradeRequest::restart
    fn begin_incarnations(&self);

    /// The incarnation has begun. It takes all types of messages, unless it has said otherwise.
    fn incarnation_begun(&self);

    /// The process's waker, which counts no reference to it; none if it has no scheduler.
    fn lent_waker(&self) -> Option<LentWaker<'_>>;

    /// The address of this process, of which the caller knows that it takes messages of type `M`:
    /// for crates above the scheduler.
    fn known_address<M>(&self) -> Option<Address<M>>;
}

impl ContextInternals for Context {
    fn begin_incarnations(&self) {
        if let Some(task) = self.backend_ref::<ProcessCell>() {
            task.origin.begin_incarnations();
        }
    }

    fn incarnation_begun(&self) {
        if let Some(task) = self.backend_ref::<ProcessCell>() {
            task.accepts.settle();
        }
    }

    fn lent_waker(&self) -> Option<LentWaker<'_>> {
        let cell = self.backend_ptr::<ProcessCell>()?;
        // SAFETY: it is the pointer of the context's own `Arc`, which is borrowed for as long.
        Some(unsafe { LentWaker::new(cell) })
    }

    fn known_address<M>(&self) -> Option<Address<M>> {
        self.backend::<ProcessCell>().map(Address::new)
    }
}

/// What an address does for the crates above the scheduler.
pub trait AddressInternals {
    /// When the scheduler stops, it does not cancel this process: the caller does so in its turn.
    /// At the deadline the process is terminated like all others. For crates above the scheduler.
    fn leave_shutdown_to_caller(&self);
}

impl<M> AddressInternals for Address<M> {
    fn leave_shutdown_to_caller(&self) {
        let _told = self.task.state.claim_shutdown_notice();
    }
}
