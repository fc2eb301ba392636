//! Children that end before their scope looks, and notices meant for no wait.

use ganger_proc_api::{BoxError, Lifecycle, Pid, Reply, Symbol, TypedCommand, UpgradeRequest};
use ganger_sched::{ProcessState, Scheduler};
use ganger_task::{Cx, process};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

// pins: A7
#[test]
fn children_that_end_at_once_are_no_lost_children() {
    const CHILDREN: u64 = 200;
    let scheduler = Scheduler::builder().workers(4).build().unwrap();
    scheduler.start().unwrap();
    for round in 0..100 {
        let parent = scheduler.spawn(async |cx: Cx| {
            cx.scope(async |scope| {
                let group = scope.group();
                for _ in 0..CHILDREN {
                    group.spawn(async |_: Cx| Ok(1))?;
                }
                let mut sum = 0_u64;
                while let Some(one) = group.next().await {
                    sum += one?;
                }
                Ok(sum)
            })
            .await
        });
        let ended = parent.unwrap().wait();
        assert!(ended.is_done(), "round {round}: {ended}");
        assert_eq!(ended.take::<u64>().unwrap(), CHILDREN);
    }
}

struct Keep;

impl TypedCommand for Keep {
    type Answer = u64;
}

/// Starts a scheduler whose commands are answered by the test.
fn kept() -> (Scheduler, std::sync::mpsc::Receiver<Reply<u64>>) {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let (send, replies) = channel();
    scheduler
        .register_for(move |Keep, reply| Ok(send.send(reply)?))
        .unwrap();
    scheduler.start().unwrap();
    (scheduler, replies)
}

/// Replaces the process, whose monitor stays, with the tag of the heir's first wait.
// pins: A3, P11
#[test]
fn a_notice_for_the_task_before_ends_no_wait() {
    let (scheduler, replies) = kept();
    let target = scheduler.spawn(async |cx: Cx| {
        cx.recv().await;
        Ok(())
    });
    let target = target.unwrap();
    let monitored = target.pid();
    let task = scheduler.spawn(async move |cx: Cx| {
        cx.monitor(monitored).await?;
        Ok(())
    });
    let task = task.unwrap();
    let until = |condition: &dyn Fn() -> bool| {
        while !condition() {
            std::thread::yield_now();
        }
    };
    until(&|| scheduler.process(task.pid()).unwrap().state == ProcessState::Idle);
    let heir = process(async |cx: Cx| Ok::<_, BoxError>(cx.command(Keep).await?));
    scheduler
        .upgrade(task.pid(), UpgradeRequest::process(heir, "task", ()))
        .unwrap();
    let reply = replies.recv().unwrap();
    scheduler.terminate(monitored).unwrap();
    drop(target.wait());
    // The notice comes before the answer.
    reply.complete(7);
    assert_eq!(task.wait().take::<u64>().unwrap(), 7);
}

// pins: A3
#[test]
fn a_monitor_of_ones_own_ends_no_wait() {
    let (scheduler, replies) = kept();
    let target = scheduler.spawn(async |cx: Cx| {
        cx.recv().await;
        Ok(())
    });
    let target = target.unwrap();
    let monitored = target.pid();
    let task = scheduler.spawn(async move |cx: Cx| {
        cx.context().monitor(monitored, 0)?;
        Ok(cx.command(Keep).await?)
    });
    let task = task.unwrap();
    let reply = replies.recv().unwrap();
    scheduler.terminate(monitored).unwrap();
    drop(target.wait());
    reply.complete(7);
    assert_eq!(task.wait().take::<u64>().unwrap(), 7);
}

/// Keeps the error, which owns the process that has not started.
// pins: A7
#[test]
fn a_child_that_was_refused_keeps_no_group_waiting() {
    let builder = Scheduler::builder().workers(1).max_processes(1);
    let scheduler = builder.build().unwrap();
    scheduler.start().unwrap();
    let parent = scheduler.spawn(async |cx: Cx| {
        cx.scope(async |scope| {
            let group = scope.group::<u64>();
            let refused = group.spawn(async |_: Cx| Ok(1));
            assert_eq!((refused.is_err(), group.running()), (true, 0));
            assert!(group.next().await.is_none());
            drop(refused);
            assert!(group.next().await.is_none());
            Ok(7_u64)
        })
        .await
    });
    assert_eq!(parent.unwrap().wait().take::<u64>().unwrap(), 7);
}

/// Refuses all but the first process.
struct First(AtomicU64);

impl Lifecycle for First {
    fn on_start(&self, _: Pid, _: Symbol) -> Result<(), BoxError> {
        match self.0.fetch_add(1, Ordering::Relaxed) {
            0 => Ok(()),
            _ => Err("one is enough".into()),
        }
    }
}

/// Refuses the child after its `init` has run.
// pins: A7
#[test]
fn a_child_that_is_refused_after_its_init_is_no_lost_one() {
    let first = Arc::new(First(AtomicU64::new(0)));
    let scheduler = Scheduler::builder().workers(1).lifecycle(first);
    let scheduler = scheduler.build().unwrap();
    scheduler.start().unwrap();
    let parent = scheduler.spawn(async |cx: Cx| {
        cx.scope(async |scope| {
            let group = scope.group::<u64>();
            assert!(group.spawn(async |_: Cx| Ok(1)).is_err());
            assert_eq!(group.running(), 0);
            assert!(group.next().await.is_none());
            Ok(7_u64)
        })
        .await
    });
    assert_eq!(parent.unwrap().wait().take::<u64>().unwrap(), 7);
}

/// Calls a function when it is dropped.
struct OnDrop(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Wake for OnDrop {
    fn wake(self: Arc<Self>) {}
}

impl Drop for OnDrop {
    fn drop(&mut self) {
        if let Some(f) = self.0.get_mut().unwrap().take() {
            f();
        }
    }
}

// pins: A7
#[test]
fn a_wakers_destructor_may_look_at_its_group() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    scheduler.start().unwrap();
    let parent = scheduler.spawn(async |cx: Cx| {
        cx.scope(async |scope| {
            let group = Arc::new(scope.group::<u64>());
            group.spawn(async |cx: Cx| {
                cx.recv().await;
                Ok(1)
            })?;
            let (seen, looks) = channel();
            let its = Arc::clone(&group);
            let look = move || seen.send(its.running()).unwrap_or_default();
            let waker = Waker::from(Arc::new(OnDrop(Mutex::new(Some(Box::new(look))))));
            for waker in [waker, Waker::noop().clone()] {
                let mut next = pin!(group.next());
                let polled = next.as_mut().poll(&mut Context::from_waker(&waker));
                assert!(polled.is_pending());
            }
            assert_eq!(looks.try_recv(), Ok(1));
            Err::<(), _>("over".into())
        })
        .await
    });
    let ended = parent.unwrap().wait();
    assert!(ended.to_string().contains("over"), "{ended}");
}

/// Polls the wait of an ended task by another task.
// pins: A8
#[test]
fn the_wait_of_a_task_that_is_gone_is_no_other_tasks() {
    type Left = Pin<Box<dyn Future<Output = ()> + Send>>;
    let (scheduler, replies) = kept();
    for _ in 0..50 {
        let (leave, left) = channel::<Left>();
        let first = scheduler.spawn(async move |cx: Cx| {
            let its = cx.clone();
            let mut wait: Left = Box::pin(async move { drop(its.command(Keep).await) });
            poll_fn(|context| {
                assert!(wait.as_mut().poll(context).is_pending());
                Poll::Ready(())
            })
            .await;
            drop(leave.send(wait));
            Ok(())
        });
        assert!(first.unwrap().wait().is_done());
        drop(replies.recv().unwrap());
        let mut left = left.recv().unwrap();
        // The second task may have the memory of the first, and its wait has the same tag.
        let second = scheduler.spawn(async move |cx: Cx| {
            let mut own = pin!(cx.command(Keep));
            poll_fn(|context| {
                assert!(own.as_mut().poll(context).is_pending());
                Poll::Ready(())
            })
            .await;
            poll_fn(|context| left.as_mut().poll(context)).await;
            Ok(())
        });
        let ended = second.unwrap().wait().to_string();
        assert!(ended.contains("outside of that task"), "{ended}");
    }
}
