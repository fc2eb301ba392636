//! A `close`, or a step, without a return keeps no other process from ending.

use crate::support::{PATIENCE, exit, process, stop_unstarted, until, until_state};
use ganger_proc_api::{
    BoxError, Context, Events, ExitReason, Lifecycle, Message, Pid, Process, SendErrorKind,
    StepOutput, StepResult, Symbol,
};
use ganger_sched::{Address, ProcessState, Scheduler};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// Its `close` returns when it is told to.
struct Closes(Option<Receiver<()>>);

impl Closes {
    fn when_told() -> (Self, Sender<()>) {
        let (tell, told) = channel();
        (Self(Some(told)), tell)
    }
}

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

// pins: D4
#[test]
fn of_a_scheduler_that_was_never_started() {
    let scheduler = Scheduler::builder().workers(2).build().unwrap();
    let mut kept = Vec::new();
    for _ in 0..3 {
        let (closes, tell) = Closes::when_told();
        kept.push((scheduler.submit(closes, "kept", ()).unwrap(), tell));
    }
    let other = scheduler.submit(Closes(None), "other", ()).unwrap();
    let report = stop_unstarted(&scheduler, Duration::from_millis(20));
    assert_eq!(report.forced + report.stuck.len() as u64, 4);
    let other = other.wait_timeout(PATIENCE).expect("it is not stuck");
    assert!(matches!(other, ExitReason::Terminated));
    for (kept, tell) in kept {
        assert!(!kept.is_finished());
        drop(tell);
        assert!(matches!(exit(kept), ExitReason::Terminated));
    }
}

// pins: D4
#[test]
fn beside_a_step_that_does_not_return_either() {
    let builder = Scheduler::builder().workers(1).max_spares(0);
    let scheduler = builder.build().unwrap();
    scheduler.start().unwrap();
    let (closes, tell) = Closes::when_told();
    let closes = scheduler.submit(closes, "closes", ()).unwrap();
    let other = scheduler.submit(Closes(None), "other", ()).unwrap();
    for pid in [closes.pid(), other.pid()] {
        until_state(&scheduler, pid, ProcessState::Idle);
    }
    let (release, released) = channel::<()>();
    let step = process(move |_, _, _| {
        let _gone = released.recv();
        Ok(())
    });
    let step = scheduler.submit(step, "step", ()).unwrap();
    until_state(&scheduler, step.pid(), ProcessState::Running);
    let report = scheduler.stop(Duration::from_millis(20)).unwrap();
    assert!(report.is_stuck(step.pid()), "{report:?}");
    let other = other.wait_timeout(PATIENCE).expect("it is not stuck");
    assert!(matches!(other, ExitReason::Terminated));
    assert!(!closes.is_finished() && !step.is_finished());
    drop((tell, release));
    assert!(matches!(exit(closes), ExitReason::Terminated));
    assert!(matches!(exit(step), ExitReason::Terminated));
}

/// Its `close` waits for room in a mailbox, which has none before the mailbox's process has ended.
struct Waits(Arc<OnceLock<Address>>);

impl Process for Waits {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, _: &mut StepOutput) -> StepResult {
        Ok(())
    }

    fn close(&mut self) {
        let full = self.0.get().expect("it is the last one");
        let refused = full.send_blocking(Message::new("bye", ()));
        assert!(matches!(
            refused.unwrap_err().kind,
            SendErrorKind::Full | SendErrorKind::Ended(_)
        ));
    }
}

/// Has as many processes as the limit of reapers wait in their `close` for a process queued behind
/// them.
// pins: D4, P2, P13
#[test]
fn that_waits_for_room() {
    let builder = Scheduler::builder().workers(1).mailbox_limit(1);
    let scheduler = builder.build().unwrap();
    let full = Arc::new(OnceLock::new());
    let others: Vec<_> = (0..40)
        .map(|_| {
            let waits = Waits(Arc::clone(&full));
            scheduler.submit(waits, "waits", ()).unwrap()
        })
        .collect();
    let last = scheduler.submit(Closes(None), "last", ()).unwrap();
    last.send(Message::new("fills", ())).unwrap();
    full.set(last.address().clone()).unwrap();
    stop_unstarted(&scheduler, Duration::from_millis(20));
    for ended in others.into_iter().chain([last]) {
        let reason = ended.wait_timeout(PATIENCE).expect("it is not stuck");
        assert!(matches!(reason, ExitReason::Terminated));
    }
    assert_eq!(scheduler.stats().total.panics, 0);
}

/// The hook of a start returns on request, for one method.
struct Hook(Mutex<Receiver<()>>);

impl Lifecycle for Hook {
    fn on_start(&self, _: Pid, method: Symbol) -> Result<(), BoxError> {
        if method.as_str() == "begins" {
            let _gone = self.0.lock().unwrap().recv();
        }
        Ok(())
    }
}

/// Ends a process submitted by a step before the stop. Its start is over when all other threads
/// have left.
// pins: D4
#[test]
fn that_has_started_it() {
    let (begin, told) = channel::<()>();
    let builder = Scheduler::builder().workers(1).max_spares(0);
    let builder = builder.lifecycle(Hook(Mutex::new(told)));
    let scheduler = builder.build().unwrap();
    scheduler.start().unwrap();
    let handle = scheduler.handle();
    let (tell, begun) = channel();
    let (release, released) = channel::<()>();
    let mut begins = Some(Closes(None));
    let step = process(move |_, _, _| {
        if let Some(begins) = begins.take() {
            tell.send(handle.submit(begins, "begins", ()))?;
            let _gone = released.recv();
        }
        Ok(())
    });
    let step = scheduler.submit(step, "step", ()).unwrap();
    until_state(&scheduler, step.pid(), ProcessState::Running);
    until("the start has begun", || scheduler.processes().len() == 2);
    let report = scheduler.stop(Duration::ZERO).unwrap();
    assert!(report.is_stuck(step.pid()), "{report:?}");
    drop(begin);
    let begins = begun.recv_timeout(PATIENCE).unwrap().unwrap();
    let reason = begins.wait_timeout(PATIENCE).expect("it is not stuck");
    assert!(matches!(reason, ExitReason::Terminated), "{reason}");
    assert!(!step.is_finished());
    drop(release);
    assert!(matches!(exit(step), ExitReason::Terminated));
}
