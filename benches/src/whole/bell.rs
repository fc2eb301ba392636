//! How soon a waiting process begins to run (W10).

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// The number from a [`Deliver`](super::contestant::Deliver) at which the receiving process ends.
pub(super) const LAST: u64 = u64::MAX;

/// The thread's behaviour after its send, until it hears the bell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sender {
    /// The thread parks.
    Parks,
    /// The thread computes.
    Spins,
}

/// Struck by a process, heard by the thread of the bell.
#[derive(Debug)]
pub(super) struct Bell {
    epoch: Instant,
    owner: Thread,
    /// When it was struck last, in nanoseconds since the epoch. The process writes it.
    at: AtomicU64,
    /// The number of the last strike. The process writes it, the owner waits for it.
    number: AtomicU64,
}

impl Bell {
    /// Creates a bell of the calling thread, which is never freed.
    pub(super) fn new() -> &'static Self {
        Box::leak(Box::new(Self {
            epoch: Instant::now(),
            owner: thread::current(),
            at: AtomicU64::new(0),
            number: AtomicU64::new(LAST),
        }))
    }

    /// Strikes the bell, after the process was sent this number. Returns whether the process should
    /// end.
    #[must_use]
    pub(super) fn strike(&self, number: u64) -> bool {
        let at = nanos(self.epoch.elapsed());
        // Ordering: Relaxed: the store to `number` publishes it.
        self.at.store(at, Ordering::Relaxed);
        // Ordering: Release pairs with the Acquire in `hear`.
        self.number.store(number, Ordering::Release);
        self.owner.unpark();
        number == LAST
    }

    /// Returns the time from before `send` until the woken process has read its clock. `number`
    /// differs from the number of the call before. For the thread of the bell.
    pub(super) fn hear(&self, number: u64, sender: Sender, send: impl FnOnce(u64)) -> Duration {
        let sent = nanos(self.epoch.elapsed());
        send(number);
        // Ordering: Acquire pairs with the Release in `strike`.
        while self.number.load(Ordering::Acquire) != number {
            match sender {
                Sender::Parks => thread::park(),
                Sender::Spins => (0..100).for_each(|n: u64| _ = black_box(n)),
            }
        }
        // Ordering: Relaxed: the Acquire above has seen it.
        Duration::from_nanos(self.at.load(Ordering::Relaxed).saturating_sub(sent))
    }
}

/// Returns a time in nanoseconds, which fit for as long as any program runs.
pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_ends_when_the_process_reads_its_clock() {
        let bell = Bell::new();
        let pause = Duration::from_millis(20);
        let heard = bell.hear(7, Sender::Parks, |number| {
            thread::spawn(move || {
                thread::sleep(pause);
                assert!(!bell.strike(number));
            });
        });
        assert!(heard >= pause, "{heard:?}");
        for (number, sender) in [(8, Sender::Parks), (9, Sender::Spins)] {
            let heard = bell.hear(number, sender, |number| {
                assert!(!bell.strike(number));
                thread::sleep(pause);
            });
            assert!(heard < pause, "{heard:?}: what comes after does not count");
        }
        assert!(bell.strike(LAST));
    }
}
