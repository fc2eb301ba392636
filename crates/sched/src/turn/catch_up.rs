//! A pick of a process far behind may have several turns.
//!
//! A sender of thousands of messages has a single pick for all of them, their receiver a pick for
//! each batch. Other processes run between these picks, and the messages outgrow the caches. Each
//! further turn counts as another pick of the process, except for the rotation (G4).

use crate::base::clock::Deadline;
use crate::policy::{CATCH_UP_BATCHES, CATCH_UP_SPAN, CATCH_UP_TURNS};
use crate::probe::{Decide, Decider, Probe};
use crate::runtime::local::LocalQueue;
use crate::runtime::turn_place::TurnPlace;

pub(super) struct CatchUp<'a> {
    queue: &'a LocalQueue,
    until: Deadline,
    /// Length of the worker's deque at the pick.
    queued: usize,
    turns: u32,
}

impl<'a> CatchUp<'a> {
    /// Begins the pick, on a worker, if `pending` is far more than a batch.
    #[inline]
    pub(super) fn of(place: impl TurnPlace<'a>, pending: usize, batch: usize) -> Option<Self> {
        if pending / CATCH_UP_BATCHES >= batch {
            Self::begin(place)
        } else {
            None
        }
    }

    #[cold]
    #[inline(never)]
    fn begin(place: impl TurnPlace<'a>) -> Option<Self> {
        place.queue().map(|queue| Self {
            queue,
            until: Deadline::after(CATCH_UP_SPAN),
            queued: queue.deque.len(),
            turns: 1,
        })
    }

    /// Decides whether the process has another turn, with `left` events. Offers the deque to
    /// thieves.
    #[cold]
    #[inline(never)]
    pub(super) fn goes_on(&mut self, left: usize) -> bool {
        let Self { queue, turns, .. } = *self;
        let shared = &queue.shared;
        let has_to_look = !shared.queues.urgent.is_empty()
            || shared.worker_slots.slot(queue.index).is_replaced()
            || shared.shutdown.is_halted()
            || shared.shutdown.is_over();
        let goes_on = left >= shared.config.event_batch
            && turns < CATCH_UP_TURNS
            && queue.deque.len() <= self.queued
            && !has_to_look
            && !self.is_over();
        if goes_on {
            self.turns += 1;
            shared.probe.looking(queue.index);
            queue.offer();
            shared.probe.settled(queue.index);
        }
        goes_on
    }

    /// Returns whether the pick was long ago. In a simulation no time passes in a pick.
    fn is_over(&self) -> bool {
        !Decider::is_driven() && self.until.remaining().is_zero()
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests;
