//! Children that end before their scope looks, and notices that were not meant for a wait.

use ganger_proc_api::{BoxError, Reply, TypedCommand, UpgradeRequest};
use ganger_sched::{ProcessState, Scheduler};
use ganger_task::{Cx, SpawnTask, process};
use std::sync::mpsc::channel;

// pins: A7
#[test]
fn children_that_end_at_once_are_no_lost_children() {
    const CHILDREN: u64 = 200;
    let scheduler = Scheduler::builder().workers(4).build().unwrap();
    scheduler.start().unwrap();
    for round in 0..100 {
        let parent = scheduler.spawn_task(async |cx: Cx| {
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

/// A scheduler whose commands are answered by the test.
fn kept() -> (Scheduler, std::sync::mpsc::Receiver<Reply<u64>>) {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let (send, replies) = channel();
    scheduler
        .register_for(move |Keep, reply| Ok(send.send(reply)?))
        .unwrap();
    scheduler.start().unwrap();
    (scheduler, replies)
}

/// The monitor stays when the process is replaced, and its tag is that of the heir's first wait.
// pins: A3, P11
#[test]
fn a_notice_for_the_task_before_ends_no_wait() {
    let (scheduler, replies) = kept();
    let target = scheduler.spawn_task(async |cx: Cx| {
        cx.recv().await;
        Ok(())
    });
    let target = target.unwrap();
    let monitored = target.pid();
    let task = scheduler.spawn_task(async move |cx: Cx| {
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
    // The notice has come by the time that the answer does.
    reply.complete(7);
    assert_eq!(task.wait().take::<u64>().unwrap(), 7);
}

// pins: A3
#[test]
fn a_monitor_of_ones_own_ends_no_wait() {
    let (scheduler, replies) = kept();
    let target = scheduler.spawn_task(async |cx: Cx| {
        cx.recv().await;
        Ok(())
    });
    let target = target.unwrap();
    let monitored = target.pid();
    let task = scheduler.spawn_task(async move |cx: Cx| {
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
