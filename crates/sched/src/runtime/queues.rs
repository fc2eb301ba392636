//! The queues that all workers share, and which workers search and sleep.

use crate::queues::idle::Idle;
use crate::runtime::token::Token;
use ganger_deque::{Stealer, Worker};
use ganger_mpsc::Injector;

pub(crate) struct Queues {
    /// New processes, and processes woken from outside of any worker; first in, first out.
    pub(crate) global: Injector<Token>,
    /// The urgent lane: processes that a system event has woken, or waits for. Workers take from it
    /// before they look elsewhere, and find it empty as a rule, by two loads.
    ///
    /// Rejected: a lane in each worker, because the sender may choose a worker that is in a long
    /// step. Rejected: the top of the worker's deque, because a thief may take the process, or the
    /// next process that the step wakes may bury it.
    pub(crate) urgent: Injector<Token>,
    /// The lane of arrivals: processes that a timer has woken, first in, first out. Workers take
    /// from it before they look at their deques, and find it empty as a rule, by two loads.
    ///
    /// Rejected: the deque of the worker that delivers, where the newest comes first, and which has
    /// a slice of the time alone: with long steps beside them, the oldest wait for many slices.
    pub(crate) arrivals: Injector<Token>,
    /// The other ends of the workers' deques, and of those of the spares.
    stealers: Box<[Stealer<Token>]>,
    pub(crate) idle: Idle,
}

impl Queues {
    /// Empty queues beside these deques.
    pub(crate) fn new(deques: &[Worker<Token>], idle: Idle) -> Self {
        Self {
            global: Injector::new(),
            urgent: Injector::new(),
            arrivals: Injector::new(),
            stealers: deques.iter().map(Worker::stealer).collect(),
            idle,
        }
    }

    /// Whether something is in a queue that all workers share.
    pub(crate) fn is_any_queued(&self) -> bool {
        !self.urgent.is_empty() || !self.arrivals.is_empty() || !self.global.is_empty()
    }

    /// The other ends of the first `used` deques.
    pub(crate) fn stealers(&self, used: usize) -> &[Stealer<Token>] {
        &self.stealers[..used]
    }
}
