//! Commands at the end of a scheduler, and the end of their handlers.

use crate::support::{PATIENCE, exit, process, until_state};
use ganger_proc_api::{BoxError, Command, CommandId, Completer, Handler};
use ganger_sched::internal::HandleInternals as _;
use ganger_sched::{ProcessState, Scheduler};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const DO: CommandId = CommandId::new(256);
const HOUR: Duration = Duration::from_secs(3_600);

/// Starts a scheduler. Also returns the count of its handler's calls.
fn counting(workers: usize) -> (Scheduler, Arc<AtomicUsize>) {
    let scheduler = Scheduler::builder().workers(workers).build().unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let theirs = Arc::clone(&calls);
    let handler = move |_: Command, completer: Completer| -> Result<(), BoxError> {
        theirs.fetch_add(1, Ordering::SeqCst);
        completer.complete(());
        Ok(())
    };
    scheduler.register(DO, "do", handler).unwrap();
    scheduler.start().unwrap();
    (scheduler, calls)
}

/// Checks the commands of a long step, by whose end another worker has given all handlers up.
// pins: P3, D3
#[test]
fn of_a_step_that_lasts_longer_than_the_scheduler_are_carried_out() {
    for workers in [1, 2] {
        let (scheduler, calls) = counting(workers);
        let (release, released) = channel::<()>();
        let (tell, told) = channel();
        scheduler.handle().at_halt(move || {
            let _ = tell.send(());
        });
        let step = process(move |_, _, out| {
            let _released = released.recv();
            out.yield_command(Command::new(DO, ()), 1);
            out.done(1);
            Ok(())
        });
        let step = scheduler.submit(step, "step", ()).unwrap();
        until_state(&scheduler, step.pid(), ProcessState::Running);
        scheduler.stop(Duration::from_millis(10)).unwrap();
        if workers == 2 {
            told.recv_timeout(PATIENCE).expect("a worker returns");
        }
        drop(release);
        exit(step);
        assert_eq!(calls.load(Ordering::SeqCst), 1, "{workers} workers");
    }
}

// pins: P3, D3
#[test]
fn of_a_step_that_begins_to_stop_the_scheduler_are_carried_out() {
    for workers in [1, 2] {
        let (scheduler, calls) = counting(workers);
        let handle = scheduler.handle();
        let step = process(move |_, _, out| {
            handle.begin_stop(HOUR);
            out.yield_command(Command::new(DO, ()), 1);
            out.done(1);
            Ok(())
        });
        exit(scheduler.submit(step, "step", ()).unwrap());
        assert_eq!(calls.load(Ordering::SeqCst), 1, "{workers} workers");
    }
}

/// A handler with a call at its drop.
struct OnDrop(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl OnDrop {
    fn new(f: impl FnOnce() + Send + 'static) -> Self {
        Self(Mutex::new(Some(Box::new(f))))
    }
}

impl Handler for OnDrop {
    fn handle(&self, _: Command, completer: Completer) -> Result<(), BoxError> {
        completer.complete(());
        Ok(())
    }
}

impl Drop for OnDrop {
    fn drop(&mut self) {
        if let Some(f) = self.0.get_mut().unwrap().take() {
            f();
        }
    }
}

/// Stops the scheduler on another thread, with a deadline of an hour. The thread must return.
fn stops(scheduler: Scheduler) {
    let (tell, told) = channel();
    thread::spawn(move || tell.send(scheduler.stop(HOUR).unwrap()).unwrap());
    let report = told.recv_timeout(PATIENCE).expect("it waits for handlers");
    assert!(report.stuck.is_empty());
}

// pins: D3
#[test]
fn a_stop_does_not_wait_for_the_destructors_of_handlers() {
    let scheduler = Scheduler::builder().workers(2).build().unwrap();
    let (release, released) = channel::<()>();
    let blocks = OnDrop::new(move || {
        let _released = released.recv();
    });
    scheduler.register(DO, "do", blocks).unwrap();
    scheduler.start().unwrap();
    stops(scheduler);
    drop(release);
}

// pins: D3
#[test]
fn a_handler_may_stop_its_scheduler_in_its_destructor() {
    for joins in [false, true] {
        let scheduler = Scheduler::builder().workers(2).build().unwrap();
        let (weak, (tell, told)) = (scheduler.downgrade(), channel());
        let stop = OnDrop::new(move || {
            let stop = move || weak.upgrade().map(|handle| handle.stop(HOUR));
            let _report = if joins {
                thread::spawn(stop).join().unwrap()
            } else {
                stop()
            };
            tell.send(()).unwrap();
        });
        scheduler.register(DO, "do", stop).unwrap();
        scheduler.start().unwrap();
        stops(scheduler);
        told.recv_timeout(PATIENCE).expect("it waits for itself");
    }
}

// pins: D3
#[test]
fn a_handler_may_own_its_scheduler() {
    let place = Arc::new(Mutex::new(None::<Scheduler>));
    let scheduler = Scheduler::builder().workers(2).build().unwrap();
    let (theirs, (tell, told)) = (Arc::clone(&place), channel());
    let owner = OnDrop::new(move || {
        drop(theirs.lock().unwrap().take());
        tell.send(()).unwrap();
    });
    scheduler.register(DO, "do", owner).unwrap();
    scheduler.start().unwrap();
    let handle = scheduler.handle();
    *place.lock().unwrap() = Some(scheduler);
    handle.stop(HOUR).unwrap();
    told.recv_timeout(PATIENCE).expect("it waits for itself");
}
