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

    /// The workers' deques, once.
    pub(crate) fn take_deques(&self) -> Option<Vec<Worker<Token>>> {
        sync::lock(&self.deques).take()
    }

    /// Whether a start of workers has been tried.
    pub(crate) fn is_tried(&self) -> bool {
        sync::lock(&self.deques).is_none()
    }

    /// Notes that a worker exists.
    pub(crate) fn begin_to_serve(&self) {
        // Ordering: Relaxed: the reader that acts on it is behind the lock of the starter of
        // workers.
        self.is_served.store(true, Ordering::Relaxed);
    }

    /// Whether there has ever been a worker; for callers after the start.
    pub(crate) fn is_served(&self) -> bool {
        // Ordering: Relaxed: a stop reads it behind the lock of the starter of workers. For other
        // readers it is for display.
        self.is_served.load(Ordering::Relaxed)
    }
}
