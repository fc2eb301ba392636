//! The time of a scheduler, what is due at which moment, and where threads wait for it.

use crate::base::clock::CoarseTime;
use crate::queues::timer_waiter::TimerWaiter;
use crate::runtime::driver::{Driven, Driver};
use crate::runtime::sources::Source;
use ganger_sync::CachePadded;
use std::sync::Arc;

pub(crate) struct Timing {
    pub(crate) timer_waiter: TimerWaiter,
    pub(crate) sources: Vec<Arc<dyn Source>>,
    pub(crate) driven: Option<Driven>,
    /// Written by the monitor.
    pub(crate) time: CachePadded<CoarseTime>,
}

/// What makes processes ready from outside of the scheduler.
pub(crate) type Outside = (Vec<Arc<dyn Source>>, Option<Arc<dyn Driver>>);

impl Timing {
    pub(crate) fn new((sources, driver): Outside, slots: usize) -> Self {
        Self {
            timer_waiter: TimerWaiter::new(sources.len(), slots + 1),
            sources,
            driven: driver.map(Driven::new),
            time: CachePadded::default(),
        }
    }
}
