//! Suspended processes stand still until they are resumed.

use crate::support::*;
use ganger_proc_api::{Command, CommandId, Completer, Event, ExitReason, Message, Pid, actor_fn};
use ganger_sched::{InterventionError, ProcessHandle, ProcessState, Scheduler, Suspended};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const KEPT: CommandId = CommandId::new(256);

fn scheduler(workers: usize) -> Scheduler {
    Scheduler::builder()
        .workers(workers)
        .allow_interventions()
        .start()
        .unwrap()
}

/// Returns when the process stands.
fn suspend(scheduler: &Scheduler, pid: Pid) {
    until("it stands", || {
        scheduler.suspend(pid).unwrap() == Suspended::Stands
    });
    assert_eq!(
        scheduler.process(pid).unwrap().state,
        ProcessState::Suspended
    );
}

/// Spawns a process that notes its numbers.
fn notes(scheduler: &Scheduler) -> (ProcessHandle<u64>, Arc<Mutex<Vec<u64>>>) {
    let noted: Arc<Mutex<Vec<u64>>> = Arc::default();
    let notes = Arc::clone(&noted);
    let actor = actor_fn(move |_, number: u64, _| {
        notes.lock().unwrap().push(number);
        Ok(())
    });
    (scheduler.spawn(actor).unwrap(), noted)
}

// pins: V18
#[test]
fn a_suspended_process_takes_no_step_and_keeps_its_mailbox_in_order() {
    let scheduler = scheduler(2);
    let (process, noted) = notes(&scheduler);
    let (other, others) = notes(&scheduler);
    for round in 0..50 {
        suspend(&scheduler, process.pid());
        let before = noted.lock().unwrap().len();
        for number in 0..10 {
            process.send(round * 10 + number).unwrap();
            other.send(number).unwrap();
        }
        until("another process goes on", || {
            others.lock().unwrap().len() as u64 == (round + 1) * 10
        });
        let info = scheduler.process(process.pid()).unwrap();
        assert_eq!(info.state, ProcessState::Suspended);
        assert_eq!(noted.lock().unwrap().len(), before);
        assert_eq!(scheduler.resume(process.pid()), Ok(true));
        until("it has taken all", || {
            noted.lock().unwrap().len() == before + 10
        });
    }
    assert!(noted.lock().unwrap().iter().copied().eq(0..500));
}

// pins: V18
#[test]
fn a_step_that_runs_is_the_last_one() {
    let scheduler = scheduler(1);
    let (runs, goes_on) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let (steps, may) = (Arc::clone(&runs), Arc::clone(&goes_on));
    let busy = process(move |_, _, out| {
        steps.fetch_add(1, Ordering::SeqCst);
        until("it may go on", || may.load(Ordering::SeqCst));
        out.step_again();
        Ok(())
    });
    let busy = scheduler.submit(busy, "busy", ()).unwrap();
    until("it runs", || runs.load(Ordering::SeqCst) == 1);
    for _ in 0..3 {
        assert_eq!(scheduler.suspend(busy.pid()), Ok(Suspended::Soon));
    }
    assert_eq!(
        scheduler.process(busy.pid()).unwrap().state,
        ProcessState::Running
    );
    goes_on.store(true, Ordering::SeqCst);
    suspend(&scheduler, busy.pid());
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    assert_eq!(scheduler.suspend(busy.pid()), Ok(Suspended::Stands));
    assert_eq!(scheduler.resume(busy.pid()), Ok(true));
    until("it steps again", || runs.load(Ordering::SeqCst) > 1);
    assert_eq!(scheduler.resume(busy.pid()), Ok(false));
    scheduler.terminate(busy.pid()).unwrap();
    assert!(matches!(exit(busy), ExitReason::Terminated));
}

// pins: V18
#[test]
fn a_resume_before_the_end_of_the_turn_takes_it_back() {
    let scheduler = scheduler(1);
    let (runs, goes_on) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let (is_on, may) = (Arc::clone(&runs), Arc::clone(&goes_on));
    let holds = process(move |_, events, out| {
        is_on.store(true, Ordering::SeqCst);
        until("it may go on", || may.load(Ordering::SeqCst));
        if events.count() > 0 {
            out.done(());
        }
        Ok(())
    });
    let holds = scheduler.submit(holds, "holds", ()).unwrap();
    until("it runs", || runs.load(Ordering::SeqCst));
    assert_eq!(scheduler.suspend(holds.pid()), Ok(Suspended::Soon));
    assert_eq!(scheduler.resume(holds.pid()), Ok(true));
    goes_on.store(true, Ordering::SeqCst);
    holds.send(Message::new("go", ())).unwrap();
    assert!(exit(holds).is_done());
}

// pins: V18
#[test]
fn a_process_suspends_itself_at_the_end_of_its_step() {
    let scheduler = scheduler(1);
    let handle = scheduler.handle();
    let seen = Arc::new(AtomicUsize::new(0));
    let steps = Arc::clone(&seen);
    let rests = actor_fn(move |ctx, _: u64, _| {
        steps.fetch_add(1, Ordering::SeqCst);
        assert_eq!(handle.suspend(ctx.pid())?, Suspended::Soon);
        Ok(())
    });
    let rests = scheduler.spawn(rests).unwrap();
    for steps in 1..=3 {
        rests.send(7).unwrap();
        until_state(&scheduler, rests.pid(), ProcessState::Suspended);
        assert_eq!(seen.load(Ordering::SeqCst), steps);
        assert_eq!(scheduler.resume(rests.pid()), Ok(true));
    }
}

// pins: V18
#[test]
fn a_completion_waits_for_the_process_that_has_asked() {
    let builder = Scheduler::builder().workers(1).allow_interventions();
    let scheduler = builder.build().unwrap();
    let kept: Arc<Mutex<Option<Completer>>> = Arc::default();
    let keeps = Arc::clone(&kept);
    let handler = move |_: Command, completer: Completer| {
        *keeps.lock().unwrap() = Some(completer);
        Ok(())
    };
    scheduler.register(KEPT, "kept", handler).unwrap();
    scheduler.start().unwrap();
    let asks = process(|_, events, out| {
        if events.is_empty() {
            out.yield_command(Command::new(KEPT, ()), 1);
        }
        for event in events {
            if let Event::Completion(completion) = event {
                out.done(completion.result?);
            }
        }
        Ok(())
    });
    let asks = scheduler.submit(asks, "asks", ()).unwrap();
    until_state(&scheduler, asks.pid(), ProcessState::Blocked);
    suspend(&scheduler, asks.pid());
    let completer = kept.lock().unwrap().take().unwrap();
    completer.complete(7_u64);
    // The only worker has passed by.
    let (passes, _) = notes(&scheduler);
    scheduler.terminate(passes.pid()).unwrap();
    let _end = exit(passes);
    assert!(!asks.is_finished());
    assert_eq!(scheduler.resume(asks.pid()), Ok(true));
    assert_eq!(exit_number(asks), 7);
}

// pins: V18
#[test]
fn a_terminated_process_ends_at_once_and_a_cancelled_one_when_it_is_resumed() {
    let scheduler = scheduler(2);
    for _ in 0..100 {
        let (terminated, noted) = notes(&scheduler);
        suspend(&scheduler, terminated.pid());
        terminated.send(1).unwrap();
        scheduler.terminate(terminated.pid()).unwrap();
        assert!(matches!(exit(terminated), ExitReason::Terminated));
        assert!(noted.lock().unwrap().is_empty());

        let (cancelled, noted) = notes(&scheduler);
        suspend(&scheduler, cancelled.pid());
        scheduler.cancel(cancelled.pid(), "enough").unwrap();
        suspend(&scheduler, cancelled.pid());
        assert_eq!(scheduler.resume(cancelled.pid()), Ok(true));
        assert!(matches!(exit(cancelled), ExitReason::Cancelled(_)));
        assert!(noted.lock().unwrap().is_empty());
    }
}

// pins: V18
#[test]
fn a_stop_resumes_all_and_waits_for_none() {
    let scheduler = scheduler(2);
    let all: Vec<_> = (0..100).map(|_| notes(&scheduler)).collect();
    for (process, _) in &all {
        suspend(&scheduler, process.pid());
        process.send(7).unwrap();
    }
    let begin = Instant::now();
    let report = scheduler.stop(Duration::from_secs(60)).unwrap();
    assert!(begin.elapsed() < Duration::from_secs(50), "{report:?}");
    assert_eq!((report.forced, report.completed), (0, 100), "{report:?}");
    for (process, _) in all {
        assert!(matches!(exit(process), ExitReason::Cancelled(_)));
    }
}

// pins: V18
#[test]
fn nothing_is_suspended_in_a_stop() {
    let scheduler = scheduler(1);
    let handle = scheduler.handle();
    let refused = Arc::new(Mutex::new(None));
    let tells = Arc::clone(&refused);
    let tries = process(move |ctx, events, out| {
        if events.any(|it| matches!(it, Event::Cancel(_))) {
            *tells.lock().unwrap() = Some(handle.suspend(ctx.pid()));
            out.done(());
        }
        Ok(())
    });
    let tries = scheduler.submit(tries, "tries", ()).unwrap();
    let report = scheduler.stop(Duration::from_secs(60)).unwrap();
    assert_eq!(report.forced, 0);
    assert_eq!(
        *refused.lock().unwrap(),
        Some(Err(InterventionError::Stopping))
    );
    let _end = exit(tries);
}

// pins: V18
#[test]
fn what_is_not_allowed_or_not_there_is_refused() {
    let plain = start(1);
    let (process, noted) = notes(&plain);
    for refused in [
        plain.suspend(process.pid()).map(drop),
        plain.resume(process.pid()).map(drop),
    ] {
        let error = refused.unwrap_err();
        assert_eq!(error, InterventionError::NotAllowed);
        assert!(error.to_string().contains("`Builder::allow_interventions`"));
    }
    process.send(7).unwrap();
    until("it goes on", || noted.lock().unwrap().len() == 1);

    let scheduler = scheduler(1);
    let (ended, _) = notes(&scheduler);
    let pid = ended.pid();
    suspend(&scheduler, pid);
    scheduler.terminate(pid).unwrap();
    let _end = exit(ended);
    for pid in [pid, process.pid()] {
        let not_found = InterventionError::NotFound(pid);
        assert_eq!(scheduler.suspend(pid), Err(not_found));
        assert_eq!(scheduler.resume(pid), Err(not_found));
    }
}

/// Sends messages while two threads suspend and resume the process: each arrives once, in order.
// pins: V18
#[test]
fn no_message_is_lost_among_many_hands() {
    let scheduler = scheduler(2);
    let (process, noted) = notes(&scheduler);
    let pid = process.pid();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    scheduler.suspend(pid).unwrap();
                    std::thread::yield_now();
                    scheduler.resume(pid).unwrap();
                }
            });
        }
        for number in 0..20_000 {
            process.send(number).unwrap();
        }
        until("it has taken all", || noted.lock().unwrap().len() == 20_000);
        is_over.store(true, Ordering::SeqCst);
    });
    assert!(noted.lock().unwrap().iter().copied().eq(0..20_000));
    scheduler.resume(pid).unwrap();
    process.send(20_000).unwrap();
    until("it goes on", || noted.lock().unwrap().len() == 20_001);
}
