//! The time of a scheduler, its timers, and where threads wait for them.

use crate::base::clock::{CoarseTime, MonotonicClock};
use crate::queues::timer_waiter::{Dues, TimerWaiter};
use crate::runtime::driver::{Driven, Driver};
use ganger_sync::CachePadded;
use ganger_time::Timers;
use std::sync::Arc;

pub(crate) struct Timing {
    pub(crate) timer_waiter: TimerWaiter,
    pub(crate) timers: Timers,
    pub(crate) driven: Option<Driven>,
    /// Written by the monitor.
    pub(crate) time: CachePadded<CoarseTime>,
}

impl Timing {
    /// Makes the timing for `slots` slots of workers. `make_timers` gets the number of shards.
    pub(crate) fn new(
        clock: MonotonicClock,
        driver: Option<Arc<dyn Driver>>,
        slots: usize,
        make_timers: impl FnOnce(&Arc<Dues>, MonotonicClock, usize) -> Timers,
    ) -> Self {
        let shards = slots + 1;
        let timer_waiter = TimerWaiter::new(shards);
        let time = CoarseTime::of(clock);
        Self {
            timers: make_timers(&timer_waiter.dues, clock, shards),
            timer_waiter,
            driven: driver.map(Driven::new),
            time: CachePadded::new(time),
        }
    }
}
