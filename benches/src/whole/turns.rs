//! The work of processes: they hog their workers (W12), share them (W13), or meanwhile wake other
//! processes (W13b), until the end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How a process blocks its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// Sleeps: the processor is free.
    Sleep,
    /// Computes: the processor is busy.
    Compute,
}

/// The turns of processes that block their thread, again and again.
pub(super) struct Stuck {
    over: AtomicBool,
    how: How,
    time: Duration,
    sends: Option<Mutex<Sends>>,
}

/// An act at the end of a turn, now and then.
struct Sends {
    every: Duration,
    next: Instant,
    send: Box<dyn FnMut() + Send>,
}

impl Stuck {
    /// Creates turns that block in this way for `time` each. Never freed.
    pub(super) fn new(how: How, time: Duration) -> &'static Self {
        Self::make(how, time, None)
    }

    /// Creates turns that compute for `time` each. At the end of a turn, a process calls `send`
    /// when it is due, once in `every`. Never freed.
    pub(super) fn that_sends(
        time: Duration,
        every: Duration,
        send: impl FnMut() + Send + 'static,
    ) -> &'static Self {
        let sends = Sends {
            every,
            next: Instant::now() + every,
            send: Box::new(send),
        };
        Self::make(How::Compute, time, Some(sends))
    }

    fn make(how: How, time: Duration, sends: Option<Sends>) -> &'static Self {
        Box::leak(Box::new(Self {
            over: AtomicBool::new(false),
            how,
            time,
            sends: sends.map(Mutex::new),
        }))
    }

    /// Blocks for a turn and returns `true`; after the end, returns `false` at once.
    #[must_use]
    pub(super) fn turn(&self) -> bool {
        // Ordering: Relaxed: a flag that stands for nothing else.
        if self.over.load(Ordering::Relaxed) {
            return false;
        }
        match self.how {
            How::Sleep => thread::sleep(self.time),
            How::Compute => work(self.time),
        }
        // If another process holds the lock, it sends.
        if let Some(mut sends) = self.sends.as_ref().and_then(|sends| sends.try_lock().ok()) {
            sends.send_when_due();
        }
        true
    }

    /// Ends the blocking: each later turn returns `false`.
    pub(super) fn stop(&self) {
        // Ordering: Relaxed: a flag that stands for nothing else.
        self.over.store(true, Ordering::Relaxed);
    }
}

impl Sends {
    fn send_when_due(&mut self) {
        if Instant::now() >= self.next {
            self.next += self.every;
            (self.send)();
        }
    }
}

/// A race of processes in laps of a microsecond, with the number of laps of each process.
#[derive(Debug)]
pub(super) struct Race {
    over: AtomicBool,
    laps: Mutex<Vec<u64>>,
}

impl Race {
    /// Creates a race of this number of processes. Never freed.
    pub(super) fn new(processes: usize) -> &'static Self {
        Box::leak(Box::new(Self {
            over: AtomicBool::new(false),
            laps: Mutex::new(Vec::with_capacity(processes)),
        }))
    }

    /// Works for a microsecond and returns `true`; after the race, returns `false` at once.
    #[must_use]
    pub(super) fn lap(&self) -> bool {
        // Ordering: Relaxed: a flag that stands for nothing else.
        if self.over.load(Ordering::Relaxed) {
            return false;
        }
        work(Duration::from_micros(1));
        true
    }

    /// Notes how many laps a process has run.
    pub(super) fn finish(&self, laps: u64) {
        let mut all = self.laps.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(laps);
    }

    /// Ends the race: each later lap returns `false`.
    pub(super) fn stop(&self) {
        // Ordering: Relaxed: a flag that stands for nothing else.
        self.over.store(true, Ordering::Relaxed);
    }

    /// Returns the numbers of laps of all ended processes.
    pub(super) fn laps(&self) -> Vec<u64> {
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
    fn one_of_them_sends_when_that_is_due() {
        let (sent, sends) = std::sync::mpsc::channel();
        let every = Duration::from_millis(20);
        let begin = Instant::now();
        let busy = Stuck::that_sends(Duration::from_millis(1), every, move || {
            sent.send(begin.elapsed()).expect("the test listens");
        });
        while begin.elapsed() < 3 * every {
            assert!(busy.turn());
        }
        let sends: Vec<_> = sends.try_iter().collect();
        assert!(!sends.is_empty() && sends.len() <= 3, "{sends:?}");
        assert!(sends[0] >= every, "{sends:?}");
    }
}
