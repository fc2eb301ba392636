//! Calls of `stop` from odd places, and several at once.

use crate::support::*;
use ganger_proc_api::{
    BoxError, Event, Events, ExitReason, Lifecycle, Payloads, Pid, Process, ProcessContext,
    StepOutput, SubmitErrorKind, Symbol,
};
use ganger_sched::{ProcessState, Scheduler, WeakHandle};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Tests in which processes have 30 ms to end run one at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

const LONG: Duration = Duration::from_secs(60);

const SHORT: Duration = Duration::from_millis(20);

// pins: D3
#[test]
fn stopping_from_inside_a_step_returns() {
    let _alone = alone();
    let scheduler = start(2);
    let other = scheduler.submit(waiter(), "main", ()).unwrap();
    until_state(&scheduler, other.pid(), ProcessState::Idle);
    let handle = scheduler.handle();
    let (report, reported) = mpsc::channel();
    let stopper = process(move |_, _, out| {
        report.send(handle.stop(LONG)).unwrap();
        out.done(());
        Ok(())
    });
    let stopper = scheduler.submit(stopper, "main", ()).unwrap();
    let report = reported.recv().unwrap();
    assert_eq!(report.stuck, [stopper.pid()], "it can't wait for itself");
    assert_eq!((report.completed, report.forced), (1, 0));
    assert!(exit(other).is_done());
    assert!(exit(stopper).is_done());
}

// pins: D4
#[test]
fn stopping_twice_at_once_is_harmless() {
    let _alone = alone();
    let scheduler = start(2);
    let _handles: Vec<_> = (0..100)
        .map(|_| scheduler.submit(waiter(), "main", ()).unwrap())
        .collect();
    let reports: Vec<_> = thread::scope(|scope| {
        let stoppers: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| scheduler.stop(LONG)))
            .collect();
        stoppers
            .into_iter()
            .map(|stopper| stopper.join().unwrap())
            .collect()
    });
    assert!(reports.iter().all(|report| *report == reports[0]));
    assert_eq!(reports[0].completed, 100);
}

// pins: D3, D4
#[test]
fn a_step_that_stopped_the_scheduler_is_the_last_one_of_its_process() {
    let _alone = alone();
    for goes_on in [false, true] {
        let scheduler = start(2);
        let handle = scheduler.handle();
        let calls = Calls::new();
        let stopper = counted(&calls, move |_, events, out| {
            events.for_each(drop);
            handle.stop(SHORT);
            if !goes_on {
                out.idle();
            }
            Ok(())
        });
        let stopper = scheduler.submit(stopper, "main", ()).unwrap();
        assert!(matches!(exit(stopper), ExitReason::Terminated));
        assert_eq!((calls.steps(), calls.closes()), (1, 1));
    }
}

// pins: D4
#[test]
fn steps_that_stop_while_another_stop_waits_for_them_do_not_block_it() {
    let _alone = alone();
    let scheduler = start(2);
    let stoppers: Vec<_> = (0..2)
        .map(|_| {
            let handle = scheduler.handle();
            let stopper = process(move |_, events, out| {
                out.idle();
                for event in events {
                    if let Event::Cancel(_) = event {
                        handle.stop(LONG);
                        out.done(1);
                    }
                }
                Ok(())
            });
            scheduler.submit(stopper, "main", ()).unwrap()
        })
        .collect();
    for stopper in &stoppers {
        until_state(&scheduler, stopper.pid(), ProcessState::Idle);
    }
    let begun = Instant::now();
    let report = scheduler.stop(LONG);
    assert!(
        begun.elapsed() < LONG / 2,
        "it waited for those who waited for it"
    );
    assert_eq!((report.completed, report.forced), (0, 0));
    for stopper in stoppers {
        assert_eq!(exit_number(stopper), 1);
    }
}

// pins: D1, D4
#[test]
fn stopping_from_init_does_not_wait_for_itself() {
    struct Stops(ganger_sched::Handle);
    impl Process for Stops {
        fn init(&mut self, _: &ProcessContext, _: &str, _: Payloads) -> Result<(), BoxError> {
            self.0.stop(LONG);
            Ok(())
        }

        fn step(&mut self, _: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
            out.done(());
            Ok(())
        }
    }
    let _alone = alone();
    let scheduler = start(1);
    let begun = Instant::now();
    let error = scheduler
        .submit(Stops(scheduler.handle()), "main", ())
        .unwrap_err();
    assert!(matches!(error.kind, SubmitErrorKind::Stopping));
    assert!(begun.elapsed() < LONG / 2);
    assert_eq!(scheduler.stats().live, 0);
}

/// Stops the scheduler in a hook, and counts the calls of both.
#[derive(Default)]
struct StopsIn {
    on_start: bool,
    starts: AtomicUsize,
    ends: AtomicUsize,
    scheduler: Mutex<Option<WeakHandle>>,
}

impl StopsIn {
    fn stop(&self) {
        let scheduler = self.scheduler.lock().unwrap().clone();
        if let Some(scheduler) = scheduler.and_then(|weak| weak.upgrade()) {
            scheduler.stop(LONG);
        }
    }
}

struct Hooks(Arc<StopsIn>);

impl Lifecycle for Hooks {
    fn on_start(&self, _: Pid, _: Symbol) -> Result<(), BoxError> {
        self.0.starts.fetch_add(1, Ordering::SeqCst);
        if self.0.on_start {
            self.0.stop();
        }
        Ok(())
    }

    fn on_complete(&self, _: Pid, _: &ExitReason) {
        if !self.0.on_start {
            self.0.stop();
        }
        self.0.ends.fetch_add(1, Ordering::SeqCst);
    }
}

// pins: D1, D4, P12
#[test]
fn stopping_from_a_hook_does_not_wait_for_itself_and_what_started_ends() {
    let _alone = alone();
    for on_start in [true, false] {
        let hooks = Arc::new(StopsIn {
            on_start,
            ..StopsIn::default()
        });
        let builder = Scheduler::builder().workers(1);
        let scheduler = builder
            .lifecycle(Hooks(Arc::clone(&hooks)))
            .build()
            .unwrap();
        *hooks.scheduler.lock().unwrap() = Some(scheduler.downgrade());
        scheduler.start().unwrap();
        let begun = Instant::now();
        let quick = process(|_, _, out| {
            out.done(());
            Ok(())
        });
        let reason = exit(scheduler.submit(quick, "main", ()).unwrap());
        assert_eq!(
            matches!(reason, ExitReason::Terminated),
            on_start,
            "{reason}"
        );
        assert!(begun.elapsed() < LONG / 2);
        assert_eq!(hooks.starts.load(Ordering::SeqCst), 1);
        assert_eq!(hooks.ends.load(Ordering::SeqCst), 1);
    }
}

// pins: D3, D4
#[test]
fn stopping_from_a_waker_ends_the_other_processes() {
    struct Stops(
        ganger_sched::Handle,
        Mutex<mpsc::Sender<ganger_sched::StopReport>>,
    );
    impl std::task::Wake for Stops {
        fn wake(self: Arc<Self>) {
            let report = self.0.stop(SHORT);
            self.1.lock().unwrap().send(report).unwrap();
        }
    }
    let _alone = alone();
    let scheduler = start(2);
    let calls = Calls::new();
    let other = scheduler.submit(stubborn(&calls), "main", ()).unwrap();
    let (send, reports) = mpsc::channel();
    let mut awaited = scheduler.submit(waiter(), "main", ()).unwrap();
    let waker = Arc::new(Stops(scheduler.handle(), Mutex::new(send))).into();
    let mut context = std::task::Context::from_waker(&waker);
    assert!(
        std::pin::Pin::new(&mut awaited)
            .poll(&mut context)
            .is_pending()
    );
    scheduler.cancel(awaited.pid(), "end").unwrap();
    let report = reports.recv().unwrap();
    assert_eq!(
        (report.completed, report.forced, report.stuck.len()),
        (0, 1, 0)
    );
    assert!(matches!(exit(other), ExitReason::Terminated));
    assert_eq!(calls.closes(), 1);
}

// pins: D3
#[test]
fn a_later_stop_with_an_earlier_deadline_cuts_the_first_one_short() {
    let _alone = alone();
    let scheduler = start(1);
    let handle = scheduler
        .submit(stubborn(&Calls::new()), "main", ())
        .unwrap();
    until_state(&scheduler, handle.pid(), ProcessState::Idle);
    let steps = scheduler.stats().total.steps;
    let begun = Instant::now();
    thread::scope(|scope| {
        let first = scope.spawn(|| scheduler.stop(LONG));
        until("the first has begun", || {
            scheduler.stats().total.steps > steps
        });
        let second = scheduler.stop(Duration::ZERO);
        assert_eq!(second.forced, 1);
        assert_eq!(first.join().unwrap(), second);
    });
    assert!(begun.elapsed() < LONG / 2);
    assert!(matches!(exit(handle), ExitReason::Terminated));
}

// pins: D3
#[test]
fn a_later_stop_need_not_wait_for_a_waker_that_blocks() {
    struct Blocks(Mutex<mpsc::Sender<()>>, Mutex<mpsc::Receiver<()>>);
    impl std::task::Wake for Blocks {
        fn wake(self: Arc<Self>) {
            self.0.lock().unwrap().send(()).unwrap();
            let _ = self.1.lock().unwrap().recv();
        }
    }
    let _alone = alone();
    let scheduler = start(2);
    let mut awaited = scheduler.submit(waiter(), "main", ()).unwrap();
    let ((entered, has_entered), (leave, may_leave)) = (mpsc::channel(), mpsc::channel());
    let waker = Arc::new(Blocks(Mutex::new(entered), Mutex::new(may_leave))).into();
    let mut context = std::task::Context::from_waker(&waker);
    assert!(
        std::pin::Pin::new(&mut awaited)
            .poll(&mut context)
            .is_pending()
    );
    let begun = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| scheduler.stop(LONG));
        has_entered.recv().unwrap();
        scheduler.stop(Duration::ZERO);
    });
    assert!(begun.elapsed() < LONG / 2);
    drop(leave);
    assert!(exit(awaited).is_done());
}

// pins: D1, D3
#[test]
fn a_submission_under_way_is_no_process() {
    struct Slow(mpsc::Sender<()>, mpsc::Receiver<()>);
    impl Process for Slow {
        fn init(&mut self, _: &ProcessContext, _: &str, _: Payloads) -> Result<(), BoxError> {
            self.0.send(())?;
            let _ = self.1.recv();
            Err("no".into())
        }

        fn step(&mut self, _: &mut Events<'_>, _: &mut StepOutput) -> Result<(), BoxError> {
            Ok(())
        }
    }
    let _alone = alone();
    let scheduler = start(1);
    let ((entered, has_entered), (leave, may_leave)) = (mpsc::channel(), mpsc::channel());
    let report = thread::scope(|scope| {
        scope.spawn(|| {
            let slow = Slow(entered, may_leave);
            assert!(scheduler.submit(slow, "main", ()).is_err());
        });
        has_entered.recv().unwrap();
        let report = scheduler.stop(SHORT);
        drop(leave);
        report
    });
    assert_eq!((report.completed, report.forced, report.closing), (0, 0, 0));
    assert!(report.stuck.is_empty());
    assert_eq!(scheduler.stats().live, 0);
}

// pins: D3
#[test]
fn destructors_of_thread_locals_do_not_hold_a_stop_up() {
    /// Waits, in the destructor of a thread-local of a worker, until it is let go.
    struct Slow(mpsc::Receiver<()>);
    impl Drop for Slow {
        fn drop(&mut self) {
            let _ = self.0.recv();
        }
    }
    thread_local! {
        static SLOW: std::cell::RefCell<Option<Slow>> = const { std::cell::RefCell::new(None) };
    }
    let _alone = alone();
    let scheduler = start(1);
    let (leave, may_leave) = mpsc::channel();
    let mut slow = Some(Slow(may_leave));
    let setter = process(move |_, _, out| {
        SLOW.set(slow.take());
        out.done(());
        Ok(())
    });
    exit(scheduler.submit(setter, "main", ()).unwrap());
    let begun = Instant::now();
    scheduler.stop(LONG);
    assert!(begun.elapsed() < LONG / 2);
    drop(leave);
}

// pins: D1
#[test]
fn a_submission_that_a_stop_overtakes_is_cancelled_like_the_others() {
    /// Reports from its `init` and waits there; ends when it is cancelled.
    struct Late(mpsc::Sender<()>, mpsc::Receiver<()>);
    impl Process for Late {
        fn init(&mut self, _: &ProcessContext, _: &str, _: Payloads) -> Result<(), BoxError> {
            self.0.send(())?;
            Ok(self.1.recv()?)
        }

        fn step(&mut self, events: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
            out.idle();
            if let Some(Event::Cancel(_)) = events.next() {
                out.done("cancelled");
            }
            Ok(())
        }
    }
    let _alone = alone();
    let scheduler = start(1);
    let canary = scheduler.submit(waiter(), "main", ()).unwrap();
    let ((entered, has_entered), (leave, may_leave)) = (mpsc::channel(), mpsc::channel());
    thread::scope(|scope| {
        let late = scope.spawn(|| scheduler.submit(Late(entered, may_leave), "main", ()));
        has_entered.recv().unwrap();
        let stopper = scope.spawn(|| scheduler.stop(LONG));
        // Once one has been told, all that could be seen have been looked up: the late one is none.
        assert!(exit(canary).is_done());
        leave.send(()).unwrap();
        let late = late.join().unwrap().unwrap();
        assert!(exit(late).is_done());
        assert_eq!(stopper.join().unwrap().forced, 0);
    });
}
