//! Tasks whose waits are always ready.

use crate::support::{ByHand, Stepped, number, start};
use ganger_proc_api::{BoxError, Outcome};
use ganger_task::{Cx, process};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many waits may be ready in a step.
const BUDGET: usize = 256;

/// Steps until the task waits; returns the number of steps.
fn steps(task: &mut ByHand, mut between: impl FnMut(&mut ByHand)) -> usize {
    for count in 1.. {
        match task.step().unwrap() {
            Stepped {
                outcome: Outcome::StepAgain,
                ..
            } => between(task),
            Stepped {
                outcome: Outcome::Wait | Outcome::Done(_),
                ..
            } => return count,
            other => panic!("{other:?}"),
        }
    }
    unreachable!("it waits some time")
}

// pins: A6
#[test]
fn a_flood_of_messages_is_taken_in_steps_of_bounded_length() {
    let mut task = ByHand::new(process(async |cx: Cx<usize>| {
        while cx.recv().await.is_some() {}
        Ok(())
    }));
    (0..10 * BUDGET).for_each(|it| task.send(it));
    let mut left = task.events.len();
    let steps = steps(&mut task, |task| {
        assert_eq!(left - task.events.len(), BUDGET);
        left = task.events.len();
    });
    assert_eq!((steps, task.events.len()), (11, 0));
}

// pins: A6
#[test]
fn a_loop_of_ready_futures_that_counts_them_lets_others_run() {
    let turns = Arc::new(AtomicUsize::new(0));
    let its_turns = Arc::clone(&turns);
    let mut task = ByHand::new(process(async move |cx: Cx| {
        for _ in 0..3 * BUDGET {
            std::future::ready(()).await;
            // Ordering: Relaxed: the test has a single thread.
            its_turns.fetch_add(1, Ordering::Relaxed);
            cx.consume_budget().await;
        }
        for _ in 0..2 * BUDGET {
            cx.until_cancelled(std::future::ready(())).await?;
        }
        Ok(())
    }));
    let mut first = None;
    assert_eq!(
        steps(&mut task, |_| {
            // Ordering: Relaxed: the test has a single thread.
            first.get_or_insert(turns.load(Ordering::Relaxed));
        }),
        5
    );
    assert_eq!(first, Some(BUDGET + 1));
}

/// Lets a task go on after its cancellation: each of its waits is over at once.
// pins: A5, A6
#[test]
fn a_task_that_ignores_its_cancellation_does_not_keep_its_worker() {
    let scheduler = start(1);
    let stubborn = scheduler.spawn(async |cx: Cx<u64>| -> Result<(), BoxError> {
        loop {
            cx.recv().await;
        }
    });
    let stubborn = stubborn.unwrap();
    scheduler.cancel(stubborn.pid(), "enough").unwrap();
    for _ in 0..100 {
        let other = scheduler.spawn(async |cx: Cx<u64>| Ok(cx.recv().await.unwrap_or(0)));
        let other = other.unwrap();
        other.send(7).unwrap();
        assert_eq!(number(other), 7);
    }
    scheduler.terminate(stubborn.pid()).unwrap();
}

// pins: A6
#[test]
fn yield_now_lets_those_run_that_are_ready() {
    let mut task = ByHand::new(process(async |cx: Cx| {
        cx.yield_now().await;
        cx.join((cx.yield_now(), cx.yield_now())).await;
        Ok(())
    }));
    for _ in 0..2 {
        assert!(matches!(task.step().unwrap().outcome, Outcome::YieldNow));
    }
    assert!(matches!(task.step().unwrap().outcome, Outcome::Done(_)));
}
