//! The deadlines of waiting operations: the only file of this crate that knows a timer.
//!
//! On the system's clock a wheel keeps them, and the thread that waits in the poller looks there
//! before and after its wait. In a simulation they are events of the simulated network.

use crate::poller::{Deadline, Poller};
use crate::world::{self, World};
use ganger_sync::sync::lock;
use ganger_wheel::Wheel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A time that never comes.
pub(crate) const NEVER: u64 = u64::MAX;

/// The number of timers that expire under one hold of the lock.
const BATCH: usize = 64;

/// Names a timer until it expires.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TimerKey {
    Wheel(ganger_wheel::Key),
    Simulated(world::TimerKey),
}

/// The clock of a network, and its timers. Times are nanoseconds.
pub(crate) enum Timers {
    System {
        poller: Arc<Poller>,
        start: Instant,
        armed: Mutex<Armed>,
    },
    Simulated(Arc<World>),
}

#[derive(Default)]
pub(crate) struct Armed {
    wheel: Wheel<Deadline>,
    /// The end of the wait of the thread in the poller; 0 if no thread waits there.
    waits_until: u64,
}

impl Timers {
    pub(crate) fn system(poller: Arc<Poller>) -> Self {
        Self::System {
            poller,
            start: Instant::now(),
            armed: Mutex::default(),
        }
    }

    pub(crate) fn now(&self) -> u64 {
        match self {
            Self::System { start, .. } => nanos(start.elapsed()),
            Self::Simulated(world) => world.now(),
        }
    }

    pub(crate) fn after(&self, time: Duration) -> u64 {
        self.now().saturating_add(nanos(time))
    }

    /// Starts a timer.
    pub(crate) fn arm(&self, deadline: Deadline) -> TimerKey {
        match self {
            Self::System { poller, armed, .. } => {
                let (key, is_earlier) = {
                    let mut armed = lock(armed);
                    let key = armed.wheel.insert(deadline.at, deadline);
                    (key, deadline.at < armed.waits_until)
                };
                if is_earlier {
                    poller.notify();
                }
                TimerKey::Wheel(key)
            }
            Self::Simulated(world) => TimerKey::Simulated(world.arm(deadline)),
        }
    }

    /// Stops a timer, if it has not expired.
    pub(crate) fn disarm(&self, key: TimerKey) {
        match (self, key) {
            (Self::System { armed, .. }, TimerKey::Wheel(key)) => {
                // Fails if the timer has expired.
                let _ = lock(armed).wheel.cancel(key);
            }
            (Self::Simulated(world), TimerKey::Simulated(key)) => world.disarm(key),
            _ => unreachable!("the key of another network"),
        }
    }

    /// Calls `wait` with a timeout that ends no later than the first timer.
    pub(crate) fn limit_wait<R>(
        &self,
        timeout: Option<Duration>,
        wait: impl FnOnce(Option<Duration>) -> R,
    ) -> R {
        let Self::System { armed, .. } = self else {
            return wait(timeout);
        };
        let timeout = {
            let mut armed = lock(armed);
            let due = armed.wheel.next_due();
            armed.waits_until = due.unwrap_or(NEVER);
            let due = due.map(|due| Duration::from_nanos(due.saturating_sub(self.now())));
            match (due, timeout) {
                (Some(due), Some(timeout)) => Some(due.min(timeout)),
                (due, timeout) => due.or(timeout),
            }
        };
        let result = wait(timeout);
        lock(armed).waits_until = 0;
        result
    }

    /// Takes expired timers. Returns true if more may have expired.
    pub(crate) fn take_expired(&self, expired: &mut Vec<Deadline>) -> bool {
        let Self::System { armed, .. } = self else {
            return false;
        };
        let now = self.now();
        lock(armed)
            .wheel
            .advance(now, BATCH, |deadline| expired.push(deadline))
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
