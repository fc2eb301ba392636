//! The work of processes that hog their workers (W12) or share them (W13), until they have to stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How a process blocks its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// It sleeps: the processor is free.
    Sleep,
    /// It computes.
    Compute,
}

/// Processes that block their thread, again and again.
#[derive(Debug)]
pub struct Stuck {
    over: AtomicBool,
    how: How,
    time: Duration,
}

impl Stuck {
    /// Processes that block in this way for so long a turn. Never freed.
    #[must_use]
    pub fn new(how: How, time: Duration) -> &'static Self {
        let over = AtomicBool::new(false);
        Box::leak(Box::new(Self { over, how, time }))
    }

    /// Blocks for a turn; or does not, and returns `false`, when it is over.
    #[must_use]
    pub fn turn(&self) -> bool {
        // Ordering: Relaxed: a flag that stands for nothing else.
        if self.over.load(Ordering::Relaxed) {
            return false;
        }
        match self.how {
            How::Sleep => thread::sleep(self.time),
            How::Compute => work(self.time),
        }
        true
    }

    /// From now on it is over.
    pub fn stop(&self) {
        // Ordering: Relaxed: as in `turn`.
        self.over.store(true, Ordering::Relaxed);
    }
}

/// Processes that run laps of a microsecond, and how many each has run.
#[derive(Debug)]
pub struct Race {
    over: AtomicBool,
    laps: Mutex<Vec<u64>>,
}

impl Race {
    /// A race of that many processes. Never freed.
    #[must_use]
    pub fn new(processes: usize) -> &'static Self {
        Box::leak(Box::new(Self {
            over: AtomicBool::new(false),
            laps: Mutex::new(Vec::with_capacity(processes)),
        }))
    }

    /// Works for a microsecond; or does not, and returns `false`, when the race is over.
    #[must_use]
    pub fn lap(&self) -> bool {
        // Ordering: Relaxed: a flag that stands for nothing else.
        if self.over.load(Ordering::Relaxed) {
            return false;
        }
        work(Duration::from_micros(1));
        true
    }

    /// A process hands in how many laps it has run.
    pub fn finish(&self, laps: u64) {
        let mut all = self.laps.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(laps);
    }

    /// From now on it is over.
    pub fn stop(&self) {
        // Ordering: Relaxed: as in `lap`.
        self.over.store(true, Ordering::Relaxed);
    }

    /// The laps that processes have handed in.
    #[must_use]
    pub fn laps(&self) -> Vec<u64> {
        self.laps
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

fn work(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_take_their_time_until_it_is_over() {
        for how in [How::Sleep, How::Compute] {
            let stuck = Stuck::new(how, Duration::from_millis(5));
            let begin = Instant::now();
            assert!(stuck.turn() && begin.elapsed() >= Duration::from_millis(5));
            stuck.stop();
            assert!(!stuck.turn());
        }
        let race = Race::new(1);
        let begin = Instant::now();
        assert!(race.lap() && begin.elapsed() >= Duration::from_micros(1));
        race.stop();
        assert!(!race.lap());
        race.finish(1);
        assert_eq!(race.laps(), [1]);
    }
}
