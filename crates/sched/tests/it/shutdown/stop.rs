//! Stopping.

use crate::support::*;
use ganger_proc_api::{
    BoxError, CancelReason, Command, CommandId, Completer, Context, Event, Events, ExitReason,
    Lifecycle, Pid, Process, StepOutput, StepResult, SubmitErrorKind, Symbol,
};
use ganger_sched::{Scheduler, StopError, WeakHandle};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(60);

const SHORT: Duration = Duration::from_millis(20);

/// The promise is 50 ms; a loaded machine may take a while to run this thread again.
const SLACK: Duration = Duration::from_millis(50 + 2_000);

// pins: D1
#[test]
fn submits_are_refused_and_every_process_is_cancelled() {
    let _alone = alone();
    let scheduler = start(2);
    let reasons = Arc::new(AtomicUsize::new(0));
    let handles: Vec<_> = (0..100)
        .map(|_| {
            let reasons = Arc::clone(&reasons);
            let process = process(move |ctx, events, out| {
                for event in events {
                    if let Event::Cancel(CancelReason::Shutdown) = event {
                        assert!(ctx.is_cancelled());
                        reasons.fetch_add(1, Ordering::SeqCst);
                        out.done(());
                    }
                }
                Ok(())
            });
            scheduler.submit(process, "main", ()).unwrap()
        })
        .collect();
    let report = scheduler.stop(LONG).unwrap();
    assert_eq!(
        (report.completed, report.forced, report.stuck.len()),
        (100, 0, 0)
    );
    assert_eq!(reasons.load(Ordering::SeqCst), 100);
    for handle in handles {
        assert!(handle.is_finished());
        assert!(exit(handle).is_done());
    }
    let error = scheduler.submit(waiter(), "main", ()).unwrap_err();
    assert!(matches!(error.kind, SubmitErrorKind::Stopping));
    assert!(error.into_process().is_some());
}

// pins: D2
#[test]
fn asynchronous_clean_up_is_served() {
    let _alone = alone();
    const SAVE: CommandId = CommandId::new(256);
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    scheduler
        .register(SAVE, "save", |_: Command, completer: Completer| {
            thread::spawn(move || completer.complete("saved"));
            Ok(())
        })
        .unwrap();
    scheduler.start().unwrap();
    let archive = scheduler
        .submit(
            process(|_, events, out| {
                out.defer_cancel();
                for event in events {
                    if let Event::Message(message) = event {
                        out.done(message.payloads.into_first());
                    }
                }
                Ok(())
            }),
            "main",
            (),
        )
        .unwrap();
    let archive_pid = archive.pid();
    let cleaner = process(move |ctx, events, out| {
        for event in events {
            match event {
                Event::Cancel(_) => {
                    out.defer_cancel();
                    out.yield_command(Command::new(SAVE, ()), 1);
                }
                Event::Completion(completion) => {
                    ctx.send(archive_pid, "log", completion.result?)?;
                    out.done(());
                }
                _ => {}
            }
        }
        Ok(())
    });
    let cleaner = scheduler.submit(cleaner, "main", ()).unwrap();
    let report = scheduler.stop(LONG).unwrap();
    assert_eq!(
        (report.completed, report.forced, report.stuck.len()),
        (2, 0, 0)
    );
    assert!(exit(cleaner).is_done());
    assert_eq!(exit(archive).into_result().unwrap().as_str(), Some("saved"));
}

// pins: D3, D4
#[test]
fn what_does_not_finish_is_terminated_and_closed() {
    // Enough for a process that obeys, also on a loaded machine.
    const DEADLINE: Duration = Duration::from_millis(500);
    let _alone = alone();
    let scheduler = start(2);
    let calls: Vec<_> = (0..50).map(|_| Calls::new()).collect();
    let mut handles: Vec<_> = calls
        .iter()
        .enumerate()
        .map(|(n, calls)| {
            if n % 2 == 0 {
                scheduler.submit(stubborn(calls), "main", ()).unwrap()
            } else {
                let busy = counted(calls, |_, events, out| {
                    events.for_each(drop);
                    out.defer_cancel();
                    out.step_again();
                    Ok(())
                });
                scheduler.submit(busy, "main", ()).unwrap()
            }
        })
        .collect();
    handles.push(scheduler.submit(waiter(), "main", ()).unwrap());
    let begun = Instant::now();
    let report = scheduler.stop(DEADLINE).unwrap();
    assert!(begun.elapsed() < DEADLINE + SLACK, "{:?}", begun.elapsed());
    // On a loaded machine a process may be in the middle of its end.
    let sum = report.completed + report.forced + report.stuck.len() as u64;
    assert!(sum.abs_diff(51) <= 2, "{report:?}");
    assert!(report.forced >= 48, "{report:?}");
    assert!(exit(handles.pop().unwrap()).is_done());
    for (handle, calls) in handles.into_iter().zip(calls) {
        assert!(matches!(exit(handle), ExitReason::Terminated));
        assert_eq!((calls.closes(), calls.drops()), (1, 1));
    }
}

/// Creates a process whose step returns when it is told to, and not before.
fn stuck(calls: &Arc<Calls>) -> (impl Process, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let (entered, has_entered) = mpsc::channel();
    let (leave, may_leave) = mpsc::channel::<()>();
    let process = counted(calls, move |_, _, _| {
        entered.send(()).unwrap();
        may_leave.recv().unwrap();
        Ok(())
    });
    (process, has_entered, leave)
}

// pins: D3, D4
#[test]
fn a_step_that_never_returns_is_reported_as_stuck() {
    let _alone = alone();
    // A single worker: only the threads of the stop are left to end the others.
    let scheduler = start(1);
    let calls = Calls::new();
    let (process, has_entered, leave) = stuck(&calls);
    let stuck = scheduler.submit(process, "main", ()).unwrap();
    has_entered.recv().unwrap();
    let others: Vec<_> = (0..100).map(|_| Calls::new()).collect();
    let handles: Vec<_> = others
        .iter()
        .map(|calls| scheduler.submit(stubborn(calls), "main", ()).unwrap())
        .collect();

    let begun = Instant::now();
    let report = scheduler.stop(SHORT).unwrap();
    assert!(begun.elapsed() < SHORT + SLACK, "{:?}", begun.elapsed());
    // On a loaded machine the shutdown may be in the middle of another process's end.
    assert!(report.is_stuck(stuck.pid()), "{report:?}");
    assert!(report.stuck.len() <= 2 && report.forced >= 99, "{report:?}");
    assert_eq!(report.completed, 0);
    for (handle, calls) in handles.into_iter().zip(others) {
        assert!(matches!(exit(handle), ExitReason::Terminated));
        assert_eq!((calls.steps(), calls.closes()), (0, 1));
    }
    assert!(!stuck.is_finished());
    assert_eq!(calls.closes(), 0);

    // Stopping twice is harmless, and says the same.
    assert_eq!(scheduler.stop(LONG).unwrap(), report);

    // When the step returns after all, the process ends like every other.
    leave.send(()).unwrap();
    assert!(matches!(exit(stuck), ExitReason::Terminated));
    assert_eq!((calls.steps(), calls.closes()), (1, 1));
}

// pins: D3
#[test]
fn processes_in_the_deque_of_a_stuck_worker_are_ended() {
    let _alone = alone();
    let scheduler = start(1);
    let calls = Calls::new();
    let (leave, may_leave) = mpsc::channel::<()>();
    let (entered, has_entered) = mpsc::channel();
    let children: Arc<Vec<_>> = Arc::new((0..20).map(|_| Calls::new()).collect());
    let counts = Arc::clone(&children);
    let parent = counted(&calls, move |ctx, _, _| {
        for calls in counts.iter() {
            ctx.submit(stubborn(calls), "main", ())?;
        }
        entered.send(()).unwrap();
        may_leave.recv().unwrap();
        Ok(())
    });
    let parent = scheduler.submit(parent, "main", ()).unwrap();
    has_entered.recv().unwrap();
    let report = scheduler.stop(SHORT).unwrap();
    assert!(report.is_stuck(parent.pid()), "{report:?}");
    assert!(report.stuck.len() <= 2 && report.forced >= 19, "{report:?}");
    until("all are closed", || {
        children.iter().all(|calls| calls.closes() == 1)
    });
    leave.send(()).unwrap();
    exit(parent);
}

// pins: D4
#[test]
fn a_scheduler_that_was_never_started_closes_its_processes() {
    let _alone = alone();
    let calls = Calls::new();
    let scheduler = Scheduler::builder().workers(2).build().unwrap();
    let handle = scheduler.submit(stubborn(&calls), "main", ()).unwrap();
    let report = stop_unstarted(&scheduler, LONG);
    assert_eq!(
        (report.completed, report.forced, report.stuck.len()),
        (0, 1, 0)
    );
    assert!(matches!(exit(handle), ExitReason::Terminated));
    assert_eq!((calls.steps(), calls.closes()), (0, 1));
}

// pins: D4
#[test]
fn dropping_the_scheduler_stops_it() {
    let _alone = alone();
    let calls = Calls::new();
    let scheduler = Scheduler::builder()
        .workers(1)
        .shutdown_deadline(SHORT)
        .build()
        .unwrap();
    scheduler.start().unwrap();
    let handle = scheduler.submit(stubborn(&calls), "main", ()).unwrap();
    let outside = scheduler.handle();
    drop(scheduler);
    assert!(matches!(exit(handle), ExitReason::Terminated));
    assert_eq!(calls.closes(), 1);
    let refused = outside.submit(waiter(), "main", ()).unwrap_err();
    assert!(matches!(refused.kind, SubmitErrorKind::Stopping));
}

// pins: D1, D4
#[test]
fn submits_that_race_with_a_stop_end_or_are_refused() {
    let _alone = alone();
    struct Racer(Arc<Calls>);
    impl Process for Racer {
        fn step(
            &mut self,
            _: &Context,
            events: &mut Events<'_>,
            out: &mut StepOutput,
        ) -> StepResult {
            for event in events {
                if let Event::Cancel(_) = event {
                    out.done(());
                }
            }
            Ok(())
        }

        fn close(&mut self) {
            self.0.closes.fetch_add(1, Ordering::SeqCst);
        }
    }
    for _ in 0..50 {
        let scheduler = start(2);
        let calls = Calls::new();
        let (handles, report) = thread::scope(|scope| {
            let submitters: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        let submit = || scheduler.submit(Racer(Arc::clone(&calls)), "main", ());
                        std::iter::repeat_with(submit)
                            .map_while(Result::ok)
                            .collect::<Vec<_>>()
                    })
                })
                .collect();
            let report = scheduler.stop(LONG).unwrap();
            let handles: Vec<_> = submitters
                .into_iter()
                .flat_map(|submitter| submitter.join().unwrap())
                .collect();
            (handles, report)
        });
        assert_eq!((report.forced, report.stuck.len()), (0, 0));
        assert_eq!(calls.closes(), handles.len());
        assert!(handles.into_iter().all(|handle| exit(handle).is_done()));
    }
}

// pins: D3, D4
#[test]
fn an_exit_hook_that_does_not_return_is_reported_as_stuck() {
    struct Blocks(mpsc::Sender<()>, Mutex<mpsc::Receiver<()>>);
    impl ganger_proc_api::Lifecycle for Blocks {
        fn on_complete(&self, _: ganger_proc_api::Pid, _: &ExitReason) {
            self.0.send(()).unwrap();
            let _ = self.1.lock().unwrap().recv();
        }
    }
    let _alone = alone();
    let (entered, has_entered) = mpsc::channel();
    let (leave, may_leave) = mpsc::channel();
    let builder = Scheduler::builder().workers(1);
    let scheduler = builder
        .lifecycle(Blocks(entered, Mutex::new(may_leave)))
        .build()
        .unwrap();
    scheduler.start().unwrap();
    let handle = scheduler.submit(waiter(), "main", ()).unwrap();
    scheduler.cancel(handle.pid(), "the end").unwrap();
    has_entered.recv().unwrap();
    let report = scheduler.stop(SHORT).unwrap();
    assert!(report.stuck.iter().map(|it| it.pid).eq([handle.pid()]));
    assert!(!handle.is_finished());
    drop(leave);
    assert!(exit(handle).is_done());
}

// pins: D3, D4
#[test]
fn a_crowd_that_can_not_be_closed_in_time_is_closed_all_the_same() {
    const CROWD: u64 = 100_000;
    // The workers, and as many reapers as a busy machine may have the supervisor start.
    const THREADS: usize = 2 + 16;
    let _alone = alone();
    let calls: Vec<_> = (0..CROWD).map(|_| Calls::new()).collect();
    let (mut fastest, mut fewest) = (Duration::MAX, usize::MAX);
    for round in 1..=5 {
        let scheduler = start(2);
        let handles: Vec<_> = calls
            .iter()
            .map(|calls| scheduler.submit(unruly(calls), "main", ()).unwrap())
            .collect();
        until("all have run", || scheduler.stats().total.steps >= CROWD);
        let begun = Instant::now();
        let report = scheduler.stop(Duration::ZERO).unwrap();
        fastest = fastest.min(begun.elapsed());
        assert!(report.closing <= report.forced);
        assert!(
            report.stuck.len() <= THREADS,
            "at most one a thread: {:?}",
            report.stuck
        );
        let sum = report.completed + report.forced + report.stuck.len() as u64;
        fewest = fewest.min(report.stuck.len());
        assert!(sum.abs_diff(CROWD) <= THREADS as u64, "{report:?}");
        for (handle, calls) in handles.into_iter().zip(&calls) {
            assert!(matches!(exit(handle), ExitReason::Terminated));
            assert_eq!(calls.closes(), round);
        }
    }
    assert!(fewest <= 3, "two workers and a reaper: {fewest}");
    // The promise itself; the fastest, because a loaded machine may take this thread away.
    assert!(fastest < Duration::from_millis(50), "{fastest:?}");
}

/// Creates a process that waits idle, takes no notice of any event, and counts its closes alone.
fn unruly(calls: &Arc<Calls>) -> impl Process {
    struct Unruly(Arc<Calls>);
    impl Process for Unruly {
        fn step(
            &mut self,
            _: &Context,
            events: &mut Events<'_>,
            out: &mut StepOutput,
        ) -> StepResult {
            events.for_each(drop);
            out.defer_cancel();
            Ok(())
        }

        fn close(&mut self) {
            self.0.closes.fetch_add(1, Ordering::SeqCst);
        }
    }
    Unruly(Arc::clone(calls))
}

/// Checks that the later stop waits: after it the program may end, and its threads with it.
// pins: P2, D4
#[test]
fn a_later_stop_waits_for_what_was_submitted_across_the_first_one() {
    /// A hook that holds a start up until it may return.
    struct Waits(Mutex<mpsc::Receiver<()>>, mpsc::Sender<()>);
    impl Lifecycle for Waits {
        fn on_start(&self, _: Pid, _: Symbol) -> Result<(), BoxError> {
            self.1.send(())?;
            self.0.lock().unwrap().recv()?;
            Ok(())
        }
    }
    struct Slow(Arc<Calls>, WeakHandle);
    impl Process for Slow {
        fn step(&mut self, _: &Context, _: &mut Events<'_>, _: &mut StepOutput) -> StepResult {
            Ok(())
        }
        fn close(&mut self) {
            thread::sleep(Duration::from_millis(100));
            let refused = self.1.upgrade().expect("it ends").stop(LONG);
            assert_eq!(refused, Err(StopError::Inside));
            self.0.closes.fetch_add(1, Ordering::SeqCst);
        }
    }
    let _alone = alone();
    let (go_on, waits) = mpsc::channel();
    let (tell, told) = mpsc::channel();
    let builder = Scheduler::builder().workers(1).shutdown_deadline(LONG);
    let hook = Waits(Mutex::new(waits), tell);
    let scheduler = builder.lifecycle(hook).build().unwrap();
    scheduler.start().unwrap();
    let calls = Calls::new();
    let (handle, process) = (
        scheduler.handle(),
        Slow(Arc::clone(&calls), scheduler.downgrade()),
    );
    let submits = thread::spawn(move || drop(handle.submit(process, "main", ())));
    told.recv_timeout(PATIENCE).unwrap();
    scheduler.stop(SHORT).unwrap();
    go_on.send(()).unwrap();
    joined(submits);
    drop(scheduler);
    assert_eq!(calls.closes(), 1);
}
