//! Scopes and their children.

use crate::support::{exit, number, start, until};
use ganger_proc_api::{BoxError, ExitReason, Message, Pid};
use ganger_sched::{ContextExt, Scheduler};
use ganger_task::{ChildError, ChildLost, Cx, Either, Scope};
use std::sync::{Arc, Mutex};

/// The events so far, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Starts a child that waits until it is cancelled, and then for a while more.
fn spawn_stays(scope: &Scope, log: &Log, name: &'static str) -> Result<Pid, BoxError> {
    let log = log.clone();
    let child = scope.spawn(async move |cx| {
        cx.cancelled().await;
        cx.yield_now().await;
        cx.yield_now().await;
        log.add(name);
        Ok(0_u64)
    });
    Ok(child?.pid())
}

fn live(scheduler: &Scheduler) -> usize {
    scheduler.stats().live
}

// pins: A7
#[test]
fn results_come_in_the_order_in_which_they_are_asked_for() {
    let scheduler = start(2);
    let task = scheduler.spawn(async |cx: Cx| {
        cx.scope(async |scope| {
            let children: Result<Vec<_>, _> = (0..10_u64)
                .map(|it| scope.spawn(async move |_: Cx| Ok(it)))
                .collect();
            let mut all = 0;
            for child in children? {
                all = all * 10 + child.await?;
            }
            Ok(all)
        })
        .await
    });
    assert_eq!(number(task.unwrap()), 123_456_789);
}

/// Ends the children in the order of the messages.
// pins: A7
#[test]
fn a_group_gives_results_as_they_come_and_then_none() {
    let scheduler = start(2);
    let task = scheduler.spawn(async |cx: Cx| {
        let all = cx.scope(async |scope| {
            let group = scope.group();
            let mut pids = Vec::new();
            for number in 0..5_u64 {
                pids.push(group.spawn(async move |cx| {
                    let cx = cx.accept_only::<u64>();
                    Ok(number + cx.recv().await.ok_or("cancelled")?)
                })?);
            }
            let mut all = Vec::new();
            for index in [3, 1, 4, 0, 2] {
                cx.send(pids[index], 10_u64)?;
                all.extend(group.next().await.transpose()?);
            }
            assert_eq!((group.next().await, group.running()), (None, 0));
            Ok(all)
        });
        all.await
    });
    let ExitReason::Done(all) = exit(task.unwrap()) else {
        panic!("it has not finished");
    };
    assert_eq!(all.downcast::<Vec<u64>>().unwrap(), [13, 11, 14, 10, 12]);
}

// pins: A7
#[test]
fn the_first_error_cancels_the_others_and_waits_for_them() {
    let scheduler = start(2);
    let log = Log::default();
    let its_log = log.clone();
    let task = scheduler.spawn(async move |cx: Cx| {
        let log = its_log;
        let failed = cx.scope(async |scope| {
            for name in ["one", "two", "three"] {
                spawn_stays(&scope, &log, name)?;
            }
            let fails = scope.spawn(async |_: Cx| -> Result<u64, BoxError> { Ok("x".parse()?) })?;
            fails.await?;
            log.add("the body has gone on");
            Ok(())
        });
        let error = failed.await.unwrap_err();
        log.add("the scope is over");
        let error = error.downcast::<ChildError>().unwrap();
        let source = error.source.as_ref().unwrap();
        assert!(source.is::<std::num::ParseIntError>(), "{source}");
        assert!(error.to_string().contains("invalid digit"), "{error}");
        Ok(1_u64)
    });
    assert_eq!(number(task.unwrap()), 1);
    let mut lines = log.lines();
    assert_eq!(lines.pop().as_deref(), Some("the scope is over"));
    lines.sort();
    assert_eq!(lines, ["one", "three", "two"]);
    assert_eq!(live(&scheduler), 0);
}

/// Awaits no child, in a body that would wait for ever.
// pins: A7
#[test]
fn a_panic_of_a_child_that_is_not_awaited_ends_the_body() {
    let scheduler = start(2);
    let task = scheduler.spawn(async |cx: Cx<u64>| {
        let failed = cx.scope(async |scope| {
            let panics = async |_: Cx| -> Result<(), BoxError> { panic!("on purpose: child") };
            drop(scope.spawn(panics)?);
            cx.recv().await;
            Ok(())
        });
        let error = failed.await.unwrap_err();
        assert!(error.to_string().contains("on purpose: child"), "{error}");
        Ok(1_u64)
    });
    assert_eq!(number(task.unwrap()), 1);
}

// pins: A7
#[test]
fn an_error_of_the_body_is_the_scope_s_and_cancels_the_children() {
    let scheduler = start(2);
    let log = Log::default();
    let its_log = log.clone();
    let task = scheduler.spawn(async move |cx: Cx| {
        let log = its_log;
        let failed = cx.scope(async |scope| -> Result<(), BoxError> {
            spawn_stays(&scope, &log, "child")?;
            Err("no luck".into())
        });
        assert_eq!(failed.await.unwrap_err().to_string(), "no luck");
        assert_eq!(log.lines(), ["child"]);
        Ok(1_u64)
    });
    assert_eq!(number(task.unwrap()), 1);
}

// pins: A7
#[test]
fn a_scope_waits_for_children_that_nothing_awaits() {
    let scheduler = start(2);
    let log = Log::default();
    let its_log = log.clone();
    let task = scheduler.spawn(async move |cx: Cx| {
        let log = its_log;
        cx.scope(async |scope| {
            for _ in 0..10 {
                let log = log.clone();
                drop(scope.spawn(async move |cx: Cx| {
                    cx.yield_now().await;
                    log.add("child");
                    Ok(())
                })?);
            }
            Ok(())
        })
        .await?;
        log.add("the scope is over");
        Ok(())
    });
    assert!(exit(task.unwrap()).is_done());
    let lines = log.lines();
    assert_eq!((lines.len(), &*lines[10]), (11, "the scope is over"));
}

// pins: A5, A7
#[test]
fn a_cancellation_of_the_parent_cancels_the_children_and_waits_for_them() {
    let scheduler = start(2);
    let log = Log::default();
    let its_log = log.clone();
    let task = scheduler.spawn(async move |cx: Cx<u64>| {
        let log = its_log;
        let result = cx.scope(async |scope| {
            spawn_stays(&scope, &log, "child")?;
            let waits = scope.spawn(async |cx| {
                cx.until_cancelled(std::future::pending::<()>()).await?;
                Ok(())
            })?;
            Ok(waits.await?)
        });
        let result = result.await;
        log.add("the scope is over");
        result
    });
    let task = task.unwrap();
    until("the children run", || live(&scheduler) == 3);
    scheduler.cancel(task.pid(), "enough").unwrap();
    let reason = exit(task);
    assert!(matches!(reason, ExitReason::Cancelled(_)), "{reason:?}");
    assert_eq!(log.lines(), ["child", "the scope is over"]);
    assert_eq!(live(&scheduler), 0);
}

// pins: A5, A7
#[test]
fn a_child_that_is_started_after_the_cancellation_is_cancelled_too() {
    let scheduler = start(2);
    let log = Log::default();
    let its_log = log.clone();
    let task = scheduler.spawn(async move |cx: Cx<u64>| {
        let log = its_log;
        cx.scope(async |scope| {
            cx.cancelled().await;
            spawn_stays(&scope, &log, "late")?;
            Ok(7_u64)
        })
        .await
    });
    let task = task.unwrap();
    scheduler.cancel(task.pid(), "enough").unwrap();
    assert_eq!(number(task), 7);
    assert_eq!(log.lines(), ["late"]);
}

// pins: A7
#[test]
fn a_scope_that_is_dropped_or_terminated_cancels_its_children() {
    let scheduler = start(2);
    let log = Log::default();
    let its_log = log.clone();
    let task = scheduler.spawn(async move |cx: Cx<u64>| {
        let log = its_log;
        let scope = cx.scope(async |scope| -> Result<(), BoxError> {
            spawn_stays(&scope, &log, "dropped")?;
            std::future::pending().await
        });
        assert!(matches!(
            cx.select((scope, cx.recv())).await,
            Either::B(Some(1))
        ));
        cx.scope(async |scope| -> Result<(), BoxError> {
            spawn_stays(&scope, &log, "terminated")?;
            std::future::pending().await
        })
        .await
    });
    let task = task.unwrap();
    until("the first child runs", || live(&scheduler) == 2);
    task.send(1).unwrap();
    until("the first child has ended", || log.lines() == ["dropped"]);
    until("the second child runs", || live(&scheduler) == 2);
    scheduler.terminate(task.pid()).unwrap();
    assert!(matches!(exit(task), ExitReason::Terminated));
    until("all have ended", || live(&scheduler) == 0);
    assert_eq!(log.lines(), ["dropped", "terminated"]);
}

// pins: A7
#[test]
fn a_scope_that_is_over_takes_no_children() {
    let scheduler = start(1);
    let task = scheduler.spawn(async |cx: Cx| {
        let scope = cx.scope(async |scope| Ok(scope)).await?;
        assert!(scope.spawn(async |_: Cx| Ok(())).is_err());
        let group = scope.group();
        assert!(group.spawn(async |_: Cx| Ok(7_u64)).is_err());
        assert_eq!(group.next().await, None);
        Ok(1_u64)
    });
    assert_eq!(number(task.unwrap()), 1);
}

// pins: A7
#[test]
fn scopes_are_within_one_another_and_beside_one_another() {
    let scheduler = start(2);
    let task = scheduler.spawn(async |cx: Cx| {
        let sum = async |base: u64| {
            cx.scope(async |scope| {
                let child = scope.spawn(async move |cx: Cx| {
                    let inner = cx
                        .scope(async |scope| Ok(scope.spawn(async move |_: Cx| Ok(base))?.await?));
                    Ok(inner.await? + 1)
                });
                Ok(child?.await?)
            })
            .await
        };
        let (a, b) = cx.join((sum(10), sum(30))).await;
        Ok(a? + b?)
    });
    assert_eq!(number(task.unwrap()), 42);
}

// pins: A7
#[test]
fn a_child_that_is_terminated_is_lost_and_ends_the_scope() {
    let scheduler = start(2);
    let task = scheduler.spawn(async |cx: Cx| {
        let lost = cx.scope(async |scope| {
            let child = scope.spawn(async |cx| {
                cx.recv().await;
                Ok(())
            })?;
            cx.terminate(child.pid())?;
            let lost = child.await;
            assert_eq!(lost, Err(ChildLost));
            Ok(lost?)
        });
        let error = lost.await.unwrap_err();
        assert!(error.is::<ChildError>(), "{error}");
        Ok(1_u64)
    });
    assert_eq!(number(task.unwrap()), 1);
}

/// Checks that the line of each scope wakes the scope: no other wake-up comes.
// pins: A7, A8
#[test]
fn scopes_work_inside_of_combinators() {
    let scheduler = start(2);
    let task = scheduler.spawn(async |cx: Cx| {
        let scope = || {
            cx.scope(async |scope| {
                drop(scope.spawn(async |cx: Cx| {
                    cx.yield_now().await;
                    Ok(())
                })?);
                Ok(1_u64)
            })
        };
        let all = futures_util::future::join_all((0..40).map(|_| scope())).await;
        let all: Result<Vec<_>, BoxError> = all.into_iter().collect();
        Ok(all?.into_iter().sum::<u64>())
    });
    assert_eq!(number(task.unwrap()), 40);
}

/// Checks that after the notice of the cancellation a scope waits for its children alone.
#[test]
fn scopes_inside_of_combinators_see_children_end_that_outlast_a_cancellation() {
    let scheduler = start(2);
    let task = scheduler.spawn(async |cx: Cx| {
        let scope = || {
            cx.scope(async |scope| {
                drop(scope.spawn(async |cx: Cx| {
                    cx.cancelled().await;
                    for _ in 0..5 {
                        cx.shield(cx.yield_now()).await;
                    }
                    Ok(())
                })?);
                Ok(1_u64)
            })
        };
        let all = futures_util::future::join_all((0..40).map(|_| scope())).await;
        let all: Result<Vec<_>, BoxError> = all.into_iter().collect();
        Ok(all?.into_iter().sum::<u64>())
    });
    let task = task.unwrap();
    scheduler.cancel(task.pid(), "enough").unwrap();
    assert_eq!(number(task), 40);
}

struct Trace(u64);

/// Returns the trace of a task, after a wait.
async fn trace<M: Send + 'static>(cx: Cx<M>) -> Result<u64, BoxError> {
    cx.yield_now().await;
    Ok(cx.inherited::<Trace>().map_or(0, |it| it.0))
}

// pins: P16
#[test]
fn children_of_tasks_inherit_values() {
    let scheduler = start(2);
    let parent = scheduler.spawner().with_inherited(Trace(7));
    let parent = parent.spawn(async |cx: Cx| {
        let before = cx
            .scope(async |scope| Ok(scope.spawn(trace::<Message>)?.await?))
            .await?;
        cx.yield_now().await;
        cx.set_inherited(Trace(before + 1));
        let (_, monitored) = cx.monitored(|spawner| spawner.spawn(trace::<Message>))?;
        monitored.await?;
        let after = cx
            .scope(async |scope| Ok(scope.spawn(trace::<Message>)?.await?))
            .await?;
        Ok(10 * before + after)
    });
    assert_eq!(number(parent.unwrap()), 78);
}
