//! The waits of timers (W14 to W17), and the lateness of sleeping processes (W16).

use super::bell::nanos;
use super::board::units;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Returns times evenly spread over `over`, in no order.
pub(super) fn scattered(number: u64, over: Duration) -> Duration {
    Duration::from_nanos(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % nanos(over).max(1))
}

/// Returns the time of a timer that is cancelled: from 1 to 60 seconds.
pub(super) fn churn_time(number: u64) -> Duration {
    Duration::from_secs(1) + scattered(number, Duration::from_secs(59))
}

/// When the timers of a crowd are due.
#[derive(Debug, Clone, Copy)]
pub(super) struct Due {
    /// No timer is due earlier.
    pub(super) first: Instant,
    /// All timers are due within this time from then on.
    pub(super) span: Duration,
}

impl Due {
    /// Returns the due time of a timer.
    pub(super) fn at(&self, number: u64) -> Instant {
        self.first + scattered(number, self.span)
    }
}

/// The sleeps of many processes.
#[derive(Debug)]
pub(super) struct Naps {
    over: AtomicBool,
    /// The lateness of each ended sleeper, sleep by sleep, in units of the board.
    late: Mutex<Vec<Vec<u32>>>,
}

/// The naps of a process.
#[derive(Debug)]
pub(super) struct Nap {
    naps: &'static Naps,
    number: u64,
    due: Option<Instant>,
    late: Vec<u32>,
}

impl Naps {
    /// Creates an empty list of naps, which is never freed.
    pub(super) fn new() -> &'static Self {
        Box::leak(Box::new(Self {
            over: AtomicBool::new(false),
            late: Mutex::new(Vec::new()),
        }))
    }

    /// Returns the naps of a process.
    pub(super) fn of(&'static self, process: u64) -> Nap {
        Nap {
            naps: self,
            number: process << 32,
            due: None,
            late: Vec::new(),
        }
    }

    /// Ends the naps: each process ends when it has slept.
    pub(super) fn stop(&self) {
        // Ordering: Relaxed: a flag that stands for nothing else.
        self.over.store(true, Ordering::Relaxed);
    }

    /// Returns the lateness after each sleep, of each ended process.
    pub(super) fn late(&self) -> Vec<Vec<u32>> {
        self.late
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Nap {
    /// Returns the time of the next sleep of a process, after its start or a sleep. `None` if it
    /// should end.
    ///
    /// # Panics
    /// When the process has slept for less than this time.
    pub(super) fn next(&mut self) -> Option<Duration> {
        let now = Instant::now();
        if let Some(due) = self.due {
            assert!(now >= due, "a timer is {:?} too early", due - now);
            self.late.push(units(now - due));
        }
        // Ordering: Relaxed: a flag that stands for nothing else.
        if self.naps.over.load(Ordering::Relaxed) {
            let mut all = self
                .naps
                .late
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            all.push(std::mem::take(&mut self.late));
            return None;
        }
        let time = Duration::from_millis(1) + scattered(self.number, Duration::from_millis(19));
        self.number += 1;
        self.due = Some(now + time);
        Some(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn times_are_within_their_bounds_and_differ() {
        let first = Instant::now();
        let due = Due {
            first,
            span: Duration::from_secs(2),
        };
        let mut all: Vec<_> = (0..1_000).map(|number| due.at(number)).collect();
        assert!(all.iter().all(|&at| at >= first && at < first + due.span));
        assert!(!all.is_sorted());
        all.sort_unstable();
        let apart = all.windows(2).map(|two| two[1] - two[0]);
        assert!(apart.max() < Some(Duration::from_millis(20)));
        let churn: Vec<_> = (0..1_000).map(churn_time).collect();
        assert!(churn.iter().all(|time| (1..60).contains(&time.as_secs())));
    }

    #[test]
    fn a_process_is_as_late_as_it_comes_until_it_is_over() {
        let naps = Naps::new();
        let mut nap = naps.of(3);
        let time = nap.next().unwrap();
        assert!(time >= Duration::from_millis(1) && time < Duration::from_millis(20));
        let late = Duration::from_millis(5);
        thread::sleep(time + late);
        assert!(nap.next().is_some() && naps.late().is_empty());
        thread::sleep(Duration::from_millis(20));
        naps.stop();
        assert_eq!(nap.next(), None);
        let all = naps.late();
        assert_eq!((all.len(), all[0].len()), (1, 2));
        assert!(all[0][0] > units(late), "{all:?}");
    }

    #[test]
    #[should_panic(expected = "too early")]
    fn a_process_that_comes_too_early_is_found() {
        let mut nap = Naps::new().of(0);
        nap.due = Some(Instant::now() + Duration::from_secs(3_600));
        let _slept = nap.next();
    }
}
