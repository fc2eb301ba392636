//! Steps that compute while others take what they wake, where another thread would have no processor of its own; by
//! a clock that stands still until it is set.
//!
//! Nobody has a thread here: how long a step has computed is what the test says in the system's place.

use super::Hands;
use crate::config::Config;
use crate::local::LocalQueue;
use crate::monitor::Monitor;
use crate::monitor::watched::{MANY, PART};
use crate::shared::Shared;
use crate::still::Still;
use crate::{ProcessHandle, Scheduler};
use ganger_sync::sync::lock;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

const MILLI: Duration = Duration::from_millis(1);

fn limit() -> u32 {
    u32::try_from(Config::default().long_step.as_millis()).unwrap()
}

/// A scheduler of two workers, the first of which is in a turn, and of two others that wait like spares. Nobody has a
/// thread.
struct Bench {
    shared: Arc<Shared>,
    /// The deque of the worker in its turn, and of the one that takes from there.
    own: LocalQueue,
    thief: LocalQueue,
    woken: Vec<ProcessHandle>,
    /// Whether the system says how long threads compute.
    says: bool,
    /// The other worker has short turns.
    other_is_short: bool,
    scheduler: Scheduler,
}

impl Bench {
    fn new(processors: usize) -> Self {
        let builder = Scheduler::builder().workers(4).processors(processors);
        // There is no worker that would end what has not run.
        let builder = builder.shutdown_deadline(Duration::ZERO);
        let scheduler = builder.build().unwrap();
        let shared = Arc::clone(&scheduler.shared);
        let deques = shared.take_deques().unwrap();
        shared.crew.step_back(2);
        shared.crew.step_back(3);
        shared.crew.set_looking(0, false);
        shared.crew.set_looking(1, false);
        let mut queues = (0..).zip(deques);
        let mut queue = || {
            let (index, deque) = queues.next().unwrap();
            LocalQueue::new(Arc::clone(&shared), index, deque)
        };
        Self {
            own: queue(),
            thief: queue(),
            woken: Vec::new(),
            says: true,
            other_is_short: true,
            shared,
            scheduler,
        }
    }

    /// The step wakes somebody.
    fn wake(&mut self) {
        let woken = self.scheduler.submit(Still, "woken", ()).unwrap();
        self.woken.push(woken);
        let token = self.shared.global.pop().unwrap();
        self.own.deque.push(token);
    }

    /// Another worker takes the oldest of them.
    fn steal(&self) {
        let stolen = self.shared.stealers()[0].steal().success().unwrap();
        self.thief.deque.push(stolen);
    }

    /// For whoever ends what has not run.
    fn leave_all(&self) {
        for queue in [&self.own, &self.thief] {
            while let Some(token) = queue.deque.pop() {
                self.shared.global.push(token);
            }
        }
        while let Some(token) = self.shared.urgent.pop() {
            self.shared.global.push(token);
        }
    }

    /// After how many milliseconds the worker is relieved whose step does that between two looks. What it computes
    /// counts from the first of them, where the system says so.
    fn relieved_after(mut self, mut act: impl FnMut(&mut Self, u32)) -> u32 {
        let shared = Arc::clone(&self.shared);
        let now = Cell::new(Duration::from_secs(1));
        let mut monitor = Monitor::new(&shared, Hands(&now));
        for worker in 0..2 {
            self.shared.counters.of(Some(worker)).turns.bump();
        }
        self.wake();
        *lock(&shared.crew.computed) = self.says.then(|| now.get());
        monitor.look();
        for milli in 1..1_000 {
            act(&mut self, milli);
            if self.other_is_short {
                self.shared.counters.of(Some(1)).turns.bump();
            }
            now.set(now.get() + MILLI);
            *lock(&shared.crew.computed) = self.says.then(|| now.get());
            monitor.look();
            if self.shared.crew.is_relieved(0) {
                self.leave_all();
                let reported = self.scheduler.stats().total.long_steps;
                assert_eq!(reported, 1);
                return milli;
            }
        }
        panic!("nobody has taken its place");
    }
}

/// As many processors as workers.
fn full() -> Bench {
    Bench::new(4)
}

// pins: G6
#[test]
fn a_step_keeps_its_processor_while_others_take_what_it_wakes() {
    // Or with fewer.
    for processors in [4, 2] {
        let relieved = Bench::new(processors).relieved_after(|bench, milli| {
            bench.wake();
            if milli % 2 == 0 {
                bench.steal();
                bench.steal();
            }
        });
        assert_eq!(relieved, MANY * limit());
    }
}

// pins: G6
#[test]
fn a_step_that_wakes_nobody_keeps_its_processor_too() {
    let relieved = full().relieved_after(|bench, milli| {
        if milli == 1 {
            bench.steal();
        }
    });
    assert_eq!(relieved, MANY * limit());
}

// pins: G6
#[test]
fn another_thread_takes_the_place_of_a_step_when_nobody_takes_what_waits_behind_it() {
    assert_eq!(full().relieved_after(|_, _| {}), 1 + limit());
    // Long after it has begun to compute.
    let last = 5 * limit();
    let relieved = full().relieved_after(|bench, milli| {
        bench.wake();
        if milli <= last {
            bench.steal();
        }
    });
    let patience = limit().div_ceil(PART);
    assert_eq!(relieved, last + patience);
}

/// Though the oldest is taken again and again.
// pins: G6
#[test]
fn another_thread_takes_the_place_of_a_step_that_wakes_more_than_others_take() {
    let many = 5 * limit();
    let relieved = full().relieved_after(|bench, milli| {
        if milli == many {
            (0..100).for_each(|_| bench.wake());
        }
        bench.wake();
        bench.steal();
    });
    assert!(relieved > many, "{relieved}");
    assert!(relieved <= many + limit() + 1, "{relieved}");
}

// pins: G6
#[test]
fn another_thread_takes_the_place_of_a_step_when_something_waits_behind_a_relieved_worker() {
    let relieved = full().relieved_after(|bench, milli| {
        if milli == 1 {
            // The other worker's step blocks, with something behind it.
            bench.shared.counters.of(Some(1)).turns.bump();
            bench.other_is_short = false;
            bench.steal();
            assert!(bench.shared.crew.relieve(&bench.shared, 1, None));
            // The spare has no turn.
            bench.shared.crew.set_looking(3, true);
        }
    });
    assert_eq!(relieved, 1 + limit());
}

// pins: G6
#[test]
fn another_thread_takes_the_place_of_a_step_when_something_waits_for_any_worker() {
    let last = 5 * limit();
    for is_urgent in [false, true] {
        let relieved = full().relieved_after(|bench, milli| {
            bench.wake();
            bench.steal();
            if milli == last {
                let waits = bench.scheduler.submit(Still, "waits", ()).unwrap();
                bench.woken.push(waits);
                if is_urgent {
                    let token = bench.shared.global.pop().unwrap();
                    bench.shared.urgent.push(token);
                }
            }
        });
        assert_eq!(relieved, last);
    }
}

// pins: G6
#[test]
fn another_thread_takes_the_place_of_a_step_where_it_has_a_processor_of_its_own() {
    let relieved = Bench::new(5).relieved_after(|bench, _| {
        bench.wake();
        bench.steal();
    });
    assert_eq!(relieved, 1 + limit());
}

// pins: G6
#[test]
fn another_thread_takes_the_place_of_a_step_where_the_system_does_not_say_that_it_computes() {
    let bench = Bench {
        says: false,
        ..full()
    };
    let relieved = bench.relieved_after(|bench, _| {
        bench.wake();
        bench.steal();
    });
    assert_eq!(relieved, limit());
}
