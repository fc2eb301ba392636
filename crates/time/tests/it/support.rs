//! Schedulers with timers.

use ganger_sched::{Builder, Scheduler};
use ganger_sim::Sim;
use ganger_time::Timers;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

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
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}: not in time");
        thread::yield_now();
    }
}
