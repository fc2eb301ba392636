//! Reports of deadlocks behind an unpolled waiter.

use crate::deadlock::{next, plain, watched};
use ganger_lock::{DeadlockKind, Mutex, Notify, Semaphore};
use ganger_sched::ProcessHandle;
use ganger_task::Cx;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

// pins: K9
#[test]
fn a_place_in_the_line_that_is_not_polled_any_more_is_found() {
    let (scheduler, watch, reports) = watched();
    let permits = Arc::new(Semaphore::new(1));
    let own = Arc::clone(&permits);
    let task = scheduler.spawn(async move |_: Cx| {
        let held = own.acquire(1).await.unwrap();
        let mut place = pin!(own.acquire(1));
        assert!(poll_once(place.as_mut()).await.is_none());
        // The permit is now the unpolled place's, and the next waiter waits.
        drop(held);
        drop(own.acquire(1).await);
        Ok(())
    });
    let task: ProcessHandle = task.unwrap();
    let report = next(&reports, DeadlockKind::AllAsleep, &[&task]);
    assert!(plain(&report).contains("waits for"), "{report}");
    scheduler.terminate(task.pid()).unwrap();
    drop((task.wait(), watch));
    // The place has gone with its task, and the line goes on.
    assert_eq!(permits.available(), 1);
}

// pins: K9
#[test]
fn one_that_waits_behind_a_place_that_is_not_polled_is_found() {
    let (scheduler, watch, reports) = watched();
    let mutex = Arc::new(Mutex::new(0));
    let (begun, over) = (Arc::new(Semaphore::new(0)), Arc::new(Notify::new()));
    let held = mutex.try_lock().unwrap();
    let (own, own_begun, own_over) = (Arc::clone(&mutex), Arc::clone(&begun), Arc::clone(&over));
    let keeps = scheduler.spawn(async move |_: Cx| {
        let mut place = pin!(own.lock());
        assert!(poll_once(place.as_mut()).await.is_none());
        own_begun.add_permits(1);
        // Meanwhile the lock is free, and its wake went to the unpolled place.
        own_over.notified().await;
        drop(place.await);
        Ok(())
    });
    let keeps: ProcessHandle = keeps.unwrap();
    begun.acquire_blocking(1).unwrap().forget();
    let (own, own_begun) = (Arc::clone(&mutex), Arc::clone(&begun));
    let waits = scheduler.spawn(async move |_: Cx| {
        let mut lock = pin!(own.lock());
        assert!(poll_once(lock.as_mut()).await.is_none());
        own_begun.add_permits(1);
        drop(lock.await);
        Ok(())
    });
    let waits: ProcessHandle = waits.unwrap();
    begun.acquire_blocking(1).unwrap().forget();
    drop(held);
    let report = next(&reports, DeadlockKind::AllAsleep, &[&keeps, &waits]);
    assert!(plain(&report).contains("waits for the mutex"), "{report}");
    over.notify_one();
    assert!(keeps.wait().is_done() && waits.wait().is_done());
    drop(watch);
}

/// Polls once in the task that awaits this function.
async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}
