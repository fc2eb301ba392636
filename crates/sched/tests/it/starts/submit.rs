//! Submitting and starting.

use crate::support::*;
use ganger_proc_api::{
    BoxError, Command, CommandId, Completer, Context, Events, ExitReason, Lifecycle, Payloads, Pid,
    Process, StepOutput, StepResult, SubmitErrorKind, Symbol, UnknownMethod,
};
use ganger_sched::{Handle, ProcessState, Scheduler, StartError, WeakHandle};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

/// A process with the only method `good`. `panic` panics, and all else is unknown.
struct Picky(Arc<Calls>);

impl Process for Picky {
    fn init(&mut self, _: &Context, method: &str, input: Payloads) -> Result<(), BoxError> {
        match method {
            "good" => Ok(()),
            "input" => Err(format!("{input:?}").into()),
            "panic" => panic!("on purpose: init"),
            other => Err(UnknownMethod::new(other).into()),
        }
    }

    fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        out.done(());
        Ok(())
    }

    fn close(&mut self) {
        self.0.closes.fetch_add(1, Ordering::SeqCst);
    }
}

impl Drop for Picky {
    fn drop(&mut self) {
        self.0.drops.fetch_add(1, Ordering::SeqCst);
    }
}

// pins: P1, P2
#[test]
fn a_failed_init_goes_to_the_caller_and_leaves_nothing() {
    let scheduler = start(1);
    let calls = Calls::new();
    let error = scheduler
        .submit(Picky(Arc::clone(&calls)), "bad", ())
        .unwrap_err();
    let SubmitErrorKind::InitFailed(source) = &error.kind else {
        panic!("{error}")
    };
    assert_eq!(source.to_string(), "unknown method \"bad\"");
    assert!(
        error.to_string().contains("unknown method \"bad\""),
        "{error}"
    );
    assert_eq!(calls.drops(), 0, "the process comes back");
    assert!(error.into_process().is_some());

    let error = scheduler
        .submit(Picky(Arc::clone(&calls)), "input", 7_u64)
        .unwrap_err();
    assert!(error.to_string().contains("[7]"), "{error}");

    assert_eq!(
        calls.closes(),
        0,
        "close is for processes whose init succeeded"
    );
    assert_eq!(scheduler.stats().live, 0);
    assert!(scheduler.processes().is_empty());
}

// pins: P1, P8
#[test]
fn a_panic_in_init_goes_to_the_caller() {
    quiet_panics();
    let scheduler = start(1);
    let calls = Calls::new();
    let error = scheduler
        .submit(Picky(Arc::clone(&calls)), "panic", ())
        .unwrap_err();
    assert!(matches!(&error.kind, SubmitErrorKind::InitPanicked(m) if &**m == "on purpose: init"));
    assert_eq!((calls.closes(), calls.drops()), (0, 1));
    assert_eq!(scheduler.stats().live, 0);
    assert_eq!(scheduler.stats().total.panics, 1);
}

// pins: P1
#[test]
fn init_runs_on_the_submitting_thread_and_has_its_pid() {
    struct Looker(ganger_sched::Handle, thread::ThreadId);
    impl Process for Looker {
        fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
            assert_eq!(thread::current().id(), self.1);
            assert_eq!(self.0.address(ctx.pid()).unwrap().pid(), ctx.pid());
            let info = self.0.process(ctx.pid()).unwrap();
            assert_eq!(info.state, ProcessState::Ready);
            Ok(ctx.send(ctx.pid(), "self", ())?)
        }

        fn step(&mut self, _: &Context, all: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
            assert_eq!(all.next().unwrap().message().unwrap().topic, "self");
            out.done(());
            Ok(())
        }
    }
    let scheduler = start(2);
    let looker = Looker(scheduler.handle(), thread::current().id());
    assert!(exit(scheduler.submit(looker, "main", ()).unwrap()).is_done());
}

// pins: P1
#[test]
fn submitting_before_start_is_allowed() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let calls = Calls::new();
    let handle = scheduler
        .submit(Picky(Arc::clone(&calls)), "good", ())
        .unwrap();
    assert_eq!(
        scheduler.process(handle.pid()).unwrap().state,
        ProcessState::Ready
    );
    scheduler.start().unwrap();
    assert!(exit(handle).is_done());
    assert_eq!(calls.closes(), 1);
}

struct Hooks {
    refuse: Option<&'static str>,
    panic: bool,
    seen: Arc<Mutex<Vec<String>>>,
    handle: Arc<Mutex<Option<WeakHandle>>>,
}

impl Hooks {
    fn scheduler(&self) -> Option<Handle> {
        let handle = self.handle.lock().unwrap().clone();
        handle.and_then(|handle| handle.upgrade())
    }
}

impl Lifecycle for Hooks {
    fn on_start(&self, pid: Pid, method: Symbol) -> Result<(), BoxError> {
        self.seen.lock().unwrap().push(format!("start {method}"));
        if let Some(handle) = self.scheduler() {
            assert!(
                handle.address(pid).is_some(),
                "the PID is visible in on_start"
            );
        }
        if self.panic {
            panic!("on purpose: on_start");
        }
        self.refuse.map_or(Ok(()), |why| Err(why.into()))
    }

    fn on_complete(&self, pid: Pid, reason: &ExitReason) {
        self.seen.lock().unwrap().push(format!("complete {reason}"));
        if self
            .scheduler()
            .is_some_and(|handle| handle.address(pid).is_some())
        {
            // A panic here would be contained, so the test asserts on notes.
            self.seen.lock().unwrap().push(format!("{pid} is there"));
        }
        if self.panic {
            panic!("on purpose: on_complete");
        }
    }
}

fn hooked(refuse: Option<&'static str>, panic: bool) -> (Scheduler, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let handle = Arc::new(Mutex::new(None));
    let hooks = Hooks {
        refuse,
        panic,
        seen: Arc::clone(&seen),
        handle: Arc::clone(&handle),
    };
    let scheduler = Scheduler::builder()
        .workers(1)
        .lifecycle(hooks)
        .build()
        .unwrap();
    *handle.lock().unwrap() = Some(scheduler.downgrade());
    scheduler.start().unwrap();
    (scheduler, seen)
}

// pins: P1, P2
#[test]
fn an_error_of_on_start_rolls_back() {
    quiet_panics();
    for panic in [false, true] {
        let (scheduler, seen) = hooked((!panic).then_some("not today"), panic);
        let calls = Calls::new();
        let error = scheduler
            .submit(Picky(Arc::clone(&calls)), "good", ())
            .unwrap_err();
        match &error.kind {
            SubmitErrorKind::StartRefused(why) => assert_eq!(why.to_string(), "not today"),
            SubmitErrorKind::StartPanicked(why) => assert_eq!(&**why, "on purpose: on_start"),
            other => panic!("{other}"),
        }
        assert_eq!((calls.steps(), calls.closes(), calls.drops()), (0, 1, 1));
        assert!(
            error.into_process().is_none(),
            "it has been closed: it can't be used again"
        );
        assert!(scheduler.processes().is_empty());
        assert_eq!(scheduler.stats().live, 0);
        assert_eq!(
            *seen.lock().unwrap(),
            ["start good"],
            "it has not started: no on_complete"
        );
    }
}

// pins: P12, P8
#[test]
fn on_complete_is_called_once_after_the_pid_is_gone() {
    quiet_panics();
    let (scheduler, seen) = hooked(None, false);
    exit(scheduler.submit(Picky(Calls::new()), "good", ()).unwrap());
    assert_eq!(*seen.lock().unwrap(), ["start good", "complete done"]);

    struct Quiet(Arc<AtomicUsize>);
    impl Lifecycle for Quiet {
        fn on_complete(&self, _: Pid, _: &ExitReason) {
            self.0.fetch_add(1, Ordering::SeqCst);
            panic!("on purpose: on_complete");
        }
    }
    let completed = Arc::new(AtomicUsize::new(0));
    let hooks = Quiet(Arc::clone(&completed));
    let scheduler = Scheduler::builder()
        .workers(1)
        .lifecycle(hooks)
        .build()
        .unwrap();
    scheduler.start().unwrap();
    for n in 1..=3 {
        assert!(exit(scheduler.submit(Picky(Calls::new()), "good", ()).unwrap()).is_done());
        assert_eq!(completed.load(Ordering::SeqCst), n);
    }
    assert_eq!(scheduler.stats().total.panics, 3);
}

// pins: D1
#[test]
fn a_scheduler_without_any_worker_refuses_submissions_and_waits_for_nobody() {
    // No system has so much memory.
    let builder = Scheduler::builder().workers(2).stack_size(usize::MAX / 2);
    let scheduler = builder.build().unwrap();
    let before = scheduler.submit(waiter(), "main", ()).unwrap();
    let refused = scheduler.start().unwrap_err();
    assert!(matches!(refused, StartError::Spawn { worker: 0, .. }));
    let error = scheduler.submit(waiter(), "main", ()).unwrap_err();
    assert!(matches!(error.kind, SubmitErrorKind::Stopping), "{error}");
    let (tell, told) = mpsc::channel();
    let handle = scheduler.handle();
    // No thread serves the cancel event: an hour would be lost.
    let stop = thread::spawn(move || tell.send(handle.stop(Duration::from_secs(3_600)).unwrap()));
    let report = told.recv_timeout(PATIENCE).unwrap();
    assert_eq!(report.forced, 1, "{report:?}");
    assert!(matches!(exit(before), ExitReason::Terminated));
    joined(stop).unwrap();
}

/// Checks that a handler's destructor, which is users' code, may do anything, but starts no process
/// that no worker would run.
// pins: D4, D1
#[test]
fn handlers_of_a_scheduler_that_got_no_worker_may_stop_it_when_they_are_dropped() {
    struct Stops(WeakHandle, mpsc::Sender<bool>);
    impl Drop for Stops {
        fn drop(&mut self) {
            if let Some(handle) = self.0.upgrade() {
                let started = handle.submit(waiter(), "main", ());
                self.1.send(started.is_ok()).unwrap();
                handle.stop(Duration::ZERO).unwrap();
            }
        }
    }
    // No system has so much memory.
    let builder = Scheduler::builder().workers(2).stack_size(usize::MAX / 2);
    let scheduler = builder.build().unwrap();
    let (tell_start, started) = mpsc::channel();
    let stops = Stops(scheduler.downgrade(), tell_start);
    let handler = move |_: Command, _: Completer| {
        let _stops = &stops;
        Ok(())
    };
    scheduler
        .register(CommandId::new(256), "stops", handler)
        .unwrap();
    let (tell, told) = mpsc::channel();
    thread::spawn(move || tell.send(scheduler.start().is_err()));
    assert_eq!(told.recv_timeout(PATIENCE), Ok(true), "it waits for itself");
    assert_eq!(started.recv_timeout(PATIENCE), Ok(false), "nobody runs it");
}
