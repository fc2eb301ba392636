use super::*;
use crate::ProcessHandle;
use crate::Scheduler;
use crate::process::state::ProcessState;
use ganger_proc_api::{Context, Events, ExitReason, Message, Process, StepOutput, StepResult};
use ganger_sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

const HOUR: Duration = Duration::from_secs(3_600);

/// Sends the name of the thread of its `close`, and counts its steps.
struct Waits(Sender<String>, Arc<AtomicUsize>);

impl Waits {
    fn new() -> (Self, Receiver<String>, Arc<AtomicUsize>) {
        let (tell, told) = channel();
        let steps = Arc::default();
        (Self(tell, Arc::clone(&steps)), told, steps)
    }
}

impl Process for Waits {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        out.defer_cancel();
        // Ordering: Relaxed: the test reads it after the end of the process.
        self.1.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn close(&mut self) {
        let name = thread::current().name().unwrap_or("none").to_owned();
        self.0.send(name).unwrap();
    }
}

// pins: D3, D4
#[test]
fn a_stop_begins_and_ends_when_the_system_grants_no_thread() {
    for is_started in [true, false] {
        let scheduler = Scheduler::builder().workers(1).build().unwrap();
        if is_started {
            scheduler.start().unwrap();
        }
        scheduler.shared.worker_slots.refuse_threads(true);
        let waits = scheduler.submit(Waits::new().0, "main", ()).unwrap();
        scheduler.begin_stop(HOUR);
        let reason = waits.wait_timeout(Duration::from_secs(60)).unwrap();
        assert!(matches!(reason, ExitReason::Terminated));
        let report = match scheduler.stop(HOUR) {
            Err(StopError::NotStarted(report)) if !is_started => *report,
            result => result.unwrap(),
        };
        assert_eq!(report.forced, 1);
    }
}

// pins: D3
#[test]
fn a_stop_is_refused_on_the_threads_of_its_scheduler() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let (tell, told) = channel();
    let stop = move |shared: &Arc<Shared>| tell.send(shared.stop(Duration::ZERO)).unwrap();
    threads::spawn(thread::Builder::new(), &scheduler.shared, stop).unwrap();
    assert_eq!(told.recv(), Ok(Err(StopError::Inside)));
    assert!(!scheduler.is_stopping());
}

/// Creates a scheduler whose workers have left before three waiting processes were notified. Also
/// returns the number of the steps, and the threads of each `close`.
fn halted() -> (
    Scheduler,
    [ProcessHandle; 3],
    Arc<AtomicUsize>,
    Receiver<String>,
) {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    scheduler.start().unwrap();
    let (Waits(tell, steps), told, _) = Waits::new();
    let waits = std::array::from_fn(|_| {
        let process = Waits(tell.clone(), Arc::clone(&steps));
        let waits = scheduler.submit(process, "main", ()).unwrap();
        let state = || scheduler.process(waits.pid()).unwrap().state;
        while state() != ProcessState::Idle {
            thread::yield_now();
        }
        waits
    });
    let shared = &scheduler.shared;
    // As if the supervisor had got no processor until the workers had left.
    shared.shutdown.begin_stopping();
    shared.shutdown.begin_terminating();
    shared.halt();
    let hour = Deadline::after(HOUR);
    assert!(shared.census.threads.wait(|| 0, || hour.remaining()));
    (scheduler, waits, steps, told)
}

// pins: D4
#[test]
fn a_supervisor_that_is_late_ends_no_process_itself() {
    let (scheduler, waits, _, told) = halted();
    assert!(supervisor::start(&scheduler.shared));
    for waits in waits {
        assert!(matches!(waits.wait(), ExitReason::Terminated));
        assert!(told.recv().unwrap().ends_with("-reaper"));
    }
}

/// Checks that a waking thread runs no process after the halt: it may be any thread of the
/// program's, and the `close` of others may not return.
// pins: D3, D4
#[test]
fn a_thread_that_wakes_a_process_after_the_halt_runs_none() {
    let (_scheduler, waits, steps, told) = halted();
    // Ordering: Relaxed: the processes wait, as this thread has seen.
    let before = steps.load(Ordering::Relaxed);
    for waits in waits {
        waits.send(Message::new("late", 1)).unwrap();
        assert!(matches!(waits.wait(), ExitReason::Terminated));
        assert!(told.recv().unwrap().ends_with("-reaper"));
    }
    // Ordering: Relaxed: the processes have ended, and this thread has been told.
    assert_eq!(steps.load(Ordering::Relaxed), before, "steps after the end");
}

// pins: D4
#[test]
fn a_thread_that_wakes_a_process_after_the_halt_ends_it_where_the_system_grants_no_other() {
    let (scheduler, waits, _, told) = halted();
    scheduler.shared.worker_slots.refuse_threads(true);
    for waits in waits {
        waits.send(Message::new("late", 1)).unwrap();
        assert!(matches!(waits.wait(), ExitReason::Terminated));
        assert!(!told.recv().unwrap().ends_with("-reaper"));
    }
}
