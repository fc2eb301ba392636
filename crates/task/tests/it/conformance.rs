//! A task as an executor: the threads of wakes, and misbehaving futures.

use crate::support::{PATIENCE, exit, number, start, until};
use ganger_proc_api::{BoxError, ExitReason};
use ganger_sched::{ProcessState, Scheduler};
use ganger_task::Cx;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Waker};

/// Waits until the test has woken it: is pending at first, and gives its waker away.
async fn until_woken(wakers: &Sender<Waker>) {
    let mut is_first = true;
    poll_fn(|context| {
        if std::mem::take(&mut is_first) {
            wakers.send(context.waker().clone()).unwrap();
            return Poll::Pending;
        }
        Poll::Ready(())
    })
    .await;
}

fn is_idle(scheduler: &Scheduler, pid: ganger_proc_api::Pid) -> bool {
    let process = scheduler.process(pid);
    process.is_some_and(|it| it.state == ProcessState::Idle)
}

// pins: A8
#[test]
fn a_task_is_woken_from_any_thread_and_by_each_way_of_waking() {
    let scheduler = start(2);
    let (wakers, woken) = channel();
    let task = scheduler.spawn(async move |_: Cx| {
        for _ in 0..300 {
            until_woken(&wakers).await;
        }
        Ok(300_u64)
    });
    for (turn, waker) in woken.iter().enumerate() {
        match turn % 3 {
            0 => waker.wake(),
            1 => waker.wake_by_ref(),
            _ => std::thread::spawn(move || waker.wake()).join().unwrap(),
        }
    }
    assert_eq!(number(task.unwrap()), 300);
}

// pins: A8
#[test]
fn a_wake_inside_of_the_poll_causes_another_one() {
    let scheduler = start(1);
    let task = scheduler.spawn(async |_: Cx| {
        let mut polls = 0_u64;
        let number = poll_fn(|context| {
            polls += 1;
            context.waker().wake_by_ref();
            match polls {
                100 => Poll::Ready(polls),
                _ => Poll::Pending,
            }
        });
        Ok(number.await)
    });
    assert_eq!(number(task.unwrap()), 100);
}

/// Wakes the task from many wakers while a single poll lasts.
// pins: A8
#[test]
fn wakes_of_a_task_that_is_polled_are_one_more_poll() {
    const WAKES: usize = 100_000;
    let scheduler = start(1);
    let (wakers, woken) = channel();
    let barrier = Arc::new(Barrier::new(2));
    let its_barrier = Arc::clone(&barrier);
    let task = scheduler.spawn(async move |cx: Cx<u64>| {
        let mut polls = 0_u64;
        let count = poll_fn(|context| {
            polls += 1;
            if polls == 1 {
                wakers.send(context.waker().clone()).unwrap();
                its_barrier.wait();
                return Poll::Pending;
            }
            match cx.try_recv() {
                Some(_) => Poll::Ready(polls),
                None => Poll::Pending,
            }
        });
        Ok(count.await)
    });
    let task = task.unwrap();
    let waker = woken.recv_timeout(PATIENCE).unwrap();
    (0..WAKES).for_each(|_| waker.wake_by_ref());
    barrier.wait();
    until("it waits", || is_idle(&scheduler, task.pid()));
    task.send(1).unwrap();
    assert_eq!(number(task), 3);
}

/// Its drop wakes.
struct WakesAtDrop(Waker);

impl Drop for WakesAtDrop {
    fn drop(&mut self) {
        self.0.wake_by_ref();
    }
}

// pins: A8
#[test]
fn wakes_after_the_end_and_from_destructors_are_harmless() {
    let scheduler = start(1);
    let (wakers, woken) = channel();
    let held = Arc::new(());
    let its_held = Arc::clone(&held);
    let task = scheduler.spawn(async move |_: Cx| {
        let _held = its_held;
        let waker = poll_fn(|context| Poll::Ready(context.waker().clone())).await;
        let _wakes = WakesAtDrop(waker.clone());
        wakers.send(waker)?;
        Ok(7_u64)
    });
    assert_eq!(number(task.unwrap()), 7);
    let waker = woken.recv().unwrap();
    for _ in 0..3 {
        waker.wake_by_ref();
    }
    // The waker keeps a few bytes, and not the future.
    assert_eq!(Arc::strong_count(&held), 1);
    assert!(waker.will_wake(&waker.clone()));
    let other = scheduler.spawn(async |_: Cx| Ok(8_u64)).unwrap();
    assert_eq!(number(other), 8);
    drop(scheduler);
    waker.wake();
}

// pins: A8, P8
#[test]
fn panics_in_a_poll_and_in_destructors_end_the_task_alone() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("on purpose: destructor");
        }
    }
    struct Ends(#[allow(dead_code, reason = "it is dropped")] Bomb);
    impl Future for Ends {
        type Output = Result<u64, BoxError>;

        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
            Poll::Ready(Ok(9))
        }
    }
    let scheduler = start(1);
    let polled = scheduler.spawn(async |_: Cx| -> Result<(), BoxError> {
        poll_fn(|_| -> Poll<()> { panic!("on purpose: poll") }).await;
        Ok(())
    });
    assert!(
        matches!(exit(polled.unwrap()), ExitReason::Panicked(it) if it.contains("on purpose: poll"))
    );
    let ended = scheduler.spawn(async |cx: Cx<u64>| {
        let _bomb = Bomb;
        cx.recv().await;
        Ok(7_u64)
    });
    let ended = ended.unwrap();
    scheduler.terminate(ended.pid()).unwrap();
    assert!(matches!(exit(ended), ExitReason::Terminated));
    // A future is dropped when its result is there.
    let done = scheduler.spawn(|_: Cx| Ends(Bomb));
    assert_eq!(number(done.unwrap()), 9);
}

/// Calls a waker that panics, as a combinator's might.
// pins: A8, P8
#[test]
fn a_waker_that_panics_ends_the_task_alone() {
    struct Panics;
    impl std::task::Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("on purpose: waker");
        }
    }
    let scheduler = start(1);
    let task = scheduler.spawn(async |cx: Cx<u64>| {
        let waker = Waker::from(Arc::new(Panics));
        let mut recv = cx.recv();
        poll_fn(|_| {
            let mut context = Context::from_waker(&waker);
            Pin::new(&mut recv).poll(&mut context)
        })
        .await;
        Ok(0_u64)
    });
    let task = task.unwrap();
    until("it waits", || is_idle(&scheduler, task.pid()));
    task.send(1).unwrap();
    assert!(matches!(exit(task), ExitReason::Panicked(it) if it.contains("waker")));
    let other = scheduler.spawn(async |_: Cx| Ok(8_u64)).unwrap();
    assert_eq!(number(other), 8);
}

// pins: A8
#[test]
fn a_wait_outside_of_its_task_panics_and_says_so() {
    let scheduler = start(1);
    let (given, taken) = channel();
    let first = scheduler.spawn(async move |cx: Cx<u64>| {
        given.send(cx.clone())?;
        cx.recv().await;
        Ok(7_u64)
    });
    let (first, cx) = (first.unwrap(), taken.recv_timeout(PATIENCE).unwrap());
    let its_cx = cx.clone();
    let second = scheduler.spawn(async move |_: Cx<u64>| {
        its_cx.recv().await;
        Ok(8_u64)
    });
    let panicked = exit(second.unwrap());
    assert!(matches!(panicked, ExitReason::Panicked(it) if it.contains("outside of that task")));
    let outside = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| cx.try_recv()));
    assert!(outside.is_err());
    let nested = scheduler.spawn(async |cx: Cx<u64>| {
        cx.recv_where(|_| cx.try_recv().is_some()).await;
        Ok(9_u64)
    });
    let nested = nested.unwrap();
    nested.send(1).unwrap();
    let panicked = exit(nested);
    assert!(matches!(panicked, ExitReason::Panicked(it) if it.contains("predicate")));
    first.send(1).unwrap();
    assert_eq!(number(first), 7);
}
