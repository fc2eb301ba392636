//! Calls in the destructor of a thread-local that is older, or younger, than the scheduler's own
//! for the thread.

use crate::support::{Calls, PATIENCE, counted, exit, joined, process};
use ganger_proc_api::{
    BoxError, Context, Events, ExitReason, Lifecycle, Payloads, Pid, Process, StepOutput,
    StepResult, Symbol,
};
use ganger_sched::{Handle, Scheduler, StopError, StopReport};
use std::cell::RefCell;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

struct AtEnd(Option<Box<dyn FnOnce()>>);

impl Drop for AtEnd {
    fn drop(&mut self) {
        if let Some(act) = self.0.take() {
            act();
        }
    }
}

thread_local! {
    static END: RefCell<AtEnd> = const { RefCell::new(AtEnd(None)) };
}

/// Runs `act` in the destructor of a thread-local, on a thread that uses the scheduler `before` it
/// makes the thread-local, or after.
fn in_a_destructor(handle: Handle, before: bool, act: impl FnOnce() + Send + 'static) {
    let thread = std::thread::spawn(move || {
        let use_it = || {
            let quick = process(|_, _, out| {
                out.done(0);
                Ok(())
            });
            exit(handle.submit(quick, "quick", ()).unwrap());
        };
        if before {
            use_it();
        }
        END.with_borrow_mut(|end| end.0 = Some(Box::new(act)));
        if !before {
            use_it();
        }
    });
    joined(thread);
}

/// A hook that announces the begin of a process of the method "slow", and lets it start on request.
struct Slow {
    begins: Mutex<Sender<()>>,
    go_on: Mutex<Receiver<()>>,
}

impl Lifecycle for Slow {
    fn on_start(&self, _: Pid, method: Symbol) -> Result<(), BoxError> {
        if method == "slow" {
            self.begins.lock().unwrap().send(())?;
            self.go_on.lock().unwrap().recv()?;
        }
        Ok(())
    }
}

// pins: D4, P2
#[test]
fn a_submission_that_lasts_beyond_the_halt_ends_its_process() {
    for before in [true, false] {
        let (begins, begun) = channel();
        let (go_on, goes_on) = channel();
        let hooks = Slow {
            begins: Mutex::new(begins),
            go_on: Mutex::new(goes_on),
        };
        let builder = Scheduler::builder().workers(1).lifecycle(hooks);
        let scheduler = builder.build().unwrap();
        scheduler.start().unwrap();
        let calls = Calls::new();
        let slow = counted(&calls, |_, _, _| Ok(()));
        let (tell, told) = channel();
        let handle = scheduler.handle();
        let submitting = std::thread::spawn(move || {
            let submits = handle.clone();
            in_a_destructor(handle, before, move || {
                let submitted = submits.submit(slow, "slow", ());
                tell.send(submitted.map(|it| it.wait_timeout(PATIENCE)))
                    .unwrap();
            });
        });
        begun.recv().unwrap();
        let _ = scheduler.stop(Duration::from_millis(20)).unwrap();
        go_on.send(()).unwrap();
        joined(submitting);
        let ended = told.recv().unwrap().expect("it is accepted");
        assert!(matches!(ended, Ok(ExitReason::Terminated)), "{ended:?}");
        assert_eq!(calls.closes(), 1);
    }
}

/// Its `init` tries to stop the scheduler, which is refused, and then begins to stop it.
struct Stops(Handle, Sender<Result<StopReport, StopError>>);

impl Process for Stops {
    fn init(&mut self, _: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        // A stop that waited for this very call would not end in an hour.
        let hour = Duration::from_secs(3_600);
        self.1.send(self.0.stop(hour))?;
        self.0.begin_stop(hour);
        Ok(())
    }

    fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        out.done(());
        Ok(())
    }
}

// pins: D3
#[test]
fn a_stop_is_refused_to_a_submission() {
    for before in [true, false] {
        let scheduler = Scheduler::builder().workers(1).build().unwrap();
        scheduler.start().unwrap();
        let (tell, told) = channel();
        let handle = scheduler.handle();
        let stopping = std::thread::spawn(move || {
            let stops = Stops(handle.clone(), tell);
            let submits = handle.clone();
            in_a_destructor(handle, before, move || {
                drop(submits.submit(stops, "stops", ()));
            });
        });
        let refused = told.recv_timeout(PATIENCE).unwrap();
        assert_eq!(refused, Err(StopError::Inside));
        joined(stopping);
        let report = scheduler.stop(PATIENCE).unwrap();
        assert!(report.stuck.is_empty() && report.forced == 0, "{report:?}");
    }
}
