//! A scheduler that is built and not started: endless waits are refused, and the rest works.

use crate::support::*;
use ganger_proc_api::{
    Actor, BoxError, CommandError, Context, ExitReason, Message, Payload, Reply, SendErrorKind,
    StepOutput, StepResult,
};
use ganger_sched::{BuildError, Call, NotStarted, Scheduler, StartError, StopError};
use std::time::Duration;

/// Answers with a number.
struct Seven;

impl Actor for Seven {
    type Message = Reply<u64>;

    fn receive(&mut self, _: &Context, reply: Reply<u64>, _: &mut StepOutput) -> StepResult {
        reply.complete(7);
        Ok(())
    }
}

fn built() -> Scheduler {
    let builder = Scheduler::builder().workers(1).mailbox_limit(1);
    builder.build().unwrap()
}

#[track_caller]
fn assert_says_so(error: &BoxError) {
    assert!(error.is::<NotStarted>(), "{error}");
    let text = error.to_string();
    for part in [
        "has not been started",
        "`Builder::start`",
        "`Scheduler::start`",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

fn failed<T: std::fmt::Debug>(answer: Result<T, CommandError>) -> BoxError {
    match answer {
        Err(CommandError::Failed(error)) => error,
        other => panic!("{other:?}"),
    }
}

// pins: F1
#[test]
fn a_wait_for_a_process_is_an_error_at_once_and_leaves_the_process_alone() {
    let scheduler = built();
    let handle = scheduler.submit(waiter(), "main", ()).unwrap();
    let pid = handle.pid();
    let ExitReason::Failed(error) = handle.wait() else {
        panic!("nothing runs")
    };
    assert_says_so(&error);
    scheduler.start().unwrap();
    assert!(scheduler.process(pid).is_some());
    // A wait with a timeout is as patient as before.
    let scheduler = built();
    let handle = scheduler.submit(waiter(), "main", ()).unwrap();
    let handle = handle.wait_timeout(Duration::from_millis(1)).unwrap_err();
    scheduler.start().unwrap();
    scheduler.cancel(handle.pid(), "enough").unwrap();
    assert!(handle.wait_timeout(PATIENCE).unwrap().is_done());
}

// pins: F1
#[test]
fn a_question_says_so_at_once_or_when_its_time_is_over() {
    let scheduler = built();
    let seven = scheduler.spawn(Seven).unwrap();
    assert_says_so(&failed(seven.call(|reply| reply).wait()));
    let another = scheduler.spawn(Seven).unwrap();
    let asked = another.call(|reply| reply);
    assert_says_so(&failed(asked.wait_timeout(Duration::from_millis(1))));
    let answers = scheduler.downgrade();
    let passed_on = Call::by_inside(
        answers,
        |it| Some(it),
        |_, reply: Reply<u64>| {
            // The question is never answered.
            std::mem::forget(reply);
            Ok(())
        },
    );
    assert_says_so(&failed(passed_on.wait()));
    // A question begun before the start is answered after it.
    let third = scheduler.spawn(Seven).unwrap();
    let answer = third.call(|reply| reply).begin();
    scheduler.start().unwrap();
    assert_eq!(answer.wait().unwrap(), 7);
}

// pins: F1
#[test]
fn a_thread_does_not_wait_for_room_and_has_its_message_back() {
    let scheduler = built();
    let full = scheduler.submit(waiter(), "main", ()).unwrap();
    full.send(Message::new("first", 1)).unwrap();
    let error = full.address().send_blocking(Message::new("second", 2));
    let error = error.unwrap_err();
    assert_eq!(error.kind, SendErrorKind::NotStarted);
    assert!(
        error.to_string().contains("has not been started"),
        "{error}"
    );
    let payload: Payload = error.into_envelope().message.payloads.into_first();
    assert_eq!(payload.as_i64(), Some(2));
}

// pins: F1, D1
#[test]
fn a_stop_ends_all_and_is_an_error_with_the_report() {
    let scheduler = built();
    let handle = scheduler.submit(waiter(), "main", ()).unwrap();
    for _ in 0..2 {
        let error = scheduler.stop(Duration::from_secs(60)).unwrap_err();
        assert!(
            error.to_string().contains("1 processes have ended"),
            "{error}"
        );
        assert!(error.to_string().contains("`Builder::start`"), "{error}");
        let StopError::NotStarted(report) = error else {
            panic!("it was not started")
        };
        assert_eq!(report.forced, 1);
    }
    // The process has ended, so the wait is over at once.
    assert!(matches!(handle.wait(), ExitReason::Terminated));
}

// pins: F1
#[test]
fn a_builder_starts_what_it_builds_or_says_why_not() {
    let scheduler = Scheduler::builder().workers(1).start().unwrap();
    let seven = scheduler.spawn(Seven).unwrap();
    assert_eq!(seven.call(|reply| reply).wait().unwrap(), 7);
    assert!(matches!(scheduler.start(), Err(StartError::AlreadyStarted)));
    let error = Scheduler::builder().workers(0).start().unwrap_err();
    assert!(matches!(
        error,
        StartError::Build(BuildError::OutOfRange { .. })
    ));
    assert_eq!(error.to_string(), "workers is 0; it must be from 1 to 4096");
}
