//! Futures of tokio in tasks, with a runtime that other threads drive.

use crate::support::{PATIENCE, result};
use ganger_proc_api::{BoxError, ExitReason};
use ganger_sched::Scheduler;
use ganger_task::Cx;
use ganger_tokio::{RuntimeGone, in_tokio};
use std::time::Duration;
use tokio::runtime::{Builder, Handle};

const WHILE: Duration = Duration::from_millis(1);

/// Starts a scheduler without a driver.
fn start() -> Scheduler {
    Scheduler::builder().workers(1).start().unwrap()
}

// pins: A8
#[test]
fn timers_and_tasks_of_tokio_work_in_a_runtime_that_others_drive() {
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .unwrap();
    let handle = runtime.handle().clone();
    let scheduler = start();
    let task = scheduler.spawn(async move |cx: Cx<u64>| {
        let inside = async {
            tokio::time::sleep(WHILE).await;
            let late = tokio::time::timeout(WHILE, cx.recv()).await;
            assert!(late.is_err());
            Ok::<_, BoxError>(tokio::spawn(async { 7 }).await?)
        };
        let number = cx.until_cancelled(in_tokio(&handle, inside)).await???;
        assert!(Handle::try_current().is_err());
        Ok(number)
    });
    assert_eq!(result(task.unwrap()).as_u64(), Some(7));
}

// pins: A8
#[test]
fn a_runtime_that_is_gone_is_refused_before_the_future_is_polled() {
    for multi in [false, true] {
        let runtime = if multi {
            Builder::new_multi_thread()
                .worker_threads(1)
                .build()
                .unwrap()
        } else {
            Builder::new_current_thread().build().unwrap()
        };
        let handle = runtime.handle().clone();
        runtime.shutdown_background();
        let scheduler = start();
        let task = scheduler.spawn(async move |_: Cx| {
            let inside = async { unreachable!("the future is polled") };
            in_tokio(&handle, inside).await?;
            Ok(())
        });
        let failed = task.unwrap().wait_timeout(PATIENCE).unwrap();
        assert!(matches!(failed, ExitReason::Failed(it) if it.is::<RuntimeGone>()));
    }
}

/// Waits for a runtime that nothing drives until the test does.
// pins: A5, A8
#[test]
fn a_runtime_that_nothing_drives_is_waited_for_until_the_task_is_cancelled() {
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let handle = runtime.handle().clone();
    let scheduler = start();
    let task = scheduler.spawn(async move |cx: Cx| {
        cx.until_cancelled(in_tokio(&handle, async {})).await??;
        Ok(())
    });
    let task = task.unwrap();
    scheduler.cancel(task.pid(), "enough").unwrap();
    let ended = task.wait_timeout(PATIENCE).unwrap();
    assert!(matches!(ended, ExitReason::Cancelled(_)));
    let handle = runtime.handle().clone();
    let task = scheduler.spawn(async move |_: Cx| {
        let slept = async { tokio::time::sleep(WHILE).await };
        in_tokio(&handle, slept).await?;
        Ok(1_u64)
    });
    assert_eq!(
        runtime
            .block_on(async { task.unwrap().await })
            .into_result()
            .unwrap()
            .as_u64(),
        Some(1)
    );
}
