//! The effects of a cancellation, a termination and a stop on a task.

use crate::support::{exit, number, start, until};
use ganger_proc_api::{BoxError, CancelReason, Command, CommandId, ExitReason, TypedCommand};
use ganger_sched::{ProcessState, Scheduler};
use ganger_task::{Cx, TaskExt, WaitError};
use std::future::pending;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

const NEVER: CommandId = CommandId::new(300);

struct Save;

impl TypedCommand for Save {
    type Answer = u64;
}

/// Starts a scheduler that never answers `NEVER`.
fn world() -> Scheduler {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let keep = |_: Command, completer| {
        std::mem::forget(completer);
        Ok(())
    };
    scheduler.register(NEVER, "never", keep).unwrap();
    scheduler
        .register_task(async |_: Cx, _: Save| Ok(5))
        .unwrap();
    scheduler.start().unwrap();
    scheduler
}

fn cancelled_in(body: impl AsyncWait) -> ExitReason {
    let scheduler = world();
    let task = scheduler.spawn(move |cx: Cx<u64>| body.wait(cx)).unwrap();
    let state = || scheduler.process(task.pid()).map(|it| it.state);
    until("it waits", || {
        matches!(state(), Some(ProcessState::Idle | ProcessState::Blocked))
    });
    scheduler.cancel(task.pid(), "enough").unwrap();
    exit(task)
}

/// A wait of a task.
trait AsyncWait: Send + 'static {
    fn wait(self, cx: Cx<u64>) -> impl Future<Output = Result<u64, BoxError>> + Send + 'static;
}

impl<F, Fut> AsyncWait for F
where
    F: FnOnce(Cx<u64>) -> Fut + Send + 'static,
    Fut: Future<Output = Result<u64, BoxError>> + Send + 'static,
{
    fn wait(self, cx: Cx<u64>) -> impl Future<Output = Result<u64, BoxError>> + Send + 'static {
        self(cx)
    }
}

fn is_cancelled(exit: &ExitReason) -> bool {
    matches!(exit, ExitReason::Cancelled(it) if *it == CancelReason::from("enough"))
}

// pins: A5
#[test]
fn a_cancellation_ends_each_kind_of_wait() {
    let got = cancelled_in(async |cx: Cx<u64>| Ok(cx.recv().await.unwrap_or(7)));
    assert!(matches!(got, ExitReason::Done(it) if it.as_u64() == Some(7)));
    let got = cancelled_in(async |cx: Cx<u64>| {
        let answer = cx.call(Command::new(NEVER, ())).await?;
        Ok(answer.as_u64().unwrap_or(0))
    });
    assert!(is_cancelled(&got), "{got:?}");
    let got = cancelled_in(async |cx: Cx<u64>| {
        cx.sleep(Duration::MAX).await?;
        Ok(0)
    });
    assert!(is_cancelled(&got), "{got:?}");
    let got = cancelled_in(async |cx: Cx<u64>| {
        cx.monitor(cx.pid()).await?;
        Ok(0)
    });
    assert!(is_cancelled(&got), "{got:?}");
    let got = cancelled_in(async |cx: Cx<u64>| {
        cx.until_cancelled(pending::<()>()).await?;
        Ok(0)
    });
    assert!(is_cancelled(&got), "{got:?}");
    let got = cancelled_in(async |cx: Cx<u64>| {
        cx.timeout(Duration::MAX, pending::<()>()).await?;
        Ok(0)
    });
    assert!(is_cancelled(&got), "{got:?}");
    let got = cancelled_in(async |cx: Cx<u64>| {
        assert_eq!(cx.cancelled().await, CancelReason::from("enough"));
        assert!(cx.is_cancelled());
        Ok(9)
    });
    assert!(matches!(got, ExitReason::Done(it) if it.as_u64() == Some(9)));
}

// pins: A5
#[test]
fn waits_after_a_cancellation_end_at_once_but_in_a_shield() {
    let got = cancelled_in(async |cx: Cx<u64>| {
        assert_eq!(cx.recv().await, None);
        assert_eq!(cx.recv().await, None);
        let refused = cx.command(Save).await;
        assert!(
            matches!(refused, Err(WaitError::Cancelled(_))),
            "{refused:?}"
        );
        let saved = cx.shield(async {
            cx.yield_now().await;
            cx.command(Save).await
        });
        let saved = saved.await?;
        assert_eq!(cx.recv().await, None);
        Ok(saved)
    });
    assert!(matches!(got, ExitReason::Done(it) if it.as_u64() == Some(5)));
}

// pins: A5
#[test]
fn a_shield_defers_a_cancellation_that_comes_inside_of_it() {
    let scheduler = world();
    let task = scheduler.spawn(async |cx: Cx<u64>| {
        let inside = cx.shield(async { cx.recv().await }).await;
        assert_eq!(cx.recv().await, None);
        Ok(inside.unwrap_or(0))
    });
    let task = task.unwrap();
    scheduler.cancel(task.pid(), "enough").unwrap();
    task.send(3).unwrap();
    assert_eq!(number(task), 3);
}

// pins: A5
#[test]
fn an_error_of_its_own_after_a_cancellation_is_a_failure() {
    let got = cancelled_in(async |cx: Cx<u64>| {
        cx.recv().await.ok_or("nothing came")?;
        Ok(0)
    });
    assert!(matches!(got, ExitReason::Failed(it) if it.to_string() == "nothing came"));
}

// pins: A5
#[test]
fn a_stop_ends_tasks_that_wait() {
    let scheduler = world();
    let task = scheduler.spawn(async |cx: Cx<u64>| {
        let mut count = 0_u64;
        while cx.recv().await.is_some() {
            count += 1;
        }
        Ok(count)
    });
    let task = task.unwrap();
    task.send(1).unwrap();
    let report = scheduler.stop(Duration::from_secs(60)).unwrap();
    assert_eq!((report.forced, report.stuck.len()), (0, 0));
    assert!(matches!(exit(task), ExitReason::Done(_)));
}

// pins: A5, P9
#[test]
fn a_terminated_task_is_dropped_on_a_worker_with_what_it_holds() {
    struct Told(std::sync::mpsc::Sender<String>);
    impl Drop for Told {
        fn drop(&mut self) {
            let name = std::thread::current().name().unwrap_or_default().to_owned();
            self.0.send(name).unwrap();
            panic!("on purpose: destructor of a task");
        }
    }
    let scheduler = start(1);
    let (told, is_told) = channel();
    let held = Arc::new(());
    let its_held = Arc::clone(&held);
    let task = scheduler.spawn(async move |cx: Cx| -> Result<(), BoxError> {
        let _held = its_held;
        let _told = Told(told);
        cx.recv().await;
        Ok(())
    });
    let task = task.unwrap();
    let state = || scheduler.process(task.pid()).map(|it| it.state);
    until("it waits", || state() == Some(ProcessState::Idle));
    scheduler.terminate(task.pid()).unwrap();
    assert!(matches!(exit(task), ExitReason::Terminated));
    assert_ne!(
        Some(&*is_told.recv().unwrap()),
        std::thread::current().name()
    );
    assert_eq!(Arc::strong_count(&held), 1);
}

// pins: A5, D1, D2
#[test]
fn in_a_stop_what_a_shield_starts_does_its_work() {
    let scheduler = world();
    let handle = scheduler.handle().downgrade();
    let task = scheduler.spawn(async move |cx: Cx| {
        cx.cancelled().await;
        let clean_up = async {
            let blocking = cx.blocking(|| 1_u64).await?;
            let saved = cx.command(Save).await?;
            let scoped = cx.scope(async |scope| {
                let child = scope.spawn(async |cx: Cx| Ok(cx.command(Save).await?))?;
                Ok(child.await?)
            });
            let scoped = scoped.await?;
            let scheduler = handle.upgrade().ok_or("it is gone")?;
            let asked = cx.ask(scheduler.call_task(async |_: Cx| Ok(9_u64))).await?;
            Ok::<_, BoxError>([blocking, saved, scoped, asked].iter().sum::<u64>())
        };
        cx.shield(clean_up).await
    });
    let report = scheduler.stop(crate::support::PATIENCE).unwrap();
    assert_eq!(number(task.unwrap()), 20);
    assert_eq!(report.forced, 0, "{report:?}");
}
