//! Waits next to futures that are always ready, in every order of moves, among other processes.

use ganger_proc_api::BoxError;
use ganger_sched::ProcessHandle;
use ganger_sim::{Rt, Sim};
use ganger_task::{Cx, Either, WaitError};
use std::future::{poll_fn, ready};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A turn takes a microsecond.
const TIME: Duration = Duration::from_micros(50);

/// A wait without a turn fails the run after this many moves.
const MOVES: u64 = 20_000;

fn check(test: impl Fn(&Rt<'_>)) {
    let some = ganger_sim::Faults::some();
    Sim::new(0)
        .faults(some)
        .max_moves(MOVES)
        .check_seeds(100, test);
}

/// Uses up the budget of each step.
async fn busy<M: 'static + Send>(cx: &Cx<M>) {
    loop {
        cx.consume_budget().await;
    }
}

fn number<M>(rt: &Rt<'_>, task: ProcessHandle<M>) -> u64 {
    rt.wait(task).into_result().unwrap().as_u64().unwrap()
}

// pins: A3, A6
#[test]
fn a_time_is_over_beside_what_is_always_ready() {
    check(|rt| {
        let spends = rt.spawn(async |cx: Cx<u64>| {
            let over = cx.timeout(TIME, busy(&cx)).await;
            Ok(u64::from(matches!(over, Err(WaitError::TimedOut))))
        });
        let ready = rt.spawn(async |cx: Cx<u64>| {
            let work = async { while cx.until_cancelled(ready(())).await.is_ok() {} };
            let over = cx.timeout(TIME, work).await;
            Ok(u64::from(matches!(over, Err(WaitError::TimedOut))))
        });
        assert_eq!(number(rt, spends.unwrap()), 1);
        assert_eq!(number(rt, ready.unwrap()), 1);
    });
}

/// Joins a busy future in both orders, with a sleep, a message and an end.
// pins: A3, A6
#[test]
fn what_is_joined_with_a_busy_future_goes_on() {
    check(|rt| {
        let order = rt.choose(2) == 0;
        let task = rt.spawn(async move |cx: Cx<u64>| {
            let is_over = AtomicBool::new(false);
            let busy = async {
                // Ordering: Relaxed, for both accesses: a single task.
                while !is_over.load(Ordering::Relaxed) {
                    cx.consume_budget().await;
                }
            };
            let waits = async {
                cx.sleep(TIME).await?;
                let number = cx.recv().await.ok_or("cancelled")?;
                let child = async |cx: Cx<u64>| Ok(cx.recv().await.unwrap_or(0));
                let (child, end) = cx.monitored(|spawner| spawner.spawn(child))?;
                child.send(number)?;
                end.await?;
                is_over.store(true, Ordering::Relaxed);
                Ok::<_, BoxError>(number)
            };
            if order {
                cx.join((busy, waits)).await.1
            } else {
                cx.join((waits, busy)).await.0
            }
        });
        let task = task.unwrap();
        let address = task.address().clone();
        let sends = rt.spawn(async move |cx: Cx<u64>| {
            cx.sleep(TIME / 2).await?;
            address.send(7)?;
            Ok(0_u64)
        });
        assert_eq!(number(rt, task), 7);
        assert_eq!(number(rt, sends.unwrap()), 0);
    });
}

/// Begins a wait after the cancellation, behind a future that is polled in a fixed order.
// pins: A5, A6
#[test]
fn a_wait_that_begins_in_a_cancelled_task_is_over_behind_a_busy_future() {
    check(|rt| {
        let task = rt.spawn(async |cx: Cx<u64>| {
            let mut busy = pin!(busy(&cx));
            let mut wait = pin!(async {
                cx.cancelled().await;
                cx.sleep(TIME).await.is_err()
            });
            let is_over = poll_fn(|context| {
                assert!(busy.as_mut().poll(context).is_pending());
                wait.as_mut().poll(context)
            });
            Ok(u64::from(is_over.await))
        });
        let task = task.unwrap();
        let pid = task.pid();
        let cancels = rt.spawn(async move |cx: Cx<u64>| {
            cx.sleep(TIME).await?;
            cx.context().cancel(pid, "enough")?;
            Ok(0_u64)
        });
        assert_eq!(number(rt, task), 1);
        assert_eq!(number(rt, cancels.unwrap()), 0);
    });
}

/// Takes a message soon, in any order of the messages' arrival.
// pins: A6
#[test]
fn messages_are_taken_beside_what_is_always_ready() {
    const MESSAGES: u64 = 20;
    check(|rt| {
        let task = rt.spawn(async |cx: Cx<u64>| {
            let mut sum = 0;
            while sum < MESSAGES {
                if let Either::A(number) = cx.select((cx.recv(), ready(()))).await {
                    sum += number.ok_or("cancelled")?;
                }
            }
            Ok(sum)
        });
        let task = task.unwrap();
        let address = task.address().clone();
        let sends = rt.spawn(async move |cx: Cx<u64>| {
            for _ in 0..MESSAGES {
                address.send(1)?;
                cx.yield_now().await;
            }
            Ok(0_u64)
        });
        assert_eq!(number(rt, task), MESSAGES);
        assert_eq!(number(rt, sends.unwrap()), 0);
    });
}
