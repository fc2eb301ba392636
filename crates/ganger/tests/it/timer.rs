//! The example of a timer: no sleep ends early, or waits for one that is due later.

#[path = "../../examples/timer.rs"]
#[expect(dead_code, reason = "the example's own `main`")]
mod example;

use example::{Periodic, SLEEP, Timer};
use ganger::prelude::*;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

const MINUTE: u64 = 60_000;

fn start(timer: &Timer) -> Scheduler {
    let scheduler = Scheduler::builder().build().unwrap();
    scheduler.register(SLEEP, "sleep", timer.handler()).unwrap();
    scheduler.start().unwrap();
    scheduler
}

/// Has a handler carry a sleep out; the answer comes with `tag`.
fn sleep(handler: &impl Handler, millis: u64, tag: Tag, answers: &Sender<Completion>) {
    let answers = answers.clone();
    let completer = Completer::from_fn("{test|1}".parse().unwrap(), tag, move |answer| {
        // The receiver may have seen enough.
        let _ = answers.send(answer);
    });
    handler
        .handle(Command::new(SLEEP, millis), completer)
        .unwrap();
}

fn next(answers: &Receiver<Completion>) -> Completion {
    answers.recv_timeout(Duration::from_millis(MINUTE)).unwrap()
}

// pins: P5, P6
#[test]
fn a_process_wakes_as_often_as_it_sleeps_and_never_too_early() {
    let timer = Timer::start();
    let scheduler = start(&timer);
    let begun = Instant::now();
    let exit = scheduler.submit(Periodic::new("test", 7, 6), "main", ());
    let exit = exit.unwrap().wait();
    assert!(exit.is_done(), "{exit}");
    assert!(begun.elapsed() >= Duration::from_millis(42));
}

#[test]
fn who_is_due_first_wakes_first() {
    let timer = Timer::start();
    let handler = timer.handler();
    let (sender, answers) = channel();
    for (tag, millis) in [(1, 10 * MINUTE), (2, 90), (3, 30), (4, 0)] {
        sleep(&handler, millis, tag, &sender);
    }
    let woken = [next(&answers).tag, next(&answers).tag, next(&answers).tag];
    assert_eq!(woken, [4, 3, 2]);
}

// pins: P6
#[test]
fn a_timer_that_is_dropped_answers_all_that_sleep() {
    let timer = Timer::start();
    let handler = timer.handler();
    let (sender, answers) = channel();
    sleep(&handler, MINUTE, 1, &sender);
    drop(timer);
    let answer = next(&answers);
    assert!(
        matches!(answer.result, Err(CommandError::Dropped)),
        "{answer:?}"
    );
    let refused = handler.handle(
        Command::new(SLEEP, 0_u64),
        Completer::from_fn("{test|1}".parse().unwrap(), 2, drop),
    );
    assert_eq!(refused.unwrap_err().to_string(), "the timer has ended");
}

#[test]
fn what_is_no_time_is_refused() {
    let timer = Timer::start();
    let handler = timer.handler();
    for wrong in [Payload::from("soon"), Payload::from(-1), Payload::UNIT] {
        let completer = Completer::from_fn("{test|1}".parse().unwrap(), 0, drop);
        let refused = handler.handle(Command::new(SLEEP, wrong), completer);
        assert!(refused.is_err());
    }
}

// pins: D2
#[test]
fn a_shutdown_does_not_wait_for_who_sleeps() {
    let timer = Timer::start();
    let scheduler = start(&timer);
    let sleeper = scheduler.submit(Periodic::new("test", MINUTE, 1), "main", ());
    let report = scheduler.stop(Duration::from_secs(30)).unwrap();
    assert_eq!((report.forced, report.stuck.len()), (0, 0));
    let exit = sleeper.unwrap().wait();
    assert!(matches!(
        exit,
        ExitReason::Cancelled(CancelReason::Shutdown)
    ));
}
