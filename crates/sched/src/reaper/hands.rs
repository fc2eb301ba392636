//! The threads that end processes for the reaper, each until it is kept by one.

use super::{Act, reap, reap_and_count, until_all_have_ended};
use crate::contain::or_abort;
use crate::counted;
use crate::shared::Shared;
use ganger_sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::thread;

/// After so many looks at which it was in the same turn, a hand is not waited for.
const PATIENCE: u32 = 5;

/// How many there are at the most; and as many again of those that nobody sees to.
pub(crate) const MOST: usize = 16;

/// Something has been queued after the halt: has it ended.
pub(super) fn start_late(shared: &Arc<Shared>) {
    if !shared.late_hands.enter() {
        return;
    }
    #[cfg(feature = "sim")]
    if crate::sim::is_driven() {
        // The only thread that there is.
        return end_late(shared);
    }
    let started = counted::spawn(counted::builder(shared, "hand"), shared, end_late);
    if started.is_err() {
        // The system grants no thread.
        end_late(shared);
    }
}

fn end_late(shared: &Arc<Shared>) {
    let is_left = || {
        let is_left = shared.has_work();
        if is_left {
            // Somebody may be about to push what counts already.
            thread::yield_now();
        }
        is_left
    };
    shared
        .late_hands
        .work(|| or_abort(|| reap(shared)), is_left);
}

#[derive(Default)]
pub(super) struct Hands(Vec<Hand>);

struct Hand {
    /// Turns, and looks that found nothing. Written by the hand; shared with its thread, which drops its part when it
    /// ends.
    progress: Arc<AtomicU64>,
    /// What was seen of it.
    seen: u64,
    /// How often that was seen again.
    again: u32,
}

impl Hands {
    /// Has one more, if something is queued and there is none, or each has been kept for a while.
    pub(super) fn see_to(&mut self, shared: &Arc<Shared>) -> Act {
        self.0.retain(|hand| Arc::strong_count(&hand.progress) > 1);
        let mut are_kept = true;
        for hand in &mut self.0 {
            are_kept &= hand.is_kept();
        }
        if !are_kept || !shared.has_work() {
            return Act::Done;
        }
        if self.0.len() == MOST {
            return Act::InVain;
        }
        match Hand::start(shared) {
            Some(hand) => self.0.push(hand),
            None => reap(shared),
        }
        Act::Done
    }
}

impl Hand {
    /// None when the system grants no thread.
    fn start(shared: &Arc<Shared>) -> Option<Self> {
        let progress = Arc::<AtomicU64>::default();
        let its = Arc::clone(&progress);
        let started = counted::spawn(counted::builder(shared, "hand"), shared, move |shared| {
            // Ordering: Relaxed: whoever is late has another.
            let count = || {
                its.fetch_add(1, Ordering::Relaxed);
            };
            until_all_have_ended(shared, || {
                count();
                reap_and_count(shared, count);
                Act::Done
            });
        });
        let hand = Self {
            progress,
            seen: 0,
            again: 0,
        };
        started.is_ok().then_some(hand)
    }

    /// Looks whether it is where it was.
    fn is_kept(&mut self) -> bool {
        // Ordering: Relaxed, as above.
        let now = self.progress.load(Ordering::Relaxed);
        if now == self.seen {
            self.again += 1;
        } else {
            (self.seen, self.again) = (now, 0);
        }
        self.again >= PATIENCE
    }
}
