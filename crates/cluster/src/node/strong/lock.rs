//! Locks of the cluster.

use super::hold::Hold;
use super::machine::ClaimId;
use super::values::FencingToken;
use ganger_proc_api::Instant;
use ganger_sync::atomic::{AtomicBool, Ordering};
use ganger_sync::contain;
use ganger_sync::sync::{Mutex, lock};
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// The node could not renew its lease in time, or the store has ended it: another node may have the
/// lock soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the lock is lost: its lease was not renewed in time; begin again")]
pub struct LockLost;

/// The keeper, as a lock needs it.
pub(crate) trait Keeps: Send + Sync {
    /// Returns the time of the lease's clock.
    fn now(&self) -> Instant;

    /// Releases a lock that is wanted no more.
    fn release(&self, id: ClaimId);
}

/// The state of a lock, shared with the keeper.
pub(crate) struct Guard {
    hold: Arc<Hold>,
    is_lost: AtomicBool,
    on_lost: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Guard {
    pub(crate) fn lose(&self) {
        // Ordering: Relaxed: `token` reads the flag alone. The mutex, which is taken next, orders
        // the store for `on_lost`.
        self.is_lost.store(true, Ordering::Relaxed);
        let call = lock(&self.on_lost).take();
        // A panic of the user's code must not end the keeper.
        if let Some(call) = call
            && contain(call).is_none()
        {
            tracing::error!(target: "ganger::cluster", "a call for a lost lock has panicked");
        }
    }
}

/// A lock of the cluster, held by this node: see [`StrongNames::lock`](super::StrongNames::lock).
/// Dropping it gives the lock to the next that waits.
#[must_use = "dropping it gives the lock to the next"]
pub struct StrongLock {
    guard: Arc<Guard>,
    token: FencingToken,
    id: ClaimId,
    keeper: Arc<dyn Keeps>,
}

impl StrongLock {
    pub(crate) fn new(
        keeper: Arc<dyn Keeps>,
        id: ClaimId,
        token: FencingToken,
        hold: Arc<Hold>,
    ) -> (Arc<Guard>, Self) {
        let guard = Arc::new(Guard {
            hold,
            is_lost: AtomicBool::new(false),
            on_lost: Mutex::default(),
        });
        let made = Arc::clone(&guard);
        let lock = Self {
            guard,
            token,
            id,
            keeper,
        };
        (made, lock)
    }

    /// Returns the fencing token of this ownership, if the lock is held at this moment. The clock
    /// counts the time that the machine sleeps. Ask before each use of the guarded resource, and
    /// send the token along: a resource that has seen a greater token refuses a smaller. Never
    /// blocks.
    ///
    /// # Errors
    /// [`LockLost`], from then on always.
    pub fn token(&self) -> Result<FencingToken, LockLost> {
        // Ordering: the flag is all that is read.
        if self.guard.is_lost.load(Ordering::Relaxed) {
            return Err(LockLost);
        }
        if !self.guard.hold.is_good(self.keeper.now()) {
            self.guard.lose();
            return Err(LockLost);
        }
        Ok(self.token)
    }

    /// Returns whether the lock is held at this moment: see [`token`](Self::token).
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.token().is_ok()
    }

    /// Has `call` called once when the lock is lost, on some thread; at once if that has happened.
    /// A later call takes the place of an earlier. The call should be short.
    pub fn on_lost(&self, call: impl FnOnce() + Send + 'static) {
        let earlier = lock(&self.guard.on_lost).replace(Box::new(call));
        // Without the lock: what the earlier call has kept is foreign code.
        drop(earlier);
        // Ordering: Relaxed: `lose` sets the flag, and then takes the mutex. Either `lose` finds
        // the call, or the mutex orders this load behind the store.
        if self.guard.is_lost.load(Ordering::Relaxed) {
            self.guard.lose();
        }
    }
}

impl Drop for StrongLock {
    fn drop(&mut self) {
        self.keeper.release(self.id);
    }
}

impl fmt::Debug for StrongLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StrongLock")
            .field("token", &self.token())
            .finish_non_exhaustive()
    }
}
