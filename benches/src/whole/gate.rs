//! Many hits, a single wake-up: the end of every workload.

use super::job::Error;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// How long [`Gate::time`] waits before it takes the workload for stuck.
const PATIENCE: Duration = Duration::from_secs(300);

/// A counter of hits, with the sum of their numbers. The last hit wakes the thread of the gate.
///
/// The gate lives for ever and is used for all measurements in turn, so that a process needs no
/// more than a reference, and none pays for a count of references.
#[derive(Debug)]
pub(super) struct Gate {
    open: AtomicU64,
    sum: AtomicU64,
    owner: Thread,
}

/// Returns the gate of all processes of the program. The first thread to ask owns the gate, and
/// measures.
pub(super) fn gate() -> &'static Gate {
    static GATE: LazyLock<&'static Gate> = LazyLock::new(Gate::new);
    &GATE
}

impl Gate {
    /// Creates a gate of the calling thread. Never freed.
    pub(super) fn new() -> &'static Self {
        Box::leak(Box::new(Self {
            open: AtomicU64::new(0),
            sum: AtomicU64::new(0),
            owner: thread::current(),
        }))
    }

    /// Returns the time from before `start` until after this number of hits. For the thread of the
    /// gate.
    ///
    /// # Errors
    /// When `start` fails, or the hits have not come after five minutes.
    pub(super) fn time(
        &self,
        hits: u64,
        start: impl FnOnce() -> Result<(), Error>,
    ) -> Result<Duration, Error> {
        assert_eq!(self.owner.id(), thread::current().id());
        // Ordering: Relaxed: no process hits before `start`, and its start publishes this.
        self.open.store(hits, Ordering::Relaxed);
        let begin = Instant::now();
        start()?;
        // Ordering: Acquire pairs with the Release in `hit`: a chain of RMWs.
        while self.open.load(Ordering::Acquire) != 0 {
            if begin.elapsed() > PATIENCE {
                let stuck = format!("stuck after {PATIENCE:?}: {self:?}");
                return Err(Error::Failed(stuck));
            }
            thread::park_timeout(PATIENCE);
        }
        Ok(begin.elapsed())
    }

    /// Hits the gate once.
    pub(super) fn hit(&self) {
        // Ordering: Release pairs with the Acquire in `time`.
        if self.open.fetch_sub(1, Ordering::Release) == 1 {
            self.owner.unpark();
        }
    }

    /// Hits the gate, and adds to the sum.
    pub(super) fn hit_with(&self, number: u64) {
        // Ordering: Relaxed: the hit publishes it.
        self.sum.fetch_add(number, Ordering::Relaxed);
        self.hit();
    }

    /// Returns the sum since the last call. For the thread of the gate, when all hits are in.
    pub(super) fn take_sum(&self) -> u64 {
        // Ordering: Relaxed: `time` has seen the hits, which publish their numbers.
        self.sum.swap(0, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_opens_at_the_last_hit_again_and_again() {
        let gate = Gate::new();
        for hits in [1, 3] {
            let pause = Duration::from_millis(20);
            let time = gate.time(hits, || {
                for number in 0..hits {
                    thread::spawn(move || {
                        let late = if number == 0 { pause } else { Duration::ZERO };
                        thread::sleep(late);
                        gate.hit_with(10 + number);
                    });
                }
                Ok(())
            });
            assert!(time.unwrap() >= pause, "the slowest hit is the last one");
            assert_eq!(gate.take_sum(), (0..hits).map(|n| 10 + n).sum::<u64>());
        }
        assert_eq!(gate.take_sum(), 0);
    }

    #[test]
    fn what_can_not_start_is_an_error() {
        let refused = Gate::new().time(1, || Err(Error::Missing("refused".to_owned())));
        assert_eq!(refused, Err(Error::Missing("refused".to_owned())));
    }
}
