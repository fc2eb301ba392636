//! Several calls of `stop` at once, and their waits.

use crate::support::*;
use ganger_proc_api::{
    BoxError, Context, Event, Events, ExitReason, Payloads, Process, StepOutput, StepResult,
};
use ganger_sched::ProcessState;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(60);

const SHORT: Duration = Duration::from_millis(20);

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
            .map(|_| scope.spawn(|| scheduler.stop(LONG).unwrap()))
            .collect();
        stoppers
            .into_iter()
            .map(|stopper| stopper.join().unwrap())
            .collect()
    });
    assert!(reports.iter().all(|report| *report == reports[0]));
    assert_eq!(reports[0].completed, 100);
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
        let first = scope.spawn(|| scheduler.stop(LONG).unwrap());
        until("the first has begun", || {
            scheduler.stats().total.steps > steps
        });
        let second = scheduler.stop(Duration::ZERO).unwrap();
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
        scope.spawn(|| scheduler.stop(LONG).unwrap());
        has_entered.recv().unwrap();
        scheduler.stop(Duration::ZERO).unwrap();
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
        fn init(&mut self, _: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
            self.0.send(())?;
            let _ = self.1.recv();
            Err("no".into())
        }

        fn step(&mut self, _: &Context, _: &mut Events<'_>, _: &mut StepOutput) -> StepResult {
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
        let report = scheduler.stop(SHORT).unwrap();
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
    scheduler.stop(LONG).unwrap();
    assert!(begun.elapsed() < LONG / 2);
    drop(leave);
}

// pins: D1
#[test]
fn a_submission_that_a_stop_overtakes_is_cancelled_like_the_others() {
    /// Reports from its `init` and waits there; ends when it is cancelled.
    struct Late(mpsc::Sender<()>, mpsc::Receiver<()>);
    impl Process for Late {
        fn init(&mut self, _: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
            self.0.send(())?;
            Ok(self.1.recv()?)
        }

        fn step(
            &mut self,
            _: &Context,
            events: &mut Events<'_>,
            out: &mut StepOutput,
        ) -> StepResult {
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
        let stopper = scope.spawn(|| scheduler.stop(LONG).unwrap());
        // Once the canary has been notified, the stop has looked up all visible processes. The late
        // process is not among them.
        assert!(exit(canary).is_done());
        leave.send(()).unwrap();
        let late = late.join().unwrap().unwrap();
        assert!(exit(late).is_done());
        assert_eq!(stopper.join().unwrap().forced, 0);
    });
}
