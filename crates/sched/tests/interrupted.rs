//! A program runs until it is interrupted: in a process of its own, which sends itself the signals.
#![cfg(target_os = "linux")]
#![allow(missing_docs)]

use ganger_proc_api::{Context, Event, Events, StepOutput, StepResult, process_fn};
use ganger_sched::{ProcessState, RunError, Scheduler, StopError};
use rustix::process::{Signal, getpid, kill_process};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

/// Signals are the whole program's: a single test at a time.
static ALONE: Mutex<()> = Mutex::new(());

const HOUR: Duration = Duration::from_secs(3_600);

fn kill(signal: Signal) {
    kill_process(getpid(), signal).unwrap();
}

/// Waits, and ends when it is cancelled.
fn waits(_: &Context, _: &mut Events<'_>, _: &mut StepOutput) -> StepResult {
    Ok(())
}

/// Stays when it is cancelled.
fn stays(_: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
    if events.into_iter().any(|it| matches!(it, Event::Cancel(_))) {
        out.defer_cancel();
    }
    Ok(())
}

// pins: D1
#[test]
fn either_signal_stops_a_scheduler_that_the_call_has_started_or_not() {
    let _alone = ALONE.lock().unwrap();
    for (signal, is_started) in [(Signal::INT, false), (Signal::TERM, true)] {
        let scheduler = Scheduler::builder().workers(1).build().unwrap();
        let process = scheduler.spawn(process_fn(waits)).unwrap();
        if is_started {
            scheduler.start().unwrap();
        }
        let handle = scheduler.handle();
        let (pid, began) = (process.pid(), Instant::now());
        let kills = thread::spawn(move || {
            let state = || handle.process(pid).map(|it| it.state);
            while state() != Some(ProcessState::Idle) {
                thread::yield_now();
            }
            // The first call has begun to listen by now. The second may begin later.
            while state().is_some() {
                kill(signal);
                thread::sleep(Duration::from_millis(10));
            }
        });
        let report = scheduler.run_until_interrupted(HOUR).unwrap();
        assert_eq!((report.completed, report.forced), (1, 0));
        assert!(began.elapsed() < HOUR);
        kills.join().unwrap();
    }
}

// pins: D1
#[test]
fn a_second_signal_a_second_later_makes_the_deadline_pass() {
    let _alone = ALONE.lock().unwrap();
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let process = scheduler.spawn(process_fn(stays)).unwrap();
    let handle = scheduler.handle();
    let (over, is_over) = channel::<()>();
    let kills = thread::spawn(move || {
        while handle.process(process.pid()).map(|it| it.state) != Some(ProcessState::Idle) {
            thread::yield_now();
        }
        // Both are a single request.
        kill(Signal::INT);
        kill(Signal::TERM);
        let early = is_over.recv_timeout(Duration::from_millis(900));
        let is_early = early.is_ok();
        while is_over.try_recv().is_err() {
            kill(Signal::INT);
            thread::sleep(Duration::from_millis(50));
        }
        is_early
    });
    let report = scheduler.run_until_interrupted(HOUR).unwrap();
    over.send(()).unwrap();
    assert_eq!((report.completed, report.forced), (0, 1));
    assert!(!kills.join().unwrap(), "the first request waits");
}

// pins: D1
#[test]
fn a_stop_from_inside_ends_the_wait_and_the_call_inside_is_refused() {
    let _alone = ALONE.lock().unwrap();
    let scheduler = std::sync::Arc::new(Scheduler::builder().workers(1).build().unwrap());
    let inside = std::sync::Arc::downgrade(&scheduler);
    let process = process_fn(move |_, _, out| {
        let scheduler = inside.upgrade().ok_or("gone")?;
        let refused = scheduler.run_until_interrupted(HOUR);
        assert!(matches!(refused, Err(RunError::Stop(StopError::Inside))));
        scheduler.begin_stop(HOUR);
        out.done(7_u64);
        Ok(())
    });
    let process = scheduler.spawn(process).unwrap();
    let report = scheduler.run_until_interrupted(HOUR).unwrap();
    assert_eq!(report.forced, 0);
    assert_eq!(process.wait().into_result().unwrap().as_u64(), Some(7));
    let stopped = scheduler.run_until_interrupted(HOUR);
    assert!(matches!(stopped, Err(RunError::Start(_))));
}

// pins: D1
#[test]
fn a_stop_from_elsewhere_ends_the_wait_though_no_worker_returns() {
    let _alone = ALONE.lock().unwrap();
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let (go_on, waits) = channel::<()>();
    let (entered, is_inside) = channel();
    let waits = std::sync::Mutex::new(waits);
    let stuck = process_fn(move |_, _, out| {
        entered.send(())?;
        // The step ends when the test has its report.
        let _gone = waits.lock().unwrap().recv();
        out.done(());
        Ok(())
    });
    scheduler.spawn(stuck).unwrap();
    let handle = scheduler.handle();
    let stops = thread::spawn(move || {
        is_inside.recv().unwrap();
        handle.begin_stop(Duration::ZERO);
    });
    let report = scheduler.run_until_interrupted(HOUR).unwrap();
    assert_eq!(report.stuck.len(), 1);
    drop(go_on);
    stops.join().unwrap();
}
