//! Waits for the ends of processes, as edges of the graph of waits.

use ganger_lock::Mutex;
use ganger_observe::{Observer, Party, Wait};
use ganger_proc_api::{BoxError, Pid};
use ganger_sched::{Observe, ProcessHandle, ProcessState, Scheduler};
use ganger_task::Cx;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// Starts a scheduler with a host of its own: all tests of this program see each other's waits.
fn observed(host: &str) -> (Scheduler, Observer) {
    let builder = Scheduler::builder().workers(2).host(host);
    let scheduler = builder.observe(Observe::Counts).start().unwrap();
    let observer = Observer::of(&scheduler).watch_waits().in_haste();
    (scheduler, observer)
}

/// Waits until the cycle of these processes is among the waits, and returns it.
fn cycle_of(observer: &Observer, of: &[Pid]) -> Vec<(&'static str, Pid, Vec<Party>)> {
    let end = Instant::now() + PATIENCE;
    loop {
        let seen = observer.waits();
        for cycle in &seen.cycles {
            let waits = cycle.iter().map(|at| &seen.waits[*at]);
            let shown = waits.filter_map(|it| match it.waiter {
                Party::Process(pid, _) => Some((it.kind, pid, it.parties.clone())),
                Party::Thread(_) => None,
            });
            let shown: Vec<_> = shown.collect();
            if of.iter().all(|pid| shown.iter().any(|it| it.1 == *pid)) {
                assert_eq!(shown.len(), of.len(), "{seen:?}");
                return shown;
            }
        }
        assert!(Instant::now() < end, "{seen:?}");
        thread::yield_now();
    }
}

/// Spawns a task that gets a handle, and awaits it.
fn awaits_handle(scheduler: &Scheduler) -> (ProcessHandle, std::sync::mpsc::Sender<ProcessHandle>) {
    let (sender, receiver) = channel::<ProcessHandle>();
    let task = scheduler.spawn(async move |cx: Cx| {
        let handle = take(&cx, receiver).await?;
        drop(handle.await);
        Ok(())
    });
    (task.unwrap(), sender)
}

async fn take<T>(cx: &Cx, receiver: Receiver<T>) -> Result<T, BoxError> {
    loop {
        match receiver.try_recv() {
            Ok(it) => return Ok(it),
            Err(_) => cx.yield_now().await,
        }
    }
}

// pins: V10
#[test]
fn two_tasks_that_await_each_others_handles_are_one_named_cycle() {
    let (scheduler, observer) = observed("exits-handles");
    let ((one, to_one), (two, to_two)) = (awaits_handle(&scheduler), awaits_handle(&scheduler));
    let pids = [one.pid(), two.pid()];
    to_one.send(two).unwrap();
    to_two.send(one).unwrap();
    let cycle = cycle_of(&observer, &pids);
    for (kind, pid, parties) in cycle {
        let other = pids.into_iter().find(|it| *it != pid).unwrap();
        assert_eq!(kind, "exit");
        assert_eq!(parties, [Party::Process(other, scheduler.number())]);
    }
    scheduler.terminate(pids[0]).unwrap();
    let end = Instant::now() + PATIENCE;
    while scheduler.stats().live > 0 {
        assert!(Instant::now() < end);
        thread::yield_now();
    }
    let is_left = |it: &Wait| it.waiter.to_string().contains("exits-handles");
    assert!(!observer.waits().waits.iter().any(is_left));
}

// pins: V10
#[test]
fn a_monitor_of_a_process_that_waits_leaves_its_wait() {
    let (scheduler, observer) = observed("exits-monitored");
    let ((one, to_one), (two, to_two)) = (awaits_handle(&scheduler), awaits_handle(&scheduler));
    let pids = [one.pid(), two.pid()];
    to_one.send(two).unwrap();
    to_two.send(one).unwrap();
    cycle_of(&observer, &pids);
    // The monitor takes a turn of the process, without a step.
    let watcher = scheduler.spawn(async move |cx: Cx| {
        let _end = cx.monitor(pids[0]).await?;
        Ok(())
    });
    let watchers = [watcher.unwrap().pid()];
    let end = Instant::now() + PATIENCE;
    let watched_by = || observer.process(pids[0])?.watched_by;
    while watched_by().is_none_or(|it| it.processes != watchers) {
        assert!(Instant::now() < end);
        thread::yield_now();
    }
    cycle_of(&observer, &pids);
    scheduler.terminate(pids[0]).unwrap();
}

// pins: V10
#[test]
fn a_lock_a_monitor_and_a_scope_are_in_cycles_over_an_end() {
    let (scheduler, observer) = observed("exits-others");
    // The first has the lock and waits for the end of the second, which waits for the lock.
    let lock = Arc::new(Mutex::new(()));
    let wanted = Arc::clone(&lock);
    let (has, told) = channel();
    let (to_first, second) = channel::<Pid>();
    let first = scheduler.spawn(async move |cx: Cx| {
        let _guard = lock.lock().await;
        has.send(())?;
        let second = take(&cx, second).await?;
        cx.monitor(second).await?;
        Ok(())
    });
    told.recv().unwrap();
    let second = scheduler.spawn(async move |_: Cx| {
        drop(wanted.lock().await);
        Ok(())
    });
    let pids = [first.unwrap().pid(), second.unwrap().pid()];
    to_first.send(pids[1]).unwrap();
    let mut kinds: Vec<_> = cycle_of(&observer, &pids).iter().map(|it| it.0).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["exit", "mutex"]);
    // A scope waits for its child, which waits for the end of the scope's task.
    for awaits_child in [true, false] {
        let (child_is, child) = channel();
        let parent = scheduler.spawn(async move |cx: Cx| {
            let own = cx.pid();
            let scope = cx.scope(async |scope| {
                let child = scope.spawn(async move |cx: Cx| {
                    cx.monitor(own).await?;
                    Ok(())
                })?;
                child_is.send(child.pid())?;
                if awaits_child {
                    child.await?;
                }
                Ok(())
            });
            scope.await
        });
        let pids = [parent.unwrap().pid(), child.recv().unwrap()];
        let cycle = cycle_of(&observer, &pids);
        assert!(cycle.iter().all(|it| it.0 == "exit"), "{cycle:?}");
    }
}

/// Polls a handle once.
async fn poll_once(handle: &mut ProcessHandle) {
    let once = std::future::poll_fn(|context| {
        assert!(Pin::new(&mut *handle).poll(context).is_pending());
        Poll::Ready(())
    });
    once.await;
}

// pins: V10
#[test]
fn a_handle_that_is_polled_no_longer_is_no_wait() {
    for leaves_by in ["recv", "sleep", "lock"] {
        let (scheduler, observer) = observed(&format!("exits-left-by-{leaves_by}"));
        let idle = scheduler.spawn(async |cx: Cx| {
            drop(cx.recv().await);
            Ok(())
        });
        let mut idle = idle.unwrap();
        let of = Party::Process(idle.pid(), scheduler.number());
        let lock = Arc::new(Mutex::new(()));
        let held = Arc::clone(&lock);
        let guard = held.try_lock().unwrap();
        // In the same step, the task polls the handle, leaves it, and waits for something else.
        let task = scheduler.spawn(async move |cx: Cx| {
            poll_once(&mut idle).await;
            match leaves_by {
                "recv" => drop(cx.recv().await),
                "sleep" => cx.sleep(Duration::from_hours(1)).await?,
                _ => drop(lock.lock().await),
            }
            drop(idle);
            Ok(())
        });
        let task = task.unwrap().pid();
        let end = Instant::now() + PATIENCE;
        loop {
            let state = scheduler.process(task).unwrap().state;
            if [ProcessState::Idle, ProcessState::Blocked].contains(&state) {
                break;
            }
            assert!(Instant::now() < end);
            thread::yield_now();
        }
        let seen = observer.waits().waits;
        assert!(!seen.iter().any(|it| it.parties.contains(&of)), "{seen:?}");
        drop(guard);
    }
}

/// Returns whether a process waits for the end of `of`, once `waiter` has come to rest.
fn has_edge(scheduler: &Scheduler, observer: &Observer, waiter: Pid, of: Pid) -> bool {
    let end = Instant::now() + PATIENCE;
    loop {
        let state = scheduler.process(waiter).unwrap().state;
        if [ProcessState::Idle, ProcessState::Blocked].contains(&state) {
            break;
        }
        assert!(Instant::now() < end);
        thread::yield_now();
    }
    let of = Party::Process(of, scheduler.number());
    let seen = observer.waits().waits;
    seen.iter().any(|it| it.parties.contains(&of))
}

/// Spawns a process that waits for messages without an end.
fn idle(scheduler: &Scheduler) -> ProcessHandle {
    let idle = scheduler.spawn(async |cx: Cx| {
        while cx.recv().await.is_some() {}
        Ok(())
    });
    idle.unwrap()
}

// pins: V10
#[test]
fn a_wait_for_an_end_beside_a_wait_for_messages_is_no_edge() {
    let (scheduler, observer) = observed("exits-beside");
    // A select begins with each of its futures in turn.
    for first in [true, false] {
        for is_handle in [true, false] {
            let idle = idle(&scheduler);
            let of = idle.pid();
            let task = scheduler.spawn(async move |cx: Cx<u64>| {
                let end = async {
                    match is_handle {
                        true => drop(idle.await),
                        false => drop(cx.monitor(of).await),
                    }
                };
                match first {
                    true => drop(cx.select((end, cx.recv())).await),
                    false => drop(cx.select((cx.recv(), end)).await),
                }
                Ok(())
            });
            let task = task.unwrap();
            assert!(
                !has_edge(&scheduler, &observer, task.pid(), of),
                "{first} {is_handle}"
            );
            // Its next wait is for the end alone, or for messages again: the turn is another one.
            task.send(1).unwrap();
            assert!(task.wait().is_done());
        }
    }
}

// pins: V10
#[test]
fn a_wait_that_was_left_in_an_earlier_turn_is_no_edge() {
    // A single worker takes the turns of many tasks in between, all within a moment.
    let builder = Scheduler::builder().workers(1).host("exits-earlier");
    let scheduler = builder.observe(Observe::Counts).start().unwrap();
    let observer = Observer::of(&scheduler).watch_waits().in_haste();
    let idle = idle(&scheduler);
    let of = idle.pid();
    let mut handles: Vec<_> = (0..20).map(|_| self::idle(&scheduler)).collect();
    let tasks = (0..20).map(|number| {
        let mut handle = handles.pop().unwrap();
        let task = scheduler.spawn(async move |cx: Cx<u64>| {
            let mut monitor = std::pin::pin!(cx.monitor(of));
            let once = std::future::poll_fn(|context| {
                assert!(monitor.as_mut().poll(context).is_pending());
                Poll::Ready(())
            });
            once.await;
            poll_once(&mut handle).await;
            for _ in 0..=number % 3 {
                cx.yield_now().await;
            }
            match number % 2 {
                0 => drop(cx.recv().await),
                // A wait unknown to all watchers.
                _ => std::future::pending().await,
            }
            drop(handle);
            Ok(())
        });
        task.unwrap()
    });
    let tasks: Vec<_> = tasks.collect();
    for task in &tasks {
        assert!(!has_edge(&scheduler, &observer, task.pid(), of));
    }
    let host = scheduler.number();
    let is_of = |it: &Wait| matches!(it.waiter, Party::Process(_, number) if number == host);
    let left: Vec<_> = observer.waits().waits.into_iter().filter(is_of).collect();
    assert!(left.is_empty(), "{left:?}");
}

// pins: V10
#[test]
fn waits_for_several_ends_are_edges_in_each_turn() {
    let (scheduler, observer) = observed("exits-several");
    let ends: Vec<_> = (0..2).map(|_| idle(&scheduler)).collect();
    let pids = [ends[0].pid(), ends[1].pid()];
    let task = scheduler.spawn(async move |cx: Cx| {
        let all = cx.join((cx.monitor(pids[0]), cx.monitor(pids[1])));
        let _both = all.await;
        Ok(())
    });
    let task = task.unwrap();
    let until_edge = |of| {
        let end = Instant::now() + PATIENCE;
        while !has_edge(&scheduler, &observer, task.pid(), of) {
            assert!(Instant::now() < end);
        }
    };
    pids.into_iter().for_each(until_edge);
    scheduler.terminate(pids[0]).unwrap();
    let end = Instant::now() + PATIENCE;
    while has_edge(&scheduler, &observer, task.pid(), pids[0]) {
        assert!(Instant::now() < end);
    }
    until_edge(pids[1]);
    scheduler.terminate(pids[1]).unwrap();
    assert!(task.wait().is_done());
}
