//! The queues shared by all workers, and the record of searching and sleeping workers.

use crate::queues::idle::Idle;
use crate::runtime::token::Token;
use ganger_deque::{Stealer, Worker};
use ganger_mpsc::Injector;

pub(crate) struct Queues {
    /// New processes, and processes woken from outside of any worker; first in, first out.
    pub(crate) global: Injector<Token>,
    /// The urgent lane: processes woken by a system event, or with one waiting. Workers take from
    /// it before they look elsewhere. As a rule it is empty, at the cost of two loads.
    ///
    /// Rejected: a lane in each worker, because the sender may choose a worker inside a long step.
    /// Rejected: the top of the worker's deque, because a thief may take the process, or the next
    /// process woken by the step may bury it.
    pub(crate) urgent: Injector<Token>,
    /// The lane of arrivals: processes woken by a timer, first in, first out. Workers take from it
    /// before they look at their deques. As a rule it is empty, at the cost of two loads.
    ///
    /// Rejected: the deque of the delivering worker, where the newest comes first, with a slice of
    /// the time alone: next to long steps, the oldest wait for many slices.
    pub(crate) arrivals: Injector<Token>,
    /// Stealers of the deques of workers and spares.
    stealers: Box<[Stealer<Token>]>,
    pub(crate) idle: Idle,
}

impl Queues {
    /// Makes empty queues around the deques.
    pub(crate) fn new(deques: &[Worker<Token>], idle: Idle) -> Self {
        Self {
            global: Injector::new(),
            urgent: Injector::new(),
            arrivals: Injector::new(),
            stealers: deques.iter().map(Worker::stealer).collect(),
            idle,
        }
    }

    /// Returns whether a queue shared by all workers has a process.
    pub(crate) fn is_any_queued(&self) -> bool {
        !self.urgent.is_empty() || !self.arrivals.is_empty() || !self.global.is_empty()
    }

    /// Returns the other ends of the first `used` deques.
    pub(crate) fn stealers(&self, used: usize) -> &[Stealer<Token>] {
        &self.stealers[..used]
    }
}
