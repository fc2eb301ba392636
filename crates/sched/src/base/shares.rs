//! The shares of a worker's time.
//!
//! **Problem.** A reader wants the sums and the time since, while the worker continues. A sum read
//! before the worker adds to it, with a moment read after it, or the other way round, would count
//! some time twice, or not at all.
//!
//! **Protocol.** A sequence lock (Boehm, Can Seqlocks Get Along With Programming Language Memory
//! Models?, MSPC 2012, figure 6): the worker makes the version odd, writes, and makes it even; a
//! reader reads again when the version was odd, or has changed. Only one thread at a time is the
//! worker, and its successor starts after it has returned, or has retired.

use ganger_sync::atomic::{AtomicU64, Ordering, fence};
use ganger_sync::{hint, thread};
use std::time::Duration;

/// The activity of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spends {
    /// The worker gives processes their turns, and looks for the next between two of them.
    Work,
    /// The worker has found no process at its first look, and looks again.
    Search,
    Sleep,
    /// No thread is the worker, or the thread has been relieved.
    Nothing,
}

/// How a worker has spent its time since it was started.
#[cfg_attr(
    not(feature = "observe"),
    expect(unreachable_pub, reason = "it is public with the feature")
)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct WorkerTimes {
    /// With turns of processes.
    pub busy: Duration,
    /// In search of a process, after it had found none.
    pub searching: Duration,
    /// Asleep, or blocked in the driver.
    pub asleep: Duration,
}

/// How often a reader spins before it gives its processor away: the worker may be suspended.
const SPINS: u32 = 64;

pub(crate) struct Shares {
    /// Odd while the worker writes.
    version: AtomicU64,
    /// When the worker began its present activity, times 4, plus the activity's number.
    since: AtomicU64,
    /// Nanoseconds, by the numbers of the activities.
    spent: [AtomicU64; 3],
}

impl Shares {
    pub(crate) fn new() -> Self {
        Self {
            version: AtomicU64::new(0),
            since: AtomicU64::new(Spends::Nothing as u64),
            spent: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Begins an activity of the worker.
    pub(crate) fn spend(&self, on: Spends, now: u64) {
        // Ordering: Relaxed here and below: one thread at a time writes.
        let version = self.version.load(Ordering::Relaxed);
        let since = self.since.load(Ordering::Relaxed);
        // Ordering: Relaxed: the fence below orders it.
        self.version.store(version + 1, Ordering::Relaxed);
        // Ordering: Release pairs with the Acquire fence in `read`: a reader of the writes below
        // sees the odd version.
        fence(Ordering::Release);
        if let Some(spent) = self.spent.get((since & 3) as usize) {
            let more = now.saturating_sub(since >> 2);
            // Ordering: Relaxed here and below: the fence and the last store order them.
            spent.store(spent.load(Ordering::Relaxed) + more, Ordering::Relaxed);
        }
        // Ordering: Relaxed: the fence and the last store order it.
        self.since.store(now << 2 | on as u64, Ordering::Relaxed);
        // Ordering: Release pairs with the Acquire in `read`.
        self.version.store(version + 2, Ordering::Release);
    }

    /// Returns the times up to the begin of the present activity, and `since`.
    fn read(&self) -> ([u64; 3], u64) {
        let mut tries = 0;
        loop {
            // Ordering: Acquire pairs with the Release at the end of `spend`: the load sees the
            // writes before it.
            let version = self.version.load(Ordering::Acquire);
            // Ordering: Relaxed: the fence below orders them.
            let since = self.since.load(Ordering::Relaxed);
            let spent = self.spent.each_ref().map(|it| it.load(Ordering::Relaxed));
            // Ordering: Acquire pairs with the Release fence in `spend`.
            fence(Ordering::Acquire);
            // Ordering: Relaxed: the fence above orders it.
            if version & 1 == 0 && self.version.load(Ordering::Relaxed) == version {
                return (spent, since);
            }
            tries += 1;
            if tries % SPINS == 0 {
                thread::yield_now();
            } else {
                hint::spin_loop();
            }
        }
    }

    /// Returns how the time until now was spent.
    pub(crate) fn times(&self, now: u64) -> WorkerTimes {
        let (mut spent, since) = self.read();
        if let Some(spent) = spent.get_mut((since & 3) as usize) {
            *spent += now.saturating_sub(since >> 2);
        }
        let [busy, searching, asleep] = spent.map(Duration::from_nanos);
        WorkerTimes {
            busy,
            searching,
            asleep,
        }
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_moment_is_spent_on_one_thing() {
        let shares = Shares::new();
        let times = |now| {
            let times = shares.times(now);
            [times.busy, times.searching, times.asleep].map(|it| it.as_nanos())
        };
        assert_eq!(times(100), [0, 0, 0]);
        shares.spend(Spends::Search, 100);
        assert_eq!(times(107), [0, 7, 0]);
        shares.spend(Spends::Sleep, 110);
        shares.spend(Spends::Search, 150);
        shares.spend(Spends::Work, 151);
        assert_eq!(times(251), [100, 11, 40]);
        shares.spend(Spends::Nothing, 351);
        assert_eq!(times(10_000), [200, 11, 40]);
        // A reader whose clock is behind.
        shares.spend(Spends::Work, 20_000);
        assert_eq!(times(19_000), [200, 11, 40]);
    }
}
