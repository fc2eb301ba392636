//! The lone wait of a task for an answer: the answer stays among the events of its step, whatever
//! the task does there.

use crate::support::{ByHand, Woken};
use futures_util::poll;
use ganger_proc_api::{Command, CommandId, Outcome, Payload};
use ganger_task::{Cx, process};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

const LATER: CommandId = CommandId::new(256);

fn later() -> Command {
    Command::new(LATER, ())
}

fn done(outcome: Outcome) -> Option<u64> {
    match outcome {
        Outcome::Done(payload) => payload.as_u64(),
        _ => None,
    }
}

fn number(payload: &Payload) -> u64 {
    payload.as_u64().unwrap_or_default()
}

// pins: A3, A4
#[test]
fn a_receive_beside_the_answer_leaves_the_answer() {
    let mut task = ByHand::new(process(async |cx: Cx<u64>| {
        let mut call = pin!(cx.call(later()));
        assert!(poll!(&mut call).is_pending());
        let mut receive = pin!(cx.recv());
        let mut selective = pin!(cx.recv_where(|_| true));
        let answer = poll_fn(|context| {
            assert!(receive.as_mut().poll(context).is_pending());
            assert!(selective.as_mut().poll(context).is_pending());
            assert_eq!(cx.try_recv(), None);
            call.as_mut().poll(context)
        });
        Ok(answer.await?)
    }));
    let asked = task.step().unwrap().yields[0];
    task.answer(asked, 7_u64);
    assert_eq!(done(task.step().unwrap().outcome), Some(7));
}

// pins: A4
#[test]
fn an_answer_that_is_not_taken_in_its_step_is_there_later() {
    let mut task = ByHand::new(process(async |cx: Cx<u64>| {
        let mut call = pin!(cx.call(later()));
        assert!(poll!(&mut call).is_pending());
        let mut sum = 0;
        for _ in 0..2 {
            cx.yield_now().await;
            while let Some(number) = cx.try_recv() {
                sum += number;
            }
        }
        Ok(sum + number(&call.await?))
    }));
    let asked = task.step().unwrap().yields[0];
    task.answer(asked, 7_u64);
    assert!(matches!(task.step().unwrap().outcome, Outcome::YieldNow));
    task.send(20_u64);
    assert_eq!(done(task.step().unwrap().outcome), Some(27));
}

// pins: A4
#[test]
fn messages_that_come_with_the_answer_are_received() {
    for is_first in [true, false] {
        let mut task = ByHand::new(process(async |cx: Cx<u64>| {
            let mut sum = number(&cx.call(later()).await?);
            for _ in 0..2 {
                sum += cx.recv().await.ok_or("cancelled")?;
                sum += number(&cx.call(later()).await?);
            }
            Ok(sum)
        }));
        let asked = task.step().unwrap().yields[0];
        if is_first {
            task.send(10_u64);
            task.answer(asked, 1_u64);
        } else {
            task.answer(asked, 1_u64);
            task.send(10_u64);
        }
        let asked = task.step().unwrap().yields[0];
        task.send(20_u64);
        assert!(matches!(task.step().unwrap().outcome, Outcome::Wait));
        task.answer(asked, 2_u64);
        let asked = task.step().unwrap().yields[0];
        task.answer(asked, 4_u64);
        assert_eq!(done(task.step().unwrap().outcome), Some(37));
    }
}

// pins: A4
#[test]
fn a_wait_that_is_dropped_with_its_answer_leaves_none() {
    let mut task = ByHand::new(process(async |cx: Cx| {
        let mut first = Box::pin(cx.call(later()));
        assert!(poll!(&mut first).is_pending());
        cx.yield_now().await;
        drop(first);
        Ok(cx.call(later()).await?)
    }));
    let asked = task.step().unwrap().yields[0];
    task.answer(asked, 1_u64);
    let next = task.step().unwrap();
    assert!(next.cancelled.is_empty(), "the command has been answered");
    assert!(task.events.is_empty(), "no answer is left");
    assert_ne!(next.yields[0], asked);
    task.answer(next.yields[0], 2_u64);
    assert_eq!(done(task.step().unwrap().outcome), Some(2));
}

// pins: A4, A8
#[test]
fn a_wait_that_gets_another_waker_wakes_that_one() {
    let woken = Arc::<Woken>::default();
    let (its, woken_by) = (Arc::clone(&woken), Arc::clone(&woken));
    let mut task = ByHand::new(process(async move |cx: Cx| {
        let mut call = pin!(cx.call(later()));
        assert!(poll!(&mut call).is_pending());
        let waker = Waker::from(its);
        let mut poll = || call.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(poll().is_pending());
        // Not polled again before it is woken.
        // Ordering: SeqCst, as in `Woken`; the test has a single thread.
        let has_woken = || woken_by.0.load(Ordering::SeqCst) == 1;
        poll_fn(|_| {
            if has_woken() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
        Ok(poll_fn(|_| poll()).await?)
    }));
    let asked = task.step().unwrap().yields[0];
    task.answer(asked, 7_u64);
    assert_eq!(done(task.step().unwrap().outcome), Some(7));
    // Ordering: SeqCst, as in `Woken`; the test has a single thread.
    assert_eq!(woken.0.load(Ordering::SeqCst), 1);
}
