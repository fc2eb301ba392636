//! Many hits, one wake-up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// How long [`Gate::wait`] waits before it takes the benchmark for stuck.
const PATIENCE: Duration = Duration::from_secs(60);

/// A counter whose last hit wakes the thread that made it.
#[derive(Debug)]
pub struct Gate {
    open: AtomicUsize,
    owner: Thread,
}

impl Gate {
    /// Opens after that many hits, for the calling thread.
    #[must_use]
    pub fn new(hits: usize) -> Arc<Self> {
        Arc::new(Self {
            open: AtomicUsize::new(hits),
            owner: thread::current(),
        })
    }

    /// One hit.
    pub fn hit(&self) {
        // Ordering: Release pairs with the Acquire in `wait`.
        if self.open.fetch_sub(1, Ordering::Release) == 1 {
            self.owner.unpark();
        }
    }

    /// Blocks the thread that made the gate until it opens.
    ///
    /// # Panics
    /// When it has not opened after a minute.
    pub fn wait(&self) {
        let start = Instant::now();
        // Ordering: Acquire pairs with the Release in `hit`: a chain of RMWs.
        while self.open.load(Ordering::Acquire) != 0 {
            assert!(
                start.elapsed() < PATIENCE,
                "the gate has not opened: {self:?}"
            );
            thread::park_timeout(PATIENCE);
        }
    }
}
