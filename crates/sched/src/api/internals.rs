//! Calls from crates above the scheduler, not from programs, to a scheduler, a context and an
//! address.

use crate::api::handle::Handle;
use crate::api::process_handle::Address;
use crate::reports::life::LifeChange;
use crate::runtime::cell::ProcessCell;
use crate::runtime::driver::Driver;
use crate::runtime::lent_context::LentWaker;
use ganger_proc_api::Context;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

type Enter = dyn Fn(&mut dyn FnMut()) + Send + Sync;

/// An extension of a scheduler, in a simulation of several machines: a call around each move of its
/// workers. On threads a driver does the like.
pub struct Around(Box<Enter>);

impl Around {
    /// Keeps `around`, to call its argument once.
    pub fn new(around: impl Fn(&mut dyn FnMut()) + Send + Sync + 'static) -> Self {
        Self(Box::new(around))
    }

    /// Calls `f` inside.
    pub fn call(&self, f: &mut dyn FnMut()) {
        (self.0)(f);
    }
}

impl fmt::Debug for Around {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Around").finish_non_exhaustive()
    }
}

/// Calls of crates above the scheduler to the scheduler.
pub trait HandleInternals {
    /// Returns the value of type `T` that a crate above the scheduler keeps for this scheduler;
    /// `make` makes it at the first call. The value is dropped with the scheduler's memory, and
    /// keeps no `Handle`.
    #[must_use]
    fn extension<T: Any + Send + Sync>(&self, make: impl FnOnce(&Self) -> T) -> Arc<T>;

    /// Returns the value of type `T`, if a crate above the scheduler keeps one for this scheduler.
    #[must_use]
    fn find_extension<T: Any + Send + Sync>(&self) -> Option<Arc<T>>;

    /// Has `call` called when a worker has returned for good, at once if a worker already has. A
    /// crate above the scheduler drops its extension's users' data there. A scheduler that was
    /// never started does not call it.
    fn at_halt(&self, call: impl FnOnce() + Send + 'static);

    /// Returns whether a timer is set.
    #[must_use]
    fn waits_for_time(&self) -> bool;

    /// Returns whether a process may wait for an event of the driver.
    #[must_use]
    fn waits_for_driver(&self) -> bool;

    /// Returns the driver, if it is of that type.
    #[must_use]
    fn driver<D: Driver>(&self) -> Option<&D>;
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

    fn driver<D: Driver>(&self) -> Option<&D> {
        let driven = self.shared.timing.driven.as_ref()?;
        let driver: &dyn Any = &*driven.driver;
        driver.downcast_ref()
    }
}

/// Calls of crates above the scheduler to the context of a process.
pub trait ContextInternals {
    /// Allows restarts of this process in place, by [`UpgradeRequest::restart`]: for crates above
    /// the scheduler.
    ///
    /// [`UpgradeRequest::restart`]: ganger_proc_api::UpgradeRequest::restart
    fn begin_incarnations(&self);

    /// Notes the begin of an incarnation. The incarnation takes all types of messages, unless it
    /// has stated a type.
    fn incarnation_begun(&self);

    /// Tells the watch of lives that this process has changed, if the watch wants changes at the
    /// moment. The process is in its step or `init`.
    fn tell_life(&self, change: impl FnOnce() -> LifeChange);

    /// Returns the process's waker, without a counted reference to the process; `None` without a
    /// scheduler.
    fn lent_waker(&self) -> Option<LentWaker<'_>>;

    /// Returns the address of this process, which takes messages of type `M`, as the caller knows:
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

    fn tell_life(&self, change: impl FnOnce() -> LifeChange) {
        let is_wanted = |it: &ProcessCell| it.shared.tells_life();
        if self.backend_ref::<ProcessCell>().is_some_and(is_wanted)
            && let Some(task) = self.backend::<ProcessCell>()
        {
            task.shared.tell_life(&task, change);
        }
    }

    fn lent_waker(&self) -> Option<LentWaker<'_>> {
        let cell = self.backend_ptr::<ProcessCell>()?;
        // SAFETY: the pointer comes from the context's own `Arc`, which is borrowed for as long as
        // the waker.
        Some(unsafe { LentWaker::new(cell) })
    }

    fn known_address<M>(&self) -> Option<Address<M>> {
        self.backend::<ProcessCell>().map(Address::new)
    }
}

/// Calls of crates above the scheduler to an address.
pub trait AddressInternals {
    /// Leaves this process out of a stop's cancellations: the caller cancels it in its turn. At the
    /// deadline the process is terminated like all others. For crates above the scheduler.
    fn leave_shutdown_to_caller(&self);
}

impl<M> AddressInternals for Address<M> {
    fn leave_shutdown_to_caller(&self) {
        let _told = self.task.state.claim_shutdown_notice();
    }
}
