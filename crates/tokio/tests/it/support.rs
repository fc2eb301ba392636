//! Schedulers with tokio's driver.

use ganger_proc_api::{BoxError, ExitReason, Payload};
use ganger_sched::{ProcessHandle, Scheduler};
use ganger_tokio::Tokio;
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// How long a test waits for a certain event before it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Starts a scheduler, with a handle to the runtime.
pub(crate) fn start(workers: usize) -> (Scheduler, Handle) {
    let tokio = Tokio::new().unwrap();
    let handle = tokio.handle().clone();
    let builder = Scheduler::builder().workers(workers);
    let scheduler = builder.driver(tokio).build().unwrap();
    scheduler.start().unwrap();
    (scheduler, handle)
}

/// Returns the result of a process, which must come in time.
pub(crate) fn result<M>(handle: ProcessHandle<M>) -> Payload {
    match handle.wait_timeout(PATIENCE) {
        Ok(ExitReason::Done(result)) => result,
        Ok(reason) => panic!("{reason}"),
        Err(_) => panic!("a process does not end"),
    }
}

pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}: not in time");
        thread::yield_now();
    }
}

/// Sums the results, where all are numbers.
pub(crate) fn sum(handles: impl IntoIterator<Item = ProcessHandle>) -> u64 {
    let numbers = handles.into_iter().map(|it| result(it).as_u64().unwrap());
    numbers.sum()
}

pub(crate) fn ok<T>(value: T) -> Result<T, BoxError> {
    Ok(value)
}
