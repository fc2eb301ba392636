//! The deadlines of operations that wait.

use crate::ready::Side;
use ganger_wheel::Wheel;
use std::time::Duration;

/// A moment that does not come.
pub(crate) const NEVER: u64 = u64::MAX;

/// The most timers that are carried out under the lock.
pub(crate) const MOST: usize = 64;

/// What a timer is for. Times are nanoseconds by the clock of the network.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Alarm {
    pub(crate) id: u64,
    pub(crate) side: Side,
    pub(crate) at: u64,
}

/// Finds a timer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Key {
    Wheel(ganger_wheel::Key),
    /// In a simulation: the seat, the moment, and which one there.
    Simulated(usize, (u64, u64)),
}

#[derive(Debug, Default)]
pub(crate) struct Timers {
    wheel: Wheel<Alarm>,
    /// A thread waits in the poller until then. None does at 0.
    waits_until: u64,
}

impl Timers {
    /// With the key, whether the thread that waits is to be told.
    pub(crate) fn insert(&mut self, alarm: Alarm) -> (ganger_wheel::Key, bool) {
        let key = self.wheel.insert(alarm.at, alarm);
        (key, alarm.at < self.waits_until)
    }

    pub(crate) fn cancel(&mut self, key: ganger_wheel::Key) {
        // One that is over already is no longer there.
        let _ = self.wheel.cancel(key);
    }

    /// A thread is going to wait in the poller. Returns for how long at the most.
    pub(crate) fn begin_wait(&mut self, now: u64, most: Option<Duration>) -> Option<Duration> {
        let due = self.wheel.next_due();
        self.waits_until = due.unwrap_or(NEVER);
        let due = due.map(|due| Duration::from_nanos(due.saturating_sub(now)));
        match (due, most) {
            (Some(due), Some(most)) => Some(due.min(most)),
            (due, most) => due.or(most),
        }
    }

    pub(crate) fn end_wait(&mut self) {
        self.waits_until = 0;
    }

    /// Takes out what is due. Returns whether more is.
    pub(crate) fn take_due(&mut self, now: u64, due: &mut Vec<Alarm>) -> bool {
        self.wheel.advance(now, MOST, |alarm| due.push(alarm))
    }
}
