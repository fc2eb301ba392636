//! Schedulers with timers.

use ganger_sched::{Builder, Scheduler};
use ganger_sim::{Rt, Sim};
use ganger_time::{Instant, TimerStats, Timers};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// How long a test waits for something that is bound to happen before it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn with_timers(builder: Builder) -> Builder {
    builder.source(Arc::new(Timers::new()))
}

pub(crate) fn start(workers: usize) -> (Scheduler, Arc<Timers>) {
    let scheduler = with_timers(Scheduler::builder().workers(workers));
    let scheduler = scheduler.build().unwrap();
    scheduler.start().unwrap();
    let timers = Timers::of(&scheduler).unwrap();
    (scheduler, timers)
}

pub(crate) fn sim(seed: u64) -> Sim {
    Sim::new(seed).workers(3).builder(with_timers).must_free()
}

pub(crate) fn until(what: &str, is_so: impl Fn() -> bool) {
    let end = std::time::Instant::now() + PATIENCE;
    while !is_so() {
        assert!(std::time::Instant::now() < end, "{what}: not in time");
        thread::yield_now();
    }
}

/// The longest that something is late in a run without faults: the end of its tick, and some turns.
pub(crate) const LATE: Duration = Duration::from_micros(100);

pub(crate) fn timers(rt: &Rt<'_>) -> Arc<Timers> {
    Timers::of(rt).unwrap()
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
