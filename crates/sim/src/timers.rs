//! Timers, by the clock of the simulation.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fmt, mem};

/// How often a dropped action may set further timers while all are forgotten.
const ROUNDS: usize = 1_000;

type Action = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Timers {
    now: Duration,
    /// The last timer is due next.
    waiting: Vec<(Duration, u64, Action)>,
    set: u64,
}

/// The clock of a simulation, for processes and handlers. The clock stands still while an actor can
/// move, and then jumps to the next timer.
#[derive(Clone, Default)]
pub struct SimClock(Arc<Mutex<Timers>>);

impl SimClock {
    /// Returns the time since the simulation began.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.timers().now
    }

    /// Calls `action` after `delay`. Actions that are due at the same time run in the order of
    /// their calls.
    pub fn after(&self, delay: Duration, action: impl FnOnce() + Send + 'static) {
        let mut timers = self.timers();
        let due = timers.now.saturating_add(delay);
        timers.set += 1;
        let nth = timers.set;
        let place = timers
            .waiting
            .partition_point(|&(other, before, _)| (other, before) > (due, nth));
        timers.waiting.insert(place, (due, nth, Box::new(action)));
    }

    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.timers().waiting.last().map(|&(due, ..)| due)
    }

    pub(crate) fn set_now(&self, now: Duration) {
        self.timers().now = now;
    }

    /// Calls the next action, if it is due.
    pub(crate) fn fire(&self) {
        let mut timers = self.timers();
        let is_due = timers
            .waiting
            .last()
            .is_some_and(|&(due, ..)| due <= timers.now);
        let action = is_due.then(|| timers.waiting.pop()).flatten();
        drop(timers);
        if let Some((_, _, action)) = action {
            action();
        }
    }

    /// Forgets all timers, and the timers that their actions set when they are dropped.
    pub(crate) fn clear(&self) {
        for _ in 0..ROUNDS {
            let waiting = mem::take(&mut self.timers().waiting);
            if waiting.is_empty() {
                return;
            }
            // The drop runs users' code, so the lock is not held.
            drop(waiting);
        }
    }

    fn timers(&self) -> MutexGuard<'_, Timers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SimClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimClock")
            .field("now", &self.now())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_even_if_it_asks_for_more_when_it_is_dropped() {
        struct Again(SimClock, u64);
        impl Drop for Again {
            fn drop(&mut self) {
                if let Some(left) = self.1.checked_sub(1) {
                    let again = Self(self.0.clone(), left);
                    self.0.after(Duration::ZERO, move || drop(again));
                }
            }
        }
        let clock = SimClock::default();
        let again = Again(clock.clone(), 3);
        clock.after(Duration::ZERO, move || drop(again));
        clock.clear();
        assert_eq!(clock.next_due(), None);
    }

    #[test]
    fn things_happen_in_the_order_in_which_they_are_due() {
        let clock = SimClock::default();
        let seen = Arc::new(Mutex::new(Vec::new()));
        for (nth, millis) in [30, 10, 20, 10].into_iter().enumerate() {
            let seen = Arc::clone(&seen);
            clock.after(Duration::from_millis(millis), move || {
                seen.lock().unwrap().push(nth);
            });
        }
        while let Some(due) = clock.next_due() {
            clock.fire();
            clock.set_now(due);
            clock.fire();
        }
        assert_eq!(*seen.lock().unwrap(), [1, 3, 2, 0]);
        assert_eq!(clock.now(), Duration::from_millis(30));
    }
}
