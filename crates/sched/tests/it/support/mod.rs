//! Shared parts of the tests: processes made of closures, and waits without sleeps.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod on_event;
pub(crate) mod puppet;

use ganger_proc_api::{
    Context, EndKind, Events, ExitReason, Payloads, Process, SendErrorKind, StepOutput, StepResult,
};
use ganger_sched::{Handle, ProcessHandle, ProcessState, Scheduler, StopError, StopReport};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The patience of a test with an expected event before it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Counts the calls of a process, and notices when they overlap.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    pub(crate) inits: AtomicUsize,
    pub(crate) steps: AtomicUsize,
    pub(crate) closes: AtomicUsize,
    pub(crate) drops: AtomicUsize,
    busy: AtomicBool,
}

impl Calls {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    fn enter(&self) -> Inside<'_> {
        let overlaps = self.busy.swap(true, Ordering::SeqCst);
        assert!(!overlaps, "two calls of one process overlap");
        Inside(&self.busy)
    }

    pub(crate) fn steps(&self) -> usize {
        self.steps.load(Ordering::SeqCst)
    }

    pub(crate) fn closes(&self) -> usize {
        self.closes.load(Ordering::SeqCst)
    }

    pub(crate) fn drops(&self) -> usize {
        self.drops.load(Ordering::SeqCst)
    }
}

struct Inside<'a>(&'a AtomicBool);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// A process whose step is a closure, with the context as an argument.
pub(crate) struct FnProcess<S> {
    pub(crate) calls: Arc<Calls>,
    step: S,
}

pub(crate) fn process<S>(step: S) -> FnProcess<S>
where
    S: FnMut(&Context, &mut Events<'_>, &mut StepOutput) -> StepResult + Send + 'static,
{
    counted(&Calls::new(), step)
}

pub(crate) fn counted<S>(calls: &Arc<Calls>, step: S) -> FnProcess<S>
where
    S: FnMut(&Context, &mut Events<'_>, &mut StepOutput) -> StepResult + Send + 'static,
{
    FnProcess {
        calls: Arc::clone(calls),
        step,
    }
}

impl<S> Process for FnProcess<S>
where
    S: FnMut(&Context, &mut Events<'_>, &mut StepOutput) -> StepResult + Send + 'static,
{
    fn init(&mut self, _: &Context, _: &str, _: Payloads) -> StepResult {
        let _inside = self.calls.enter();
        self.calls.inits.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        let _inside = self.calls.enter();
        assert_eq!(self.calls.closes(), 0, "a step after close");
        self.calls.steps.fetch_add(1, Ordering::SeqCst);
        (self.step)(ctx, events, out)
    }

    fn close(&mut self) {
        let _inside = self.calls.enter();
        self.calls.closes.fetch_add(1, Ordering::SeqCst);
    }
}

impl<S> Drop for FnProcess<S> {
    fn drop(&mut self) {
        self.calls.drops.fetch_add(1, Ordering::SeqCst);
    }
}

/// Creates a process that waits idle for ever, unless it is cancelled.
pub(crate) fn waiter() -> impl Process {
    process(|_, events, out| {
        for event in events {
            if let ganger_proc_api::Event::Cancel(_) = event {
                out.done("cancelled");
            }
        }
        Ok(())
    })
}

/// Creates a process that waits idle and takes no notice of any event.
pub(crate) fn stubborn(calls: &Arc<Calls>) -> impl Process {
    counted(calls, |_, events, out| {
        events.for_each(drop);
        out.defer_cancel();
        Ok(())
    })
}

/// Returns the context of an ended process with this PID.
pub(crate) fn context_of_the_dead(handle: &Handle, pid: ganger_proc_api::Pid) -> Context {
    let (kept, context) = std::sync::mpsc::channel();
    let brief = process(move |ctx, _, out| {
        kept.send(ctx.clone())?;
        out.done(());
        Ok(())
    });
    exit(handle.submit_as(pid, brief, "main", ()).unwrap());
    context.recv_timeout(PATIENCE).unwrap()
}

/// Starts a scheduler with `workers` workers and no spares: processes behind a step wait.
pub(crate) fn start(workers: usize) -> Scheduler {
    let builder = Scheduler::builder().workers(workers).max_spares(0);
    let scheduler = builder.build().unwrap();
    scheduler.start().unwrap();
    scheduler
}

/// Waits until `condition` holds, and yields to the threads that work on it.
#[track_caller]
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    let mut looks = 0;
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "waited in vain until {what}");
        between_looks(&mut looks);
    }
}

/// Leaves the processor to other threads, after some looks for longer: they need it.
fn between_looks(looks: &mut u32) {
    *looks += 1;
    if *looks < 100 {
        std::thread::yield_now();
    } else {
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// The process has ended, and how is not looked at.
pub(crate) const ENDED: SendErrorKind = SendErrorKind::Ended(EndKind::Unknown);

/// Returns the kind without the way of the process's end: a sender may come before the way is
/// known.
pub(crate) fn rough(kind: SendErrorKind) -> SendErrorKind {
    match kind {
        SendErrorKind::Ended(_) => ENDED,
        kind => kind,
    }
}

/// Stops a scheduler without a start.
#[track_caller]
pub(crate) fn stop_unstarted(handle: &Handle, deadline: Duration) -> StopReport {
    match handle.stop(deadline) {
        Err(StopError::NotStarted(report)) => *report,
        other => panic!("it was never started: {other:?}"),
    }
}

/// Waits until the process is in `state`.
#[track_caller]
pub(crate) fn until_state(handle: &Handle, pid: ganger_proc_api::Pid, state: ProcessState) {
    until(&format!("{pid} is {state:?}"), || {
        handle
            .process(pid)
            .is_some_and(|process| process.state == state)
    });
}

/// Returns the exit reason of a process bound to end.
#[track_caller]
pub(crate) fn exit<M>(handle: ProcessHandle<M>) -> ExitReason {
    handle
        .wait_timeout(PATIENCE)
        .unwrap_or_else(|handle| panic!("{handle:?} does not end"))
}

/// Returns the result of a thread bound to end.
#[track_caller]
pub(crate) fn joined<T>(thread: std::thread::JoinHandle<T>) -> T {
    until("the thread has ended", || thread.is_finished());
    thread.join().expect("the thread has not panicked")
}

/// Returns the number in a process's result.
#[track_caller]
pub(crate) fn exit_number(handle: ProcessHandle) -> u64 {
    match exit(handle) {
        ExitReason::Done(payload) => payload.as_u64().expect("a number"),
        other => panic!("{other}"),
    }
}

/// Runs tests whose processes have 30 ms to end one at a time.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs panicking code without a report for each panic on the terminal.
pub(crate) fn quiet_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let default = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let payload = info.payload();
            let text = payload
                .downcast_ref::<&str>()
                .copied()
                .or_else(|| payload.downcast_ref::<String>().map(String::as_str));
            if !text.is_some_and(|text| text.starts_with("on purpose")) {
                default(info);
            }
        }));
    });
}
