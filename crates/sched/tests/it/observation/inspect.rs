//! Processes show their state between two steps.

use crate::support::*;
use ganger_proc_api::{Actor, CommandError, Context, Pid, StepOutput, StepResult};
use ganger_sched::{InterventionError, Scheduler, Suspended};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Sums up numbers, stays in its step while it may not go on, and shows the sum.
struct Sum {
    sum: u64,
    may: Arc<AtomicBool>,
    is_in_step: Arc<AtomicBool>,
}

impl Actor for Sum {
    type Message = u64;

    fn receive(&mut self, _: &Context, number: u64, _: &mut StepOutput) -> StepResult {
        self.is_in_step.store(true, Ordering::SeqCst);
        until("it may go on", || self.may.load(Ordering::SeqCst));
        self.sum += number;
        self.is_in_step.store(false, Ordering::SeqCst);
        Ok(())
    }

    fn inspect(&self) -> Option<String> {
        assert!(!self.is_in_step.load(Ordering::SeqCst), "beside a step");
        assert_ne!(self.sum, 13, "an unlucky number");
        Some(
            self.sum
                .to_string()
                .repeat(if self.sum == 7 { 100_000 } else { 1 }),
        )
    }
}

fn sum(may: bool) -> Sum {
    Sum {
        sum: 0,
        may: Arc::new(AtomicBool::new(may)),
        is_in_step: Arc::default(),
    }
}

fn scheduler() -> Scheduler {
    let builder = Scheduler::builder().workers(1).allow_interventions();
    builder.start().unwrap()
}

fn state(scheduler: &Scheduler, pid: Pid) -> Result<Option<String>, CommandError> {
    scheduler.inspect(pid).wait_timeout(PATIENCE)
}

// pins: V19
#[test]
fn a_state_is_shown_between_steps_also_of_a_suspended_process() {
    let scheduler = scheduler();
    let process = scheduler.spawn(sum(true)).unwrap();
    assert_eq!(state(&scheduler, process.pid()).unwrap().unwrap(), "0");
    until("it stands", || {
        scheduler.suspend(process.pid()).unwrap() == Suspended::Stands
    });
    for _ in 0..20 {
        process.send(1).unwrap();
        assert_eq!(state(&scheduler, process.pid()).unwrap().unwrap(), "0");
    }
    until("it stands again", || {
        scheduler.suspend(process.pid()).unwrap() == Suspended::Stands
    });
    scheduler.resume(process.pid()).unwrap();
    until("it has summed up", || {
        state(&scheduler, process.pid()).unwrap().unwrap() == "20"
    });
    let silent = scheduler.submit(waiter(), "silent", ()).unwrap();
    assert_eq!(state(&scheduler, silent.pid()).unwrap(), None);
}

// pins: V19
#[test]
fn a_stuck_step_keeps_the_answer_away_and_questions_are_bounded() {
    let scheduler = scheduler();
    let sum = sum(false);
    let (may, is_in_step) = (Arc::clone(&sum.may), Arc::clone(&sum.is_in_step));
    let stuck = scheduler.spawn(sum).unwrap();
    stuck.send(5).unwrap();
    until("it is in its step", || is_in_step.load(Ordering::SeqCst));
    let gone = scheduler.inspect(stuck.pid());
    assert!(gone.wait_timeout(Duration::from_millis(1)).is_err());
    let asked: Vec<_> = (0..15)
        .map(|_| scheduler.inspect(stuck.pid()).begin())
        .collect();
    let refused = state(&scheduler, stuck.pid()).unwrap_err().to_string();
    assert!(refused.contains("16 questions wait"), "{refused}");
    may.store(true, Ordering::SeqCst);
    for answer in asked {
        let answer = answer.wait_timeout(PATIENCE).unwrap();
        assert_eq!(answer.as_deref(), Some("5"));
    }
}

// pins: V19
#[test]
fn a_panic_of_the_hook_is_the_answer_and_the_process_goes_on() {
    quiet_panics();
    let scheduler = scheduler();
    let process = scheduler.spawn(sum(true)).unwrap();
    process.send(13).unwrap();
    let mut panicked = None;
    until("it has panicked", || {
        panicked = state(&scheduler, process.pid()).err();
        panicked.is_some()
    });
    let text = format!("{:?}", panicked.unwrap());
    assert!(text.contains("an unlucky number"), "{text}");
    process.send(1).unwrap();
    until("it goes on", || {
        state(&scheduler, process.pid()).is_ok_and(|it| it.as_deref() == Some("14"))
    });
}

// pins: V19
#[test]
fn a_long_state_is_cut_and_nothing_is_shown_where_it_is_not_allowed() {
    let scheduler = scheduler();
    let process = scheduler.spawn(sum(true)).unwrap();
    process.send(7).unwrap();
    until("it has the number", || {
        state(&scheduler, process.pid()).unwrap().unwrap().len() == 64 << 10
    });
    let pid = process.pid();
    scheduler.terminate(pid).unwrap();
    let _end = exit(process);
    let not_found = InterventionError::NotFound(pid).to_string();
    let refused = state(&scheduler, pid).unwrap_err().to_string();
    assert!(refused.contains(&not_found), "{refused}");
    let plain = start(1);
    let process = plain.spawn(sum(true)).unwrap();
    let refused = state(&plain, process.pid()).unwrap_err().to_string();
    assert!(
        refused.contains("`Builder::allow_interventions`"),
        "{refused}"
    );
}
