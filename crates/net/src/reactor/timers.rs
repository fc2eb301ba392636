//! The deadlines of waiting operations: no other file of this crate knows a timer.
//!
//! By the system's clock a wheel holds the deadlines, and the thread in the poller asks the wheel
//! before and after its wait. In a simulation, deadlines are events of the simulated network.

use crate::poller::{Deadline, Poller};
use crate::world::{self, World};
use ganger_sync::sync::lock;
use ganger_wheel::Wheel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A time that never comes.
pub(crate) const NEVER: u64 = u64::MAX;

/// The number of timers that expire in a critical section.
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

pub(crate) struct Armed {
    wheel: Wheel<Deadline>,
    /// No timer expires earlier. Without timers a visit in the poller leaves the wheel alone.
    next: u64,
    /// The end of the wait of the thread in the poller; 0 if no thread waits there.
    waits_until: u64,
}

impl Default for Armed {
    fn default() -> Self {
        Self {
            wheel: Wheel::default(),
            next: NEVER,
            waits_until: 0,
        }
    }
}

impl Armed {
    fn find_next(&mut self) {
        self.next = self.wheel.next_due().unwrap_or(NEVER);
    }
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
                    if deadline.at < armed.next {
                        armed.find_next();
                    }
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
                let mut armed = lock(armed);
                // Fails if the timer has expired.
                let _ = armed.wheel.cancel(key);
                armed.find_next();
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
            armed.waits_until = armed.next;
            let due = (armed.next != NEVER)
                .then(|| Duration::from_nanos(armed.next.saturating_sub(self.now())));
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
        let mut armed = lock(armed);
        if armed.next == NEVER {
            return false;
        }
        let now = self.now();
        if now < armed.next {
            return false;
        }
        let take = |deadline| expired.push(deadline);
        let is_more = armed.wheel.advance(now, BATCH, take);
        armed.find_next();
        is_more
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poller::Direction;

    // pins: I6
    #[test]
    fn a_wait_ends_no_later_than_the_first_timer() {
        const HOUR: Duration = Duration::from_hours(1);
        let timers = Timers::system(Arc::new(Poller::new().unwrap()));
        let timeout = |most| timers.limit_wait(most, |timeout| timeout);
        let arm = |id, time| {
            timers.arm(Deadline {
                id,
                direction: Direction::Read,
                at: timers.after(time),
            })
        };
        let expire = || {
            let mut expired = Vec::new();
            while timers.take_expired(&mut expired) {}
            expired.into_iter().map(|it| it.id).collect::<Vec<_>>()
        };
        assert_eq!(timeout(None), None);
        assert_eq!(timeout(Some(HOUR)), Some(HOUR));
        let late = arm(1, HOUR);
        assert!(timeout(None).unwrap() > HOUR / 2);
        arm(2, HOUR / 4);
        assert!(timeout(None).unwrap() < HOUR / 2);
        assert!(expire().is_empty());
        arm(3, Duration::ZERO);
        while expire() != [3] {}
        let rest = timeout(None).unwrap();
        assert!(rest > HOUR / 8 && rest < HOUR / 2, "{rest:?}");
        timers.disarm(late);
        assert!(timeout(None).unwrap() > HOUR / 8);
    }
}
