//! The wheel, and other libraries with timers.

use ganger_wheel::Wheel;
use hierarchical_hash_wheel_timer::IdOnlyTimerEntry;
use hierarchical_hash_wheel_timer::wheels::cancellable::QuadWheelWithOverflow;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Waker};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, Sleep, sleep_until};

/// How many steps the time makes while timers fire.
const STEPS: u64 = 1_000;

/// Timers whose time begins when they are made, in nanoseconds.
pub trait Timers: Sized + 'static {
    /// Their name in the tables.
    const NAME: &'static str;

    /// None yet.
    fn new() -> Self;

    /// Adds a timer for each deadline.
    fn insert(&mut self, deadlines: &[u64]);

    /// Adds a timer for each deadline and cancels it at once.
    fn insert_and_cancel(&mut self, deadlines: &[u64]);

    /// Lets the time pass up to `end`. Returns the number of fired timers; `None` if the call would
    /// take too long.
    fn fire(&mut self, end: u64) -> Option<u64>;
}

/// ganger-wheel.
#[derive(Debug)]
pub struct Ganger(pub(super) Wheel<u64>);

impl Timers for Ganger {
    const NAME: &'static str = "ganger-wheel";

    fn new() -> Self {
        Self(Wheel::new())
    }

    fn insert(&mut self, deadlines: &[u64]) {
        for &at in deadlines {
            self.0.insert(at, 1);
        }
    }

    fn insert_and_cancel(&mut self, deadlines: &[u64]) {
        for &at in deadlines {
            let key = self.0.insert(at, 1);
            assert!(self.0.cancel(key).is_some());
        }
    }

    fn fire(&mut self, end: u64) -> Option<u64> {
        let mut fired = 0;
        for step in 1..=STEPS {
            while self.0.advance(end / STEPS * step, 1_024, |it| fired += it) {}
        }
        Some(fired)
    }
}

/// The standard library's sorted map, by deadline and number.
#[derive(Debug)]
pub struct Sorted {
    map: BTreeMap<(u64, u64), u64>,
    next: u64,
}

impl Timers for Sorted {
    const NAME: &'static str = "BTreeMap";

    fn new() -> Self {
        let (map, next) = (BTreeMap::new(), 0);
        Self { map, next }
    }

    fn insert(&mut self, deadlines: &[u64]) {
        for &at in deadlines {
            self.map.insert((at, self.next), 1);
            self.next += 1;
        }
    }

    fn insert_and_cancel(&mut self, deadlines: &[u64]) {
        for &at in deadlines {
            let key = (at, self.next);
            self.next += 1;
            self.map.insert(key, 1);
            assert!(self.map.remove(&key).is_some());
        }
    }

    fn fire(&mut self, end: u64) -> Option<u64> {
        let mut fired = 0;
        for step in 1..=STEPS {
            let now = end / STEPS * step;
            while let Some(first) = self.map.first_entry().filter(|it| it.key().0 <= now) {
                fired += first.remove();
            }
        }
        Some(fired)
    }
}

/// hierarchical_hash_wheel_timer, in milliseconds.
pub struct Hashed {
    wheel: QuadWheelWithOverflow<IdOnlyTimerEntry<u64>>,
    next: u64,
}

const MILLISECOND: u64 = 1_000_000;

impl Hashed {
    fn add(&mut self, at: u64) -> u64 {
        let id = self.next;
        self.next += 1;
        // The wheel refuses timers that are due at once.
        let delay = Duration::from_millis((at / MILLISECOND).max(1));
        let added = self.wheel.insert(IdOnlyTimerEntry { id, delay });
        assert!(added.is_ok());
        id
    }
}

impl Timers for Hashed {
    const NAME: &'static str = "hierarchical_hash_wheel_timer";

    fn new() -> Self {
        let (wheel, next) = (QuadWheelWithOverflow::new(), 0);
        Self { wheel, next }
    }

    fn insert(&mut self, deadlines: &[u64]) {
        for &at in deadlines {
            self.add(at);
        }
    }

    fn insert_and_cancel(&mut self, deadlines: &[u64]) {
        for &at in deadlines {
            let id = self.add(at);
            assert!(self.wheel.cancel(&id).is_ok());
        }
    }

    fn fire(&mut self, end: u64) -> Option<u64> {
        let ticks = 0..end / MILLISECOND;
        Some(ticks.map(|_| self.wheel.tick().len() as u64).sum())
    }
}

/// tokio's timers, whose time is the clock's: a timer is a sleep, in a box because it must not
/// move, that is polled with a waker that does nothing.
pub struct Tokio {
    runtime: Runtime,
    start: Instant,
    sleeps: Vec<Pin<Box<Sleep>>>,
}

/// The last of tokio's timers fires this long after its deadline.
const LATE: u64 = 20 * MILLISECOND;

impl Timers for Tokio {
    const NAME: &'static str = "tokio";

    fn new() -> Self {
        let runtime = Builder::new_current_thread().enable_time().build();
        Self {
            runtime: runtime.expect("a runtime"),
            start: Instant::now(),
            sleeps: Vec::new(),
        }
    }

    fn insert(&mut self, deadlines: &[u64]) {
        let _entered = self.runtime.enter();
        let mut context = Context::from_waker(Waker::noop());
        for &at in deadlines {
            let at = self.start + Duration::from_nanos(at);
            let mut sleep = Box::pin(sleep_until(at));
            let _ = sleep.as_mut().poll(&mut context);
            self.sleeps.push(sleep);
        }
    }

    fn insert_and_cancel(&mut self, deadlines: &[u64]) {
        let _entered = self.runtime.enter();
        let mut context = Context::from_waker(Waker::noop());
        for &at in deadlines {
            let sleep = pin!(sleep_until(self.start + Duration::from_nanos(at)));
            assert!(sleep.poll(&mut context).is_pending());
        }
    }

    fn fire(&mut self, end: u64) -> Option<u64> {
        if end > 2_000 * MILLISECOND {
            return None;
        }
        let end = self.start + Duration::from_nanos(end + LATE);
        self.runtime.block_on(async { sleep_until(end).await });
        Some(self.sleeps.iter().filter(|it| it.is_elapsed()).count() as u64)
    }
}
