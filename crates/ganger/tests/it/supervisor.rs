//! The example of a supervisor: how often it starts its child, and which events it ignores.

#[path = "../../examples/supervisor.rs"]
#[expect(dead_code, reason = "the example's own `main`")]
mod example;

use example::{CHILD, Supervisor, supervise};
use ganger::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

const HALF_A_MINUTE: Duration = Duration::from_secs(30);

fn scheduler() -> Scheduler {
    let scheduler = Scheduler::builder().build().unwrap();
    scheduler.start().unwrap();
    scheduler
}

fn submit<P: Process>(
    scheduler: &Scheduler,
    restarts: u32,
    make: impl Fn(u32) -> P + Send + 'static,
) -> ProcessHandle {
    let child = Pid::new(scheduler.host_name(), CHILD);
    let supervisor = Supervisor::new(child, restarts, make);
    scheduler.submit(supervisor, "main", ()).unwrap()
}

/// Panics, and counts how often.
#[derive(Default)]
struct Panics(Arc<AtomicU32>);

impl Process for Panics {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, _: &mut StepOutput) -> StepResult {
        // Ordering: Relaxed: the reader has waited for the end of the writing process.
        self.0.fetch_add(1, Ordering::Relaxed);
        panic!("on purpose");
    }
}

/// Waits until it is cancelled.
struct Waits;

impl Process for Waits {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, _: &mut StepOutput) -> StepResult {
        Ok(())
    }
}

// pins: P12
#[test]
fn a_child_that_fails_is_started_again_so_many_times_at_the_most() {
    let said = |failures, restarts| supervise(failures, restarts).unwrap();
    assert_eq!(said(0, 0), "done at attempt 1");
    assert_eq!(said(3, 3), "done at attempt 4");
    assert_eq!(said(3, 2), "failed: gave up after attempt 3");
}

// pins: P8, P12
#[test]
fn a_panic_is_a_failure() {
    let scheduler = scheduler();
    let count = Arc::<AtomicU32>::default();
    let child = Arc::clone(&count);
    let exit = submit(&scheduler, 4, move |_| Panics(Arc::clone(&child))).wait();
    assert!(matches!(exit, ExitReason::Failed(_)), "{exit}");
    // Ordering: Relaxed; as in `Panics`.
    assert_eq!(count.load(Ordering::Relaxed), 5);
}

// pins: P12, D2
#[test]
fn another_process_that_fails_is_not_taken_for_the_child() {
    let scheduler = scheduler();
    let (sender, is_started) = channel();
    let supervisor = submit(&scheduler, 0, move |_| {
        sender.send(()).unwrap();
        Waits
    });
    is_started.recv_timeout(HALF_A_MINUTE).unwrap();
    let other = scheduler.submit(Panics::default(), "main", ()).unwrap();
    assert!(matches!(other.wait(), ExitReason::Panicked(_)));
    let report = scheduler.stop(HALF_A_MINUTE).unwrap();
    assert_eq!((report.forced, report.stuck.len()), (0, 0));
    let exit = supervisor.wait();
    assert!(exit.is_done(), "{exit}");
}

// pins: P10, P12
#[test]
fn a_supervisor_that_is_cancelled_takes_its_child_along() {
    let scheduler = scheduler();
    let (sender, is_started) = channel();
    let supervisor = submit(&scheduler, 9, move |_| {
        sender.send(()).unwrap();
        Waits
    });
    is_started.recv_timeout(HALF_A_MINUTE).unwrap();
    scheduler.cancel(supervisor.pid(), "enough").unwrap();
    let exit = supervisor.wait();
    assert_eq!(exit.into_result().unwrap().as_str(), Some("cancelled"));
    let child = Pid::new(scheduler.host_name(), CHILD);
    assert!(scheduler.process(child).is_none());
    assert!(is_started.try_recv().is_err(), "there is another one");
}

// pins: D1, D2
#[test]
fn a_supervisor_that_can_start_nothing_any_more_is_done() {
    for _ in 0..20 {
        let scheduler = scheduler();
        let supervisor = submit(&scheduler, 9, |_| Waits);
        let report = scheduler.stop(HALF_A_MINUTE).unwrap();
        assert_eq!((report.forced, report.stuck.len()), (0, 0));
        let exit = supervisor.wait();
        assert!(exit.is_done(), "{exit}");
    }
}
