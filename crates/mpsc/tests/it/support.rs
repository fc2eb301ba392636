//! Helpers of the tests with many threads.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::panic::{self, PanicHookInfo};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Longer than any wake-up takes. A test that waits longer fails, because the wake-up is lost.
pub(crate) const LOST: Duration = Duration::from_secs(60);

/// Returns `count`, multiplied by the factor in the environment.
pub(crate) fn scaled(count: usize) -> usize {
    let factor = std::env::var("GANGER_STRESS").map_or(1, |factor| factor.parse().unwrap());
    count * factor
}

/// Waits for a thread that ends by itself, and returns its result.
pub(crate) fn join<T>(handle: JoinHandle<T>) -> T {
    let start = Instant::now();
    while !handle.is_finished() {
        assert!(start.elapsed() < LOST, "a thread waits without an end");
        thread::yield_now();
    }
    handle.join().unwrap()
}

/// Calls `hook` for each panic from now on, with the previous hook. Tests call this function one at
/// a time: of two tests that take the same hook, one would lose the other's.
pub(crate) fn add_panic_hook(
    hook: impl Fn(&PanicHookInfo<'_>, &dyn Fn(&PanicHookInfo<'_>)) + Send + Sync + 'static,
) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| hook(info, &before)));
}

/// The producer, and the number of its item.
pub(crate) type Item = (usize, usize);

/// Checks that each producer's items come once, in order, and all of them.
pub(crate) struct Order(Vec<usize>);

impl Order {
    pub(crate) fn new(producers: usize) -> Self {
        Self(vec![0; producers])
    }

    pub(crate) fn check(&mut self, (producer, number): Item) {
        assert_eq!(number, self.0[producer], "producer {producer}");
        self.0[producer] += 1;
    }

    pub(crate) fn is_complete(&self, items: usize) -> bool {
        self.0.iter().all(|next| *next == items)
    }
}
