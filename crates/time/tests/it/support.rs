//! Schedulers with timers.

use ganger_sched::{Scheduler, Timers};
use ganger_sim::{Rt, Sim};
use ganger_time::{Instant, TimerStats};
use std::thread;
use std::time::Duration;

/// How long a test waits for a certain event before it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn start(workers: usize) -> (Scheduler, Timers) {
    let scheduler = Scheduler::builder().workers(workers).start().unwrap();
    let timers = scheduler.timers().clone();
    (scheduler, timers)
}

pub(crate) fn sim(seed: u64) -> Sim {
    Sim::new(seed).workers(3).must_free()
}

pub(crate) fn until(what: &str, is_so: impl Fn() -> bool) {
    let end = std::time::Instant::now() + PATIENCE;
    while !is_so() {
        assert!(std::time::Instant::now() < end, "{what}: not in time");
        thread::yield_now();
    }
}

/// The longest delay of a timer in a run without faults: the end of its tick, and some turns.
pub(crate) const LATE: Duration = Duration::from_micros(100);

pub(crate) fn timers(rt: &Rt<'_>) -> Timers {
    rt.timers().clone()
}

pub(crate) fn stats(rt: &Rt<'_>) -> TimerStats {
    timers(rt).stats()
}

pub(crate) fn moment(time: Duration) -> Instant {
    Instant::from_nanos(u64::try_from(time.as_nanos()).unwrap())
}

#[track_caller]
pub(crate) fn assert_in_time(due: Duration, now: Duration) {
    assert!((due..due + LATE).contains(&now), "due {due:?}, now {now:?}");
}
