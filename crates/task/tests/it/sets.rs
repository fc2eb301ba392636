//! Sets of children, which may fail.

use crate::support::{exit, number, start, until};
use ganger_proc_api::{BoxError, CancelReason, ExitCause, ExitReason, SubmitErrorKind};
use ganger_task::{Cx, TaskSet};
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The number of children that run, and the most so far.
#[derive(Default)]
struct AtOnce {
    now: AtomicUsize,
    most: AtomicUsize,
}

struct Runs(Arc<AtOnce>);

impl Runs {
    fn enter(at_once: &Arc<AtOnce>) -> Self {
        // Ordering: Relaxed: the limit orders the children.
        let now = at_once.now.fetch_add(1, Ordering::Relaxed) + 1;
        at_once.most.fetch_max(now, Ordering::Relaxed);
        Self(Arc::clone(at_once))
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        // Ordering: Relaxed: the limit orders the children.
        self.0.now.fetch_sub(1, Ordering::Relaxed);
    }
}

// pins: A11
#[test]
fn failures_of_all_kinds_end_neither_the_others_nor_the_scope() {
    let scheduler = start(2);
    let task = scheduler.spawn(async |cx: Cx| {
        let other = cx.scope(async |scope| {
            let set = scope.task_set();
            let fails = set.spawn(async |_| Err("no luck".into()))?;
            let panics = set.spawn(async |_| panic!("on purpose"))?;
            let terminated = set.spawn(async |_| pending().await)?;
            let fine = set.spawn(async |_| Ok(7_u64))?;
            cx.terminate(set.pid(terminated).ok_or("it runs")?)?;
            let other = scope.spawn(async |_| Ok("another child"))?;

            let mut ends = Vec::new();
            while let Some((id, result)) = set.next_with_id().await {
                ends.push((id, result));
            }
            ends.sort_by_key(|(id, _)| *id);
            let ids: Vec<_> = ends.iter().map(|(id, _)| *id).collect();
            assert_eq!(ids, [fails, panics, terminated, fine]);
            let mut ends = ends.into_iter().map(|(_, result)| result);

            let error = ends.next().unwrap().unwrap_err();
            assert_eq!(error.cause, ExitCause::Failed("no luck".into()));
            assert_eq!(error.source.unwrap().to_string(), "no luck");
            assert!(error.pid.is_some() && error.id == fails);
            let error = ends.next().unwrap().unwrap_err();
            assert_eq!(error.cause, ExitCause::Panicked("on purpose".into()));
            let error = ends.next().unwrap().unwrap_err();
            assert_eq!(error.cause, ExitCause::Terminated);
            assert_eq!(ends.next().unwrap().unwrap(), 7);
            assert!(set.is_empty());
            Ok(other.await?)
        });
        other.await
    });
    assert_eq!(
        exit(task.unwrap()).take::<String>().unwrap(),
        "another child"
    );
}

// pins: A11
#[test]
fn no_more_run_at_once_than_the_limit_says_and_all_run() {
    let scheduler = start(4);
    let at_once = Arc::new(AtOnce::default());
    let its = Arc::clone(&at_once);
    let task = scheduler.spawn(async move |cx: Cx| {
        cx.scope(async |scope| {
            let set = scope.task_set().limit(3);
            for number in 0..50_u64 {
                let at_once = Arc::clone(&its);
                set.spawn(async move |cx| {
                    let _runs = Runs::enter(&at_once);
                    cx.yield_now().await;
                    // Ordering: Relaxed, here and below: the numbers alone count.
                    while number < 3 && at_once.most.load(Ordering::Relaxed) < 3 {
                        cx.yield_now().await;
                    }
                    if number % 2 == 1 {
                        return Err("odd".into());
                    }
                    Ok(number)
                })?;
            }
            assert_eq!(set.len(), 50);
            let (mut sum, mut failed) = (0, 0);
            while let Some(result) = set.next().await {
                match result {
                    Ok(number) => sum += number,
                    Err(_) => failed += 1,
                }
            }
            assert_eq!(failed, 25);
            Ok(sum)
        })
        .await
    });
    assert_eq!(number(task.unwrap()), (0..50).step_by(2).sum::<u64>());
    assert_eq!(at_once.most.load(Ordering::Relaxed), 3);
}

// pins: A11
#[test]
fn one_child_is_cancelled_or_all_are_and_those_that_wait_do_not_start() {
    let scheduler = start(2);
    let task = scheduler.spawn(async |cx: Cx| {
        cx.scope(async |scope| {
            let set: TaskSet<u64> = scope.task_set().limit(2);
            let stays = async |cx: Cx| {
                cx.until_cancelled(pending::<()>()).await?;
                Ok(0)
            };
            let [runs, _, waits, _, _] = [(); 5].map(|()| set.spawn(stays));
            let (runs, waits) = (runs?, waits?);
            assert!(set.pid(waits).is_none() && set.pid(runs).is_some());

            set.cancel(waits);
            let (id, end) = set.next_with_id().await.ok_or("one has ended")?;
            let error = end.unwrap_err();
            assert!(id == waits && error.pid.is_none(), "{error}");
            assert!(matches!(error.cause, ExitCause::Cancelled(_)), "{error}");
            set.cancel(waits);
            assert_eq!(set.len(), 4);

            // The next child takes its place.
            set.cancel(runs);
            let (id, end) = set.next_with_id().await.ok_or("one has ended")?;
            let error = end.unwrap_err();
            assert!(id == runs && error.pid.is_some(), "{error}");
            assert!(matches!(error.cause, ExitCause::Cancelled(_)), "{error}");

            set.cancel_all();
            let mut ended = 0;
            while let Some(end) = set.next().await {
                assert!(matches!(end.unwrap_err().cause, ExitCause::Cancelled(_)));
                ended += 1;
            }
            Ok(ended)
        })
        .await
    });
    assert_eq!(number(task.unwrap()), 3);
}

// pins: A11
#[test]
fn a_set_that_is_dropped_cancels_its_children_and_the_scope_waits_for_them() {
    let scheduler = start(2);
    let has_ended = Arc::new(AtomicBool::new(false));
    let its = Arc::clone(&has_ended);
    let task = scheduler.spawn(async move |cx: Cx| {
        cx.scope(async |scope| {
            let set = scope.task_set().limit(1);
            let ends = Arc::clone(&its);
            set.spawn(async move |cx| {
                cx.cancelled().await;
                cx.yield_now().await;
                // Ordering: Relaxed: the end of the process orders it.
                ends.store(true, Ordering::Relaxed);
                Ok(())
            })?;
            set.spawn(async |_| -> Result<(), BoxError> { panic!("it must not start") })?;
            Ok(())
        })
        .await?;
        // Ordering: Relaxed: the end of the process orders it.
        Ok(its.load(Ordering::Relaxed))
    });
    assert!(exit(task.unwrap()).take::<bool>().unwrap());
    let panics = scheduler.stats().total.panics;
    assert_eq!((panics, scheduler.stats().live), (0, 0));
}

// pins: A11
#[test]
fn a_cancellation_of_the_task_cancels_the_children_whose_ends_still_come() {
    let scheduler = start(2);
    let task = scheduler.spawn(async |cx: Cx| {
        cx.scope(async |scope| {
            let set = scope.task_set().limit(2);
            for _ in 0..5 {
                set.spawn(async |cx| {
                    cx.until_cancelled(pending::<()>()).await?;
                    Ok(())
                })?;
            }
            let mut ended = 0_u64;
            while let Some(end) = set.next().await {
                assert!(matches!(end.unwrap_err().cause, ExitCause::Cancelled(_)));
                ended += 1;
            }
            assert!(cx.is_cancelled());
            Ok(ended)
        })
        .await
    });
    let task = task.unwrap();
    until("the children run", || scheduler.stats().live == 3);
    scheduler.cancel(task.pid(), "enough").unwrap();
    assert_eq!(number(task), 5);
}

// pins: A11
#[test]
fn a_set_that_has_left_its_scope_knows_all_ends_and_starts_no_child() {
    let scheduler = start(1);
    let task = scheduler.spawn(async |cx: Cx| {
        let set = cx.scope(async |scope| {
            let set = scope.task_set().limit(1);
            set.spawn(async |_| Ok(7_u64))?;
            set.spawn(async |_| Ok(8))?;
            Ok(set)
        });
        let set = set.await?;
        let refused = set.spawn(async |_| Ok(9)).unwrap_err();
        assert!(
            matches!(refused.kind, SubmitErrorKind::Stopping),
            "{refused}"
        );
        let seven = set.next().await.ok_or("it has ended")??;
        let error = set.next().await.ok_or("it was not started")?.unwrap_err();
        assert!(matches!(
            error.cause,
            ExitCause::Cancelled(CancelReason::Requested(_))
        ));
        assert!(set.next().await.is_none());
        Ok(seven)
    });
    assert_eq!(number(task.unwrap()), 7);
}

/// Drops the scope in the middle, but not its set.
// pins: A11
#[test]
fn a_scope_that_is_dropped_ends_the_children_of_its_sets() {
    let scheduler = start(2);
    let task = scheduler.spawn(async |cx: Cx| {
        let mut kept = None;
        {
            let keeps = &mut kept;
            let scope = cx.scope(async |scope| {
                let set = keeps.insert(scope.task_set::<()>());
                set.spawn(async |_| pending().await)?;
                pending::<Result<(), BoxError>>().await
            });
            let mut scope = std::pin::pin!(scope);
            assert!(futures_util::poll!(&mut scope).is_pending());
        }
        let set = kept.ok_or("there is a set")?;
        let error = set.next().await.ok_or("it has a child")?.unwrap_err();
        assert!(matches!(error.cause, ExitCause::Cancelled(_)), "{error}");
        Ok(set.is_empty())
    });
    let ExitReason::Done(is_empty) = exit(task.unwrap()) else {
        panic!("it has failed");
    };
    assert_eq!(is_empty.as_bool(), Some(true));
}
