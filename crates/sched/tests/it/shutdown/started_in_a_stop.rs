//! Processes started by others while the scheduler stops, because their clean-up needs them.

use crate::support::*;
use ganger_proc_api::{
    BoxError, Context, Event, Events, ExitCause, ExitReason, Payloads, Process, StepOutput,
    StepResult, SubmitErrorKind,
};
use ganger_sched::Handle;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);

const SHORT: Duration = Duration::from_millis(20);

/// Creates a process that ends by itself after three turns, if nothing has asked it to finish.
fn worker() -> impl Process {
    let mut left = 3;
    process(move |ctx, events, out| {
        events.for_each(drop);
        assert!(!ctx.is_cancelled(), "it was asked to finish");
        left -= 1;
        match left {
            0 => out.done(7_u64),
            _ => ctx.waker().wake(),
        }
        Ok(())
    })
}

/// Creates a process that, when cancelled, starts a worker by `start`, and finishes when the worker
/// has ended.
fn cleaner(
    start: impl Fn(&ganger_proc_api::Context) -> ganger_proc_api::Pid + Send + 'static,
) -> impl Process {
    process(move |ctx, events, out| {
        for event in events {
            match event {
                Event::Cancel(_) => {
                    out.defer_cancel();
                    ctx.monitor(start(ctx), 1)?;
                }
                Event::Exit(notice) => {
                    // The worker may have ended before the monitor began.
                    let is_saved = [ExitCause::Done, ExitCause::NotFound].contains(&notice.cause);
                    out.done(is_saved);
                }
                _ => {}
            }
        }
        Ok(())
    })
}

// pins: D1, D2
#[test]
fn a_process_that_finishes_may_start_others_and_the_stop_waits_for_them() {
    let _alone = alone();
    let scheduler = start(2);
    let by_context = cleaner(|ctx| ctx.submit(worker(), "main", ()).unwrap());
    let handle = scheduler.handle().downgrade();
    let by_handle = cleaner(move |_| {
        let scheduler = handle.upgrade().unwrap();
        scheduler.submit(worker(), "main", ()).unwrap().pid()
    });
    let below = cleaner(|ctx| {
        // A worker of a worker.
        let child = process(|ctx, _, out| {
            ctx.submit(worker(), "main", ())?;
            out.done(());
            Ok(())
        });
        ctx.submit(child, "main", ()).unwrap()
    });
    let cleaners = [
        scheduler.submit(by_context, "main", ()).unwrap(),
        scheduler.submit(by_handle, "main", ()).unwrap(),
        scheduler.submit(below, "main", ()).unwrap(),
    ];
    let report = scheduler.stop(LONG).unwrap();
    for cleaner in cleaners {
        let ExitReason::Done(is_saved) = exit(cleaner) else {
            panic!("it has not finished");
        };
        assert_eq!(is_saved.as_bool(), Some(true));
    }
    assert_eq!((report.completed, report.forced), (7, 0), "{report:?}");
    assert_eq!(scheduler.stats().total.ended(), 7);
}

// pins: D1, D3
#[test]
fn the_deadline_ends_what_was_started_in_the_stop() {
    let _alone = alone();
    let scheduler = start(2);
    let calls = Calls::new();
    let theirs = Arc::clone(&calls);
    let lasting = cleaner(move |ctx| ctx.submit(stubborn(&theirs), "main", ()).unwrap());
    let lasting = scheduler.submit(lasting, "main", ()).unwrap();
    let report = scheduler.stop(SHORT).unwrap();
    assert_eq!((report.completed, report.forced), (0, 2), "{report:?}");
    assert!(matches!(exit(lasting), ExitReason::Terminated));
    until("the child has been closed", || calls.closes() == 1);
}

/// Creates a process that starts the next heir, and ends.
fn heir() -> impl Process {
    process(|ctx, events, out| {
        events.for_each(drop);
        if let Err(error) = ctx.submit(heir(), "main", ()) {
            assert!(matches!(error.kind, SubmitErrorKind::Stopping));
        }
        out.done(());
        Ok(())
    })
}

// pins: D3
#[test]
fn the_deadline_ends_processes_that_start_each_other_for_ever() {
    let _alone = alone();
    let scheduler = start(2);
    drop(scheduler.submit(heir(), "main", ()).unwrap());
    let report = scheduler.stop(SHORT).unwrap();
    assert!(report.stuck.is_empty(), "{report:?}");
    until("all have ended", || scheduler.stats().live == 0);
    let stats = scheduler.stats().total;
    assert_eq!(stats.started, stats.ended());
}

/// Creates a process that announces its step, and starts a child when it may.
fn in_a_step(begun: Sender<()>, may_start: Receiver<()>, told: Sender<bool>) -> impl Process {
    process(move |ctx, events, out| {
        events.for_each(drop);
        begun.send(())?;
        may_start.recv()?;
        let told = told.clone();
        let child = process(move |ctx, _, out| {
            told.send(ctx.is_cancelled())?;
            out.done(());
            Ok(())
        });
        ctx.submit(child, "main", ())?;
        out.done(());
        Ok(())
    })
}

// pins: D1
#[test]
fn a_child_of_a_process_that_is_still_to_be_told_is_told_of_the_stop() {
    let _alone = alone();
    let scheduler = start(1);
    let ((begun, has_begun), (go, may_go), (told, is_told)) = (channel(), channel(), channel());
    let parent = in_a_step(begun, may_go, told);
    let parent = scheduler.submit(parent, "main", ()).unwrap();
    has_begun.recv_timeout(PATIENCE).unwrap();
    scheduler.begin_stop(LONG);
    let info = || scheduler.process(parent.pid()).unwrap();
    until("the stop has cancelled it", || info().is_cancelled);
    go.send(()).unwrap();
    assert!(is_told.recv_timeout(PATIENCE).unwrap());
    assert_eq!(scheduler.stop(LONG).unwrap().forced, 0);
}

// pins: D1
#[test]
fn all_others_are_refused_from_the_beginning_of_a_stop() {
    let _alone = alone();
    let (scheduler, other) = (start(1), start(1));
    let calls = Calls::new();
    let lasting = scheduler.submit(stubborn(&calls), "main", ()).unwrap();
    let dead = context_of_the_dead(&scheduler, "{main|7}".parse().unwrap());
    scheduler.begin_stop(LONG);
    let is_refused = |handle: &Handle| {
        let error = handle.submit(waiter(), "main", ()).unwrap_err();
        matches!(error.kind, SubmitErrorKind::Stopping)
    };
    assert!(is_refused(&scheduler), "a thread outside");
    let error = dead.submit(waiter(), "main", ()).unwrap_err();
    assert!(
        matches!(error.kind, SubmitErrorKind::Stopping),
        "one that has ended"
    );
    let theirs = scheduler.handle();
    let of_other = process(move |_, _, out| {
        out.done(is_refused(&theirs));
        Ok(())
    });
    let ExitReason::Done(it) = exit(other.submit(of_other, "main", ()).unwrap()) else {
        panic!("it has failed");
    };
    assert_eq!(it.as_bool(), Some(true), "a process of another scheduler");
    assert_eq!(scheduler.stop(Duration::ZERO).unwrap().forced, 1);
    assert!(matches!(exit(lasting), ExitReason::Terminated));
}

/// A process that notes that its `init` has been called.
struct Initialised(Arc<AtomicBool>);

impl Process for Initialised {
    fn init(&mut self, _: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        // Ordering: Relaxed: read by the same thread.
        self.0.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn step(&mut self, _: &Context, _: &mut Events<'_>, _: &mut StepOutput) -> StepResult {
        Ok(())
    }
}

/// Checks that such a process gets its child back, which has not begun.
// pins: D1
#[test]
fn after_the_deadline_a_live_process_is_refused_as_well() {
    let _alone = alone();
    let scheduler = start(2);
    let ((begun, has_begun), (go, may_go)) = (channel(), channel::<()>());
    let was_refused = Arc::new(AtomicBool::new(false));
    let refused = Arc::clone(&was_refused);
    let long = process(move |ctx, events, _| {
        events.for_each(drop);
        begun.send(())?;
        let _ = may_go.recv();
        let is_initialised = Arc::new(AtomicBool::new(false));
        let child = Initialised(Arc::clone(&is_initialised));
        let error = ctx.submit(child, "main", ()).unwrap_err();
        let is_refused = matches!(error.kind, SubmitErrorKind::Stopping);
        // Ordering: Relaxed: the same thread has called `init`, and the exit of the process orders
        // the other.
        let is_whole = is_refused && !is_initialised.load(Ordering::Relaxed);
        refused.store(is_whole, Ordering::Relaxed);
        Ok(())
    });
    let long = scheduler.submit(long, "main", ()).unwrap();
    has_begun.recv_timeout(PATIENCE).unwrap();
    assert!(scheduler.stop(Duration::ZERO).unwrap().is_stuck(long.pid()));
    drop(go);
    drop(exit(long));
    // Ordering: Relaxed: the exit of the process orders it.
    assert!(was_refused.load(Ordering::Relaxed));
}
