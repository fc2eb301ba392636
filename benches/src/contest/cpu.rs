//! The processor of a thread, and its running time. Without Linux threads are not pinned, and the
//! wall-clock time stands for the running time of a thread.

use std::time::{Duration, Instant};

pub(crate) use system::{allowed, pin};

/// Returns how many processors threads can be pinned to; 1 where they cannot.
pub(crate) fn count() -> usize {
    allowed().len().max(1)
}

/// Times by the wall clock and by the clock of the calling thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    wall: Instant,
    thread: Duration,
}

impl Clocks {
    pub(crate) fn start() -> Self {
        Self {
            thread: system::thread_time(),
            wall: Instant::now(),
        }
    }

    pub(crate) fn wall(&self) -> Duration {
        self.wall.elapsed()
    }

    pub(crate) fn thread(&self) -> Duration {
        system::thread_time() - self.thread
    }
}

#[cfg(target_os = "linux")]
mod system {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    use rustix::time::{ClockId, clock_gettime};
    use std::sync::LazyLock;
    use std::time::Duration;

    /// The calling thread is pinned until this is dropped; then it may run where it could before.
    #[must_use]
    #[derive(Debug)]
    pub(crate) struct Pinned(Option<CpuSet>);

    /// The processors of this process. Read before any thread is pinned, for threads inherit their
    /// parent's.
    static ALLOWED: LazyLock<Vec<usize>> = LazyLock::new(|| {
        let set = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
        (0..CpuSet::MAX_CPU)
            .filter(|&cpu| set.is_set(cpu))
            .collect()
    });

    /// Returns the processors to which threads can be pinned.
    pub(crate) fn allowed() -> &'static [usize] {
        &ALLOWED
    }

    /// Pins the calling thread to the `nth` processor, if it exists.
    pub(crate) fn pin(nth: usize) -> Pinned {
        let Some(&cpu) = ALLOWED.get(nth) else {
            return Pinned(None);
        };
        let before = sched_getaffinity(None).ok();
        let mut set = CpuSet::new();
        set.set(cpu);
        // A thread that cannot be pinned runs anywhere: worse figures, the same work.
        let is_pinned = sched_setaffinity(None, &set).is_ok();
        Pinned(before.filter(|_| is_pinned))
    }

    impl Drop for Pinned {
        fn drop(&mut self) {
            if let Some(before) = &self.0 {
                let _ = sched_setaffinity(None, before);
            }
        }
    }

    /// Returns how long the calling thread has run.
    pub(super) fn thread_time() -> Duration {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::try_from(time).expect("a time that has run is not negative")
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::sync::LazyLock;
    use std::time::{Duration, Instant};

    /// Nothing.
    #[must_use]
    #[derive(Debug)]
    pub(crate) struct Pinned;

    /// Returns no processors: threads can't be pinned here.
    pub(crate) fn allowed() -> &'static [usize] {
        &[]
    }

    /// Does nothing.
    pub(crate) fn pin(_nth: usize) -> Pinned {
        Pinned
    }

    /// Returns the time since the first call.
    pub(super) fn thread_time() -> Duration {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        START.elapsed()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_runs_on_its_processor_and_is_let_go_again() {
        let before = rustix::thread::sched_getaffinity(None).unwrap();
        for (nth, &cpu) in system::allowed().iter().enumerate() {
            let pinned = pin(nth);
            std::thread::yield_now();
            assert_eq!(rustix::thread::sched_getcpu(), cpu);
            drop(pinned);
            assert_eq!(rustix::thread::sched_getaffinity(None).unwrap(), before);
        }
    }

    #[test]
    fn a_thread_that_waits_does_not_run() {
        let clocks = Clocks::start();
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let timeout = Duration::from_millis(20);
        assert!(receiver.recv_timeout(timeout).is_err());
        drop(sender);
        assert!(clocks.wall() >= timeout);
        assert!(clocks.thread() < timeout / 2);
    }
}
