//! Waits next to futures that are always ready, and wakers of dropped waits.

use crate::support::{ByHand, Stepped, number, start};
use ganger_proc_api::{BoxError, Event, Outcome};
use ganger_sched::Scheduler;
use ganger_task::{Cx, Either, WaitError, process};
use std::future::{poll_fn, ready};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

const TIME: Duration = Duration::from_millis(20);

/// Starts a scheduler with a single worker.
fn world() -> Scheduler {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    scheduler.start().unwrap();
    scheduler
}

/// Uses up the budget of each step.
async fn busy<M: 'static + Send>(cx: &Cx<M>) {
    loop {
        cx.consume_budget().await;
    }
}

// pins: A3, A6
#[test]
fn a_time_is_over_beside_a_future_that_uses_up_the_budget() {
    let scheduler = world();
    let task = scheduler.spawn(async |cx: Cx<u64>| {
        let over = cx.timeout(TIME, busy(&cx)).await;
        Ok(u64::from(matches!(over, Err(WaitError::TimedOut))))
    });
    let task = task.unwrap();
    assert_eq!(number(task), 1);
}

// pins: A3, A6
#[test]
fn a_time_is_over_beside_waits_that_are_ready_with_values() {
    let scheduler = world();
    let task = scheduler.spawn(async |cx: Cx<u64>| {
        let work = async {
            loop {
                if cx.until_cancelled(ready(())).await.is_err() {
                    return;
                }
            }
        };
        let over = cx.timeout(TIME, work).await;
        Ok(u64::from(matches!(over, Err(WaitError::TimedOut))))
    });
    let task = task.unwrap();
    assert_eq!(number(task), 1);
}

/// Joins a busy future with a sleep, a message and an end, in both orders.
// pins: A3, A6
#[test]
fn what_is_joined_with_a_busy_future_goes_on() {
    let scheduler = world();
    for order in [false, true] {
        let task = scheduler.spawn(async move |cx: Cx<u64>| {
            let is_over = AtomicBool::new(false);
            let busy = async {
                // Ordering: Relaxed: a single task uses the flag.
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
                // Ordering: Relaxed: a single task uses the flag.
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
        task.send(7).unwrap();
        assert_eq!(number(task), 7);
    }
}

/// Polls in a fixed order, as a combinator of another crate may.
// pins: A6
#[test]
fn a_wait_behind_a_busy_future_has_its_turn_in_the_next_step() {
    let mut task = ByHand::new(process(async |cx: Cx<u64>| {
        let mut busy = pin!(busy(&cx));
        let mut receives = pin!(async {
            let first = cx.recv().await;
            let second = cx.until_cancelled(cx.recv()).await;
            let third = cx.select((cx.recv(), std::future::pending::<()>())).await;
            (first, second, third)
        });
        let waited = poll_fn(|context| {
            assert!(busy.as_mut().poll(context).is_pending());
            receives.as_mut().poll(context)
        })
        .await;
        drop(waited);
        Ok(())
    }));
    (0..3_u64).for_each(|it| task.send(it));
    let mut steps = 0;
    while !matches!(task.step().unwrap().outcome, Outcome::Done(_)) {
        steps += 1;
        assert!(steps < 10, "a wait has no turn");
    }
}

/// Begins waits for a command or an end after the cancellation.
// pins: A5, A6
#[test]
fn a_wait_that_begins_in_a_cancelled_task_is_over_behind_a_busy_future() {
    let scheduler = start(1);
    let other = scheduler.spawn(async |cx: Cx<u64>| Ok(cx.recv().await.unwrap_or(0)));
    let other = other.unwrap();
    let pid = other.pid();
    for is_monitor in [false, true] {
        let task = scheduler.spawn(async move |cx: Cx<u64>| {
            let mut busy = pin!(busy(&cx));
            let mut wait = pin!(async {
                cx.cancelled().await;
                match is_monitor {
                    false => cx.sleep(TIME).await.is_err(),
                    true => cx.monitor(pid).await.is_err(),
                }
            });
            let is_over = poll_fn(|context| {
                assert!(busy.as_mut().poll(context).is_pending());
                wait.as_mut().poll(context)
            });
            Ok(u64::from(is_over.await))
        });
        let task = task.unwrap();
        scheduler.cancel(task.pid(), "enough").unwrap();
        assert_eq!(number(task), 1);
    }
    other.send(7).unwrap();
    assert_eq!(number(other), 7);
}

// pins: A5
#[test]
fn a_cancelled_task_polls_no_more_of_what_it_waited_for() {
    let polls = Arc::new(AtomicUsize::new(0));
    let its_polls = Arc::clone(&polls);
    let mut task = ByHand::new(process(async move |cx: Cx<u64>| {
        let mut is_over = false;
        while !is_over {
            let take = async || {
                // Ordering: Relaxed: the test has a single thread.
                its_polls.fetch_add(1, Ordering::Relaxed);
            };
            is_over = cx.until_cancelled(take()).await.is_err();
            is_over &= cx.timeout(TIME, take()).await.is_err();
        }
        Ok(())
    }));
    assert!(matches!(task.step().unwrap().outcome, Outcome::StepAgain));
    // Ordering: Relaxed: the test has a single thread.
    let before = polls.load(Ordering::Relaxed);
    task.events.push_back(Event::Cancel("enough".into()));
    assert!(matches!(task.step().unwrap().outcome, Outcome::Done(_)));
    // Ordering: Relaxed: the test has a single thread.
    assert_eq!(polls.load(Ordering::Relaxed), before);
}

/// The rounds of a test: in about half of them the first future wins.
const TIMES: usize = 10_000;

#[track_caller]
fn about_half(first: usize) {
    assert!((4 * TIMES..=6 * TIMES).contains(&(10 * first)), "{first}");
}

// pins: A6
#[test]
fn each_of_two_that_are_ready_is_as_often_the_first() {
    let firsts = Arc::new(AtomicUsize::new(0));
    let its_firsts = Arc::clone(&firsts);
    let mut task = ByHand::new(process(async move |cx: Cx<u64>| {
        let mut inner = 0;
        for _ in 0..TIMES {
            // Ordering: Relaxed: the test has a single thread.
            match cx.select((ready(()), ready(()))).await {
                Either::A(()) => its_firsts.fetch_add(1, Ordering::Relaxed),
                Either::B(()) => 0,
            };
            // If the two selects took turns with each other, each would always have the same
            // winner.
            let other = cx.select((ready(()), ready(()))).await;
            inner += usize::from(other == Either::A(()));
        }
        about_half(inner);
        Ok(())
    }));
    let mut steps = 0;
    loop {
        match task.step().unwrap().outcome {
            Outcome::Done(_) => break,
            Outcome::StepAgain => steps += 1,
            other => panic!("{other:?}"),
        }
    }
    // Ordering: Relaxed: the test has a single thread.
    about_half(firsts.load(Ordering::Relaxed));
    // A ready select counts as a ready wait.
    assert_eq!(steps, 2 * TIMES / 256);
}

// pins: A6
#[test]
fn a_full_mailbox_and_what_is_always_ready_win_as_often() {
    let messages = Arc::new(AtomicUsize::new(0));
    let its_messages = Arc::clone(&messages);
    let mut task = ByHand::new(process(async move |cx: Cx<usize>| {
        for _ in 0..TIMES {
            if let Either::A(Some(_)) = cx.select((cx.recv(), ready(()))).await {
                // Ordering: Relaxed: the test has a single thread.
                its_messages.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }));
    (0..TIMES).for_each(|it| task.send(it));
    while let Stepped {
        outcome: Outcome::StepAgain,
        ..
    } = task.step().unwrap()
    {}
    // Ordering: Relaxed: the test has a single thread.
    about_half(messages.load(Ordering::Relaxed));
}

struct Other;

impl Wake for Other {
    fn wake(self: Arc<Self>) {}
}

/// Checks that a combinator's waker stays no longer than the wait polled with it.
// pins: A4, A9
#[test]
fn a_wait_that_is_dropped_leaves_no_waker() {
    let mut task = ByHand::new(process(async |cx: Cx<u64>| {
        let other = Arc::new(Other);
        let waker = Waker::from(Arc::clone(&other));
        let mut context = Context::from_waker(&waker);
        let own = Arc::strong_count(&other);
        let mut kept = pin!(cx.cancelled());
        assert!(kept.as_mut().poll(&mut context).is_pending());
        for _ in 0..100 {
            let waits: [Pin<Box<dyn Future<Output = ()> + Send>>; 4] = [
                Box::pin(async { _ = cx.recv().await }),
                Box::pin(async { _ = cx.recv_where(|_| true).await }),
                Box::pin(async { _ = cx.cancelled().await }),
                Box::pin(async { _ = cx.until_cancelled(std::future::pending::<()>()).await }),
            ];
            for mut wait in waits {
                for _ in 0..2 {
                    assert!(wait.as_mut().poll(&mut context).is_pending());
                    assert_eq!(Arc::strong_count(&other), own + 2);
                }
            }
            assert_eq!(Arc::strong_count(&other), own + 1);
        }
        Ok(())
    }));
    assert!(matches!(task.step().unwrap().outcome, Outcome::Done(_)));
}
