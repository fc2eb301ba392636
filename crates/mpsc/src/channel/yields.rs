//! Decides whether a waiting thread yields before it sleeps.
//!
//! **Problem.** If sender and receiver take turns on one processor, a yield saves a sleep and a
//! wake-up. If another program computes on this processor, the yield lasts for a time slice, even
//! if the other side acts meanwhile. If no item comes for a while, the yield is in vain, and not
//! free: Linux charges the thread for it, and when the thread is next woken, it may wait behind a
//! waker that keeps running.
//!
//! **Rejected.** Never to yield: channels with few places take twice as long. Always to yield: on a
//! busy machine a receiver of an item each millisecond gets it a time slice late.
//!
//! **Protocol.** A round of yields pays if the other side has acted within a short time. After a
//! long round, the next [`WAITS`] waits do not yield. The same holds after [`TRUST`] rounds in
//! vain, less the rounds that paid. Then a single round is tried.

use ganger_sync::atomic::{AtomicU32, Ordering};
use ganger_sync::thread;
use std::time::{Duration, Instant};

/// How many rounds in vain end the yields.
const TRUST: u32 = 4;

/// How many waits then do without yields.
const WAITS: u32 = 1_000;

const MOST: u32 = WAITS + TRUST - 1;

/// The longest duration of a round that pays.
const LONG: Duration = Duration::from_micros(500);

/// The record of the waits of one side of a channel. All threads of the side write it without
/// synchronisation. A lost change does no harm, as the record only serves guesses.
#[derive(Debug)]
pub(super) struct Yields {
    /// Below [`WAITS`]: how many waits have done without yields. From [`WAITS`] on: `count - WAITS`
    /// rounds in vain may follow, and one more ends the yields.
    count: AtomicU32,
}

impl Yields {
    pub(super) fn new() -> Self {
        Self {
            count: AtomicU32::new(MOST),
        }
    }

    /// Yields at most `most` times, until `has_changed` returns true, if yielding pays. Returns
    /// whether it has changed.
    pub(super) fn any(&self, most: u32, has_changed: impl Fn() -> bool) -> bool {
        if most == 0 || !self.begin() {
            return false;
        }
        let start = Instant::now();
        let found = (0..most).any(|_| {
            thread::yield_now();
            has_changed()
        });
        self.end(found, start.elapsed());
        found
    }

    /// Returns whether this wait yields.
    fn begin(&self) -> bool {
        // Ordering: Relaxed, all here and below: a guess, which publishes nothing.
        let count = self.count.load(Ordering::Relaxed);
        if count < WAITS {
            self.count.store(count + 1, Ordering::Relaxed);
        }
        count >= WAITS
    }

    /// Records a round: its success, and its duration.
    fn end(&self, found: bool, lasted: Duration) {
        // Ordering: Relaxed, because the count is a guess.
        let count = self.count.load(Ordering::Relaxed);
        let count = match (found, lasted < LONG) {
            (true, true) => (count + 1).min(MOST),
            (false, true) if count > WAITS => count - 1,
            _ => 0,
        };
        // Ordering: Relaxed, because the count is a guess.
        self.count.store(count, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::ZERO;

    /// Returns how many of `waits` waits yield, if each round ends as given.
    fn rounds(yields: &Yields, waits: u32, found: bool, lasted: Duration) -> u32 {
        let wait = |_| {
            let begun = yields.begin();
            if begun {
                yields.end(found, lasted);
            }
            u32::from(begun)
        };
        (0..waits).map(wait).sum()
    }

    #[test]
    fn yields_in_vain_end_and_are_tried_again() {
        let yields = Yields::new();
        assert_eq!(rounds(&yields, TRUST, false, SHORT), TRUST);
        for _ in 0..3 {
            assert_eq!(rounds(&yields, WAITS, false, SHORT), 0);
            assert_eq!(rounds(&yields, 1, false, SHORT), 1);
        }
        assert_eq!(rounds(&yields, WAITS, false, SHORT), 0);
        assert_eq!(rounds(&yields, 100, true, SHORT), 100, "one that pays");
        assert_eq!(
            rounds(&yields, WAITS, false, SHORT),
            TRUST,
            "is followed by others"
        );
    }

    #[test]
    fn a_yield_that_lasts_for_a_time_slice_is_the_last() {
        for found in [true, false] {
            let yields = Yields::new();
            assert_eq!(rounds(&yields, WAITS + 1, found, LONG), 1);
            assert_eq!(rounds(&yields, 1, found, LONG), 1, "it is tried again");
        }
    }

    #[test]
    fn yields_that_pay_in_turn_with_others_go_on() {
        let yields = Yields::new();
        for _ in 0..100 {
            assert_eq!(rounds(&yields, TRUST - 1, false, SHORT), TRUST - 1);
            assert_eq!(rounds(&yields, TRUST, true, SHORT), TRUST);
        }
    }

    #[test]
    fn what_is_found_is_said() {
        let yields = Yields::new();
        assert!(yields.any(1, || true) && !yields.any(3, || false));
        assert!(!yields.any(0, || true), "none was asked for");
    }
}
