//! Slots without workers, and threads that the system refuses.

use super::*;
use crate::Scheduler;
use crate::process::state::ProcessState;
use crate::reports::long_steps::{LongStep, LongStepKind, NoticedStep};
use crate::runtime::spares::Next;
use ganger_proc_api::{
    Context, Events, ExitReason, Message, Pid, Process, SendErrorKind, StepOutput, StepResult,
};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

/// Calls the function in its only step.
struct Once<F>(F);

impl<F: FnMut() + Send + 'static> Process for Once<F> {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        (self.0)();
        out.done(());
        Ok(())
    }
}

/// Creates a scheduler of a worker and a spare, not started, with a free slot for the spare.
fn unstarted() -> Scheduler {
    let builder = Scheduler::builder().workers(1).max_spares(1);
    let scheduler = builder.build().unwrap();
    let mut deques = scheduler.shared.start.take_deques().unwrap();
    let spare = deques.pop().unwrap();
    scheduler
        .shared
        .worker_slots
        .set_free([(1, spare)].into_iter());
    scheduler
}

fn blocked(pid: Pid) -> NoticedStep {
    let step = LongStep {
        is_announced: false,
        pid,
        method: None,
        worker: 0,
        kind: LongStepKind::Blocked,
        lasted: Duration::from_millis(1),
        is_over: false,
        backtrace: None,
    };
    NoticedStep { turn: 0, step }
}

// pins: G6
#[test]
fn a_thread_that_is_started_does_nothing_before_who_is_relieved_can_know() {
    let scheduler = unstarted();
    let shared = &scheduler.shared;
    let mut started = None;
    let spawn = |slot, _| {
        let shared = Arc::clone(shared);
        started = Some(thread::spawn(move || {
            shared.worker_slots.enter(slot);
            (
                shared.worker_slots.is_replaced(0),
                shared.worker_slots.is_active(slot),
            )
        }));
        // Gives a wrong event the time to happen.
        thread::sleep(Duration::from_millis(20));
        Ok(())
    };
    assert!(shared.worker_slots.replace(0, spawn, || ()).unwrap());
    assert_eq!(started.unwrap().join().unwrap(), (true, true));
}

// pins: G6
#[test]
fn a_refused_thread_leaves_its_slot_and_a_warning() {
    let scheduler = unstarted();
    let (shared, slots) = (&scheduler.shared, &scheduler.shared.worker_slots);
    slots.refuse_threads(true);
    for _ in 0..3 {
        let step = blocked(Pid::new(shared.host, 7));
        assert!(!shared.replace_worker(0, Some(step)));
        assert!(!slots.is_replaced(0));
        assert_eq!(shared.reporting.long_steps.last(), []);
        assert_eq!(slots.spares(), 0);
        let now = || Duration::ZERO;
        assert!(
            shared.census.threads.wait(|| 0, now),
            "no thread is counted"
        );
        assert_eq!(lock(&slots.spares).free.len(), 1);
    }
    // The thread for reports was refused as well; one warning waits, and is enough.
    assert_eq!(shared.reporting.reports.waiting(), 1);
}

/// Takes messages, and ends with the second.
struct TakesTwo(u32);

impl Process for TakesTwo {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        self.0 += u32::try_from(events.count())?;
        if self.0 == 2 {
            out.done(());
        }
        Ok(())
    }
}

// pins: P13
#[test]
fn nobody_waits_for_room_beside_others_when_the_system_grants_no_thread() {
    let builder = Scheduler::builder().workers(1).mailbox_limit(1);
    let scheduler = builder.build().unwrap();
    scheduler.start().unwrap();
    scheduler.shared.worker_slots.refuse_threads(true);
    let receiver = scheduler.submit(TakesTwo(0), "main", ()).unwrap();
    let to = receiver.address().clone();
    let (said, says) = mpsc::channel();
    let sender = Once(move || {
        // The receiver is queued behind this step.
        to.send(Message::new("first", 1)).unwrap();
        said.send(to.send_blocking(Message::new("second", 2)))
            .unwrap();
    });
    let is_idle = || scheduler.process(receiver.pid()).unwrap().state == ProcessState::Idle;
    while !is_idle() {
        thread::yield_now();
    }
    let sender = scheduler.submit(sender, "main", ()).unwrap();
    let refused = says
        .recv_timeout(Duration::from_secs(60))
        .unwrap()
        .unwrap_err();
    assert_eq!(refused.kind, SendErrorKind::Full);
    assert!(matches!(sender.wait(), ExitReason::Done(_)));
    receiver
        .address()
        .send_blocking(refused.into_envelope().message)
        .unwrap();
    assert!(matches!(receiver.wait(), ExitReason::Done(_)));
}

/// Its `close` returns when it is told to.
struct Closes(Option<mpsc::Receiver<()>>);

impl Process for Closes {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        out.defer_cancel();
        Ok(())
    }

    fn close(&mut self) {
        if let Some(told) = self.0.take() {
            let _gone = told.recv();
        }
    }
}

// pins: D3
#[test]
fn who_stops_a_scheduler_ends_no_process_when_the_system_grants_no_reaper() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    scheduler.start().unwrap();
    scheduler.shared.worker_slots.refuse_threads(true);
    let (release, released) = mpsc::channel();
    let closes = scheduler
        .submit(Closes(Some(released)), "main", ())
        .unwrap();
    let (release_other, released) = mpsc::channel();
    let other = scheduler
        .submit(Closes(Some(released)), "main", ())
        .unwrap();
    let (has_stopped, stopped) = mpsc::channel();
    let handle = scheduler.handle();
    let stop =
        thread::spawn(move || has_stopped.send(handle.stop(Duration::from_millis(20)).unwrap()));
    // The worker is in a `close`, and the other `close` would hold the thread that stops.
    let report = stopped.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(
        report.forced + report.completed + report.stuck.len() as u64,
        2
    );
    drop((release, release_other));
    assert!(matches!(closes.wait(), ExitReason::Terminated));
    assert!(matches!(other.wait(), ExitReason::Terminated));
    stop.join().unwrap().unwrap();
}

// pins: G6
#[test]
fn who_waits_behind_a_blocked_step_runs_when_the_system_grants_a_thread_again() {
    let builder = Scheduler::builder().workers(1).max_spares(1);
    let scheduler = builder.build().unwrap();
    scheduler.start().unwrap();
    let slots = &scheduler.shared.worker_slots;
    slots.refuse_threads(true);
    let (began, has_begun) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let blocking = Once(move || {
        began.send(()).unwrap();
        released.recv().unwrap();
    });
    let blocked = scheduler.submit(blocking, "main", ()).unwrap();
    has_begun.recv().unwrap();
    let waiting = scheduler.submit(Once(|| ()), "main", ()).unwrap();
    while scheduler.shared.reporting.reports.waiting() == 0 {
        thread::yield_now();
    }
    assert!(!waiting.is_finished());
    slots.refuse_threads(false);
    let minute = Duration::from_secs(60);
    let waiting = waiting.wait_timeout(minute);
    assert!(matches!(waiting, Ok(ExitReason::Done(_))));
    assert!(!blocked.is_finished());
    release.send(()).unwrap();
    assert!(matches!(blocked.wait(), ExitReason::Done(_)));
}

/// Checks that a worker about to leave keeps its place, though the monitor takes it to be still in
/// its step.
// pins: G6
#[test]
fn who_is_about_to_leave_is_not_relieved() {
    let scheduler = unstarted();
    let (shared, slots) = (&scheduler.shared, &scheduler.shared.worker_slots);
    assert_eq!(slots.retire(0, Duration::ZERO, || false), Next::Leave);
    lock(&slots.spares).waiting.push(1);
    assert!(
        !shared.replace_worker(0, None),
        "no worker stands in its place"
    );
    assert!(!slots.is_replaced(0));
    assert_eq!(lock(&slots.spares).waiting, [1]);
}

// pins: D4
#[test]
fn a_relieved_worker_looks_once_more_after_the_halt() {
    let scheduler = unstarted();
    let slots = &scheduler.shared.worker_slots;
    let hour = Duration::from_secs(3_600);
    assert_eq!(slots.retire(0, hour, || true), Next::Active);
    assert_eq!(slots.retire(0, Duration::ZERO, || false), Next::Leave);
    assert!(lock(&slots.spares).waiting.is_empty());
}
