//! A twin's clock by the time of the program, for nodes whose schedulers have threads.

use super::knobs::Twin;
use ganger_proc_api::Instant;
use ganger_sched::internal::here;
use ganger_sync::sync::lock;
use std::sync::PoisonError;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Without news the thread looks again after this time.
const LOOK: Duration = Duration::from_millis(100);

/// Moves the clock of a twin with the time of the program: see [`Twin::run`]. Dropping it stops the
/// clock.
#[derive(Debug)]
#[must_use = "dropping it stops the clock"]
pub struct Running {
    twin: Twin,
    thread: Option<JoinHandle<()>>,
}

impl Twin {
    /// Moves the clock with the time of the program, on a thread, until the result is dropped: for
    /// nodes whose schedulers run. The deliveries then depend on the time, and no seed repeats
    /// them.
    ///
    /// # Panics
    /// The system refuses the thread.
    pub fn run(&self) -> Running {
        lock(&self.flight).runs = true;
        let twin = self.clone();
        let name = "ganger-twin".to_owned();
        let thread = thread::Builder::new().name(name).spawn(move || run(&twin));
        let thread = Some(thread.expect("the system gives the clock of a twin a thread"));
        let twin = self.clone();
        Running { twin, thread }
    }
}

fn run(twin: &Twin) {
    let begin = (here::now(), twin.now());
    loop {
        twin.advance_to(begin.1 + (here::now() - begin.0));
        let flight = lock(&twin.flight);
        if !flight.runs {
            return;
        }
        let now = begin.1 + (here::now() - begin.0);
        let wait = flight
            .next_arrival()
            .map_or(LOOK, |at: Instant| at.since(now));
        if !wait.is_zero() {
            let waited = twin.changed.wait_timeout(flight, wait.min(LOOK));
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        lock(&self.twin.flight).runs = false;
        self.twin.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}
