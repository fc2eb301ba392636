//! The parts kept by a scheduler for the start of its workers.

use crate::runtime::token::Token;
use ganger_deque::Worker;
use ganger_sync::atomic::{AtomicBool, Ordering};
use ganger_sync::sync;

pub(crate) struct Start {
    /// Held while the workers are started.
    pub(crate) lock: std::sync::Mutex<()>,
    /// The workers' deques, until the start hands them out.
    deques: sync::Mutex<Option<Vec<Worker<Token>>>>,
    /// A worker's thread has been started.
    is_served: AtomicBool,
}

impl Start {
    pub(crate) fn new(deques: Vec<Worker<Token>>) -> Self {
        Self {
            lock: std::sync::Mutex::default(),
            deques: sync::Mutex::new(Some(deques)),
            is_served: AtomicBool::new(false),
        }
    }

    /// Takes the workers' deques, once.
    pub(crate) fn take_deques(&self) -> Option<Vec<Worker<Token>>> {
        sync::lock(&self.deques).take()
    }

    /// Returns whether a start of workers has been tried.
    pub(crate) fn is_tried(&self) -> bool {
        sync::lock(&self.deques).is_none()
    }

    /// Notes that a worker exists.
    pub(crate) fn begin_to_serve(&self) {
        // Ordering: Relaxed: a start and `Shared::stop_once` read it behind the lock of the start.
        // `Shared::force` reads it without the lock, and may miss the first worker. Then the
        // forcing thread ends queued processes beside the worker, and both close the timers.
        self.is_served.store(true, Ordering::Relaxed);
    }

    /// Returns whether there has ever been a worker; for callers after the start.
    pub(crate) fn is_served(&self) -> bool {
        // Ordering: Relaxed: reads the store of `begin_to_serve`, which says why this is enough.
        // For readers other than starts and stops it is for display.
        self.is_served.load(Ordering::Relaxed)
    }
}
