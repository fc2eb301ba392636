//! Until when a lease is good, as its owners see it.

use ganger_proc_api::Instant;
use ganger_sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// The end of a lease's good time, in nanoseconds of the clock that counts suspends. Zero: over.
///
/// The keeper writes, and guards of any thread read. The value alone passes between them.
#[derive(Debug)]
pub(crate) struct Hold(AtomicU64);

impl Hold {
    pub(crate) fn until(good: Instant) -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(good.as_nanos())))
    }

    pub(crate) fn good_until(&self) -> Instant {
        // Ordering: the value alone is read.
        Instant::from_nanos(self.0.load(Ordering::Relaxed))
    }

    pub(crate) fn is_good(&self, now: Instant) -> bool {
        now < self.good_until()
    }

    /// Extends the hold after an answered renewal. Called by the keeper alone, for a lease that is
    /// good.
    pub(crate) fn extend(&self, good: Instant) {
        // Ordering: the value is all that is written.
        self.0.fetch_max(good.as_nanos(), Ordering::Relaxed);
    }

    /// Ends the lease for good.
    pub(crate) fn end(&self) {
        // Ordering: the value is all that is written.
        self.0.store(0, Ordering::Relaxed);
    }
}
