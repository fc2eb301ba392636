//! Waiting at a tree: for a child, for a change, for the end.

use crate::support::*;
use ganger_proc_api::{
    BoxError, CommandError, Event, ExitCause, ExitReason, Pid, StepOutput, actor_fn, process_fn,
};
use ganger_sched::{ProcessHandle, Scheduler};
use ganger_sim::Rt;
use ganger_supervise::{
    AddressError, ChildInfo, ChildSpec, ChildState, Supervisor, Tree, TreeEnded, TreeError,
    TreeHandle,
};
use ganger_task::Cx;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context as Waiting, Poll, Wake, Waker};

/// Creates a supervisor `web` with a child `cache` that waits for 20 ms before it is restarted.
fn web(log: &Log) -> Supervisor {
    let log = log.clone();
    Supervisor::one_for_one().child("web", move || {
        let cache = ChildSpec::new("cache", log.child("cache"));
        Supervisor::one_for_one().with(cache.back_off(ms(20)))
    })
}

/// Starts a task that waits until the child is up, and ends with the number of the child's PID.
fn wait_up(rt: &Rt<'_>, tree: &Tree, path: &'static str) -> ProcessHandle {
    let tree = tree.clone();
    let wait = async move |_: Cx| Ok(tree.wait_up(path).await?.id());
    rt.spawn(wait).unwrap()
}

/// Starts a process that asks in a step, as `wait_up` does in a task.
fn ask_up(rt: &Rt<'_>, tree: &Tree, path: &'static str) -> ProcessHandle {
    let tree = tree.clone();
    let step = process_fn(move |_, events, out: &mut StepOutput| {
        match events.next() {
            None => _ = out.ask(tree.wait_up(path), 1),
            Some(Event::Completion(it)) => out.done(it.take::<Pid>()?.id()),
            Some(_) => {}
        }
        Ok(())
    });
    rt.spawn(step).unwrap()
}

fn pid_of(rt: &Rt<'_>, tree: &Tree, path: &str) -> u64 {
    rt.settle();
    tree.child(path).unwrap().id()
}

fn has_restarted(children: &[ChildInfo]) -> bool {
    let below = children[0].children.as_deref().unwrap_or_default();
    below[0].state == ChildState::Runs && below[0].restarts > 0
}

fn error_of(reason: ExitReason) -> BoxError {
    match reason {
        ExitReason::Failed(error) => error,
        other => panic!("{other}"),
    }
}

fn tree_error(rt: &Rt<'_>, waits: ProcessHandle) -> TreeError {
    *error_of(rt.wait(waits)).downcast::<TreeError>().unwrap()
}

// pins: S14
#[test]
fn a_wait_for_a_child_ends_when_that_runs() {
    sim(71).check_seeds(60, |rt| {
        let tree = web(&Log::default()).start(rt).unwrap();
        let first = tree.child("web/cache").unwrap().id();
        let waits = wait_up(rt, &tree, "web/cache");
        assert_eq!(rt.wait(waits).into_result().unwrap().as_u64(), Some(first));

        let cache = tree.address::<Do>("web/cache").unwrap();
        cache.send(Do::Fail).unwrap();
        rt.run_for(ms(5));
        assert_eq!(tree.child("web/cache"), None);
        let waits = [
            wait_up(rt, &tree, "web/cache"),
            ask_up(rt, &tree, "web/cache"),
        ];
        rt.run_for(ms(5));
        assert!(waits.iter().all(|it| !it.is_finished()));
        let ends = waits.map(|it| rt.wait(it).into_result().unwrap().as_u64());
        let second = pid_of(rt, &tree, "web/cache");
        assert_eq!(ends, [Some(second); 2]);
        assert_ne!(first, second);

        // Another supervisor is then on the path.
        let before = tree.child("web").unwrap();
        rt.terminate(before).unwrap();
        let waits = wait_up(rt, &tree, "web/cache");
        rt.wait(waits).into_result().unwrap();
        rt.settle();
        let waits = wait_up(rt, &tree, "web/cache");
        let third = rt.wait(waits).into_result().unwrap().as_u64();
        assert_eq!(third, Some(pid_of(rt, &tree, "web/cache")));
        assert_ne!(tree.child("web"), Some(before));
        tree.cancel("enough").unwrap();
        end_of(rt, tree);
    });
}

// pins: S13, S14
#[test]
fn a_child_that_is_restarted_in_place_is_up_when_the_next_incarnation_is() {
    sim(72).check_seeds(40, |rt| {
        let log = Log::default();
        let cache = ChildSpec::new("cache", log.child("cache")).in_place();
        let tree = Supervisor::one_for_one().with(cache.back_off(ms(20)));
        let tree = tree.start(rt).unwrap();
        send(rt, &tree, "cache", Do::Fail);
        rt.run_for(ms(5));
        assert_eq!(tree.children()[0].state, ChildState::Waits);
        log.take();
        let waits = wait_up(rt, &tree, "cache");
        rt.wait(waits).into_result().unwrap();
        assert_eq!(log.take(), ["+cache"]);
        assert_eq!(tree.children()[0].state, ChildState::Runs);
        tree.cancel("enough").unwrap();
        end_of(rt, tree);
    });
}

// pins: S14
#[test]
fn a_wait_for_what_does_not_come_is_an_error() {
    sim(73).check_seeds(60, |rt| {
        let tree = web(&Log::default()).start(rt).unwrap();
        for path in ["wep", "web/cash", "web/cache/x"] {
            let error = tree_error(rt, wait_up(rt, &tree, path));
            let is_unknown = matches!(error, TreeError::Child(AddressError::NoChild { .. }));
            assert!(is_unknown, "{path}: {error}");
        }
        // The child is stopped while it is waited for.
        let fail = || {
            let cache = tree.address::<Do>("web/cache").unwrap();
            cache.send(Do::Fail).unwrap();
            rt.run_for(ms(5));
        };
        fail();
        let waits = wait_up(rt, &tree, "web/cache");
        rt.run_for(ms(5));
        let below = tree.subtree("web").unwrap();
        rt.answer(below.stop_child("cache")).unwrap();
        let error = tree_error(rt, waits);
        let stopped = "the child \"web/cache\" is not running: it stopped";
        assert_eq!(error.to_string(), stopped);
        rt.answer(below.restart_child("cache")).unwrap();
        // So is the whole tree.
        fail();
        let waits = [
            wait_up(rt, &tree, "web/cache"),
            ask_up(rt, &tree, "web/cache"),
        ];
        rt.run_for(ms(5));
        tree.cancel("enough").unwrap();
        let ends = waits.map(|it| error_of(rt.wait(it)).to_string());
        let pid = tree.pid();
        let ended = format!("the supervisor supervisor {pid} has ended: cancelled: enough");
        assert!(ends.iter().all(|it| it.ends_with(&ended)), "{ends:?}");
        let left = (*tree).clone();
        end_of(rt, tree);
        let error = tree_error(rt, wait_up(rt, &left, "web/cache"));
        assert!(matches!(error, TreeError::Ended(_)), "{error}");
    });
}

// pins: S14
#[test]
fn changes_are_told_of_up_to_the_end_also_those_below() {
    sim(74).check_seeds(60, |rt| {
        let tree = web(&Log::default()).start(rt).unwrap();
        let (mut changes, shown) = (tree.changes(), (*tree).clone());
        let looks = rt.spawn(async move |_: Cx| {
            let mut seen = Vec::new();
            loop {
                match changes.next().await {
                    Ok(children) => seen.push(has_restarted(&children)),
                    Err(TreeError::Ended(end)) => {
                        assert_eq!(end, shown.wait_end().await?);
                        let last = seen.last() == Some(&false);
                        return Ok(seen.contains(&true) && last && shown.is_finished());
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        });
        rt.settle();
        let cache = tree.address::<Do>("web/cache").unwrap();
        cache.send(Do::Fail).unwrap();
        rt.run_for(ms(30));
        assert_eq!((tree.count(), tree.is_finished()), (Ok((1, 1)), false));
        let left = (*tree).clone();
        tree.cancel("enough").unwrap();
        assert!(matches!(end_of(rt, tree), ExitReason::Cancelled(_)));
        let end = rt.wait(looks.unwrap()).into_result().unwrap();
        assert_eq!(end.as_bool(), Some(true));
        let TreeEnded { pid, cause, .. } = left.count().unwrap_err();
        assert_eq!(pid, left.pid());
        assert!(matches!(cause, ExitCause::Cancelled(_)), "{cause}");
    });
}

// pins: S14
#[test]
fn several_changes_between_two_looks_are_one() {
    sim(75).run(|rt| {
        let log = Log::default();
        let tree = Supervisor::dynamic().start(rt).unwrap();
        let mut changes = tree.changes();
        let mut waiting = Waiting::from_waker(Waker::noop());
        assert!(pin!(changes.next()).poll(&mut waiting).is_pending());
        for _ in 0..10 {
            rt.answer(tree.start_child(ChildSpec::new("a", log.child("a"))))
                .unwrap();
        }
        let Poll::Ready(Ok(children)) = pin!(changes.next()).poll(&mut waiting) else {
            panic!("there are changes");
        };
        assert_eq!(children.len(), 10);
        assert!(pin!(changes.next()).poll(&mut waiting).is_pending());
        tree.cancel("enough").unwrap();
        end_of(rt, tree);
    });
}

struct Counting(AtomicUsize);

impl Wake for Counting {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

// pins: S14
#[test]
fn a_wait_that_is_dropped_leaves_nothing_and_one_that_is_polled_again_has_one_place() {
    sim(76).run(|rt| {
        let tree = web(&Log::default()).start(rt).unwrap();
        let wakes = Arc::new(Counting(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&wakes));
        let mut waiting = Waiting::from_waker(&waker);
        let mut end = Box::pin(tree.wait_end());
        for _ in 0..3 {
            assert!(end.as_mut().poll(&mut waiting).is_pending());
        }
        // The references of the test, of the waker, and of the wait.
        assert_eq!(Arc::strong_count(&wakes), 3);
        drop(end);
        assert_eq!(Arc::strong_count(&wakes), 2);
        tree.cancel("enough").unwrap();
        end_of(rt, tree);
        assert_eq!(wakes.0.load(Ordering::Relaxed), 0);
    });
}

// pins: S14
#[test]
fn a_handle_is_waited_for_by_a_task() {
    sim(77).check_seeds(20, |rt| {
        let tree = web(&Log::default()).start(rt).unwrap();
        assert!(!tree.is_finished());
        let shown = (*tree).clone();
        let waits = rt.spawn(async move |_: Cx| Ok(tree.await.to_string()));
        rt.settle();
        shown.cancel("enough").unwrap();
        let end = rt.wait(waits.unwrap()).into_result().unwrap();
        assert_eq!(end.as_str(), Some("cancelled: enough"));
    });
}

/// Starts a tree whose child waits to be restarted, for a time that no test waits for.
fn hurt(scheduler: &Scheduler) -> TreeHandle {
    let child = ChildSpec::new("a", || actor_fn(|_, (): (), _| Err("no luck".into())));
    let tree = Supervisor::one_for_one().with(child.back_off(secs(3_000)));
    let tree = tree.start(scheduler).unwrap();
    let mut changes = tree.changes();
    tree.address::<()>("a").unwrap().send(()).unwrap();
    while tree.child("a").is_some() {
        changes.next_timeout(PATIENCE).unwrap();
    }
    tree
}

// pins: S14
#[test]
fn threads_wait_at_a_tree_and_workers_do_not() {
    let scheduler = start(2);
    let tree = hurt(&scheduler);
    let in_time = tree.wait_up("a").wait_timeout(ms(1));
    assert!(matches!(in_time, Err(TreeError::Timeout)), "{in_time:?}");
    let in_time = tree.changes().next_timeout(ms(1));
    assert!(matches!(in_time, Err(TreeError::Timeout)), "{in_time:?}");

    // In a step a wait would block the worker, except in a call of `blocking`.
    let asks = (*tree).clone();
    let asks = scheduler.spawn(process_fn(move |ctx, _, out| {
        let refused = asks.wait_up("a").wait();
        assert!(matches!(refused, Err(TreeError::OnWorker)), "{refused:?}");
        let waited = ctx.blocking(|| asks.wait_up("a").wait_timeout(ms(1)));
        assert!(matches!(waited, Err(TreeError::Timeout)), "{waited:?}");
        out.done(());
        Ok(())
    }));
    assert!(asks.unwrap().wait().is_done());

    let waits = (*tree).clone();
    let waits = std::thread::spawn(move || waits.wait_up("a").wait());
    tree.restart_child("a").wait().unwrap();
    assert_eq!(waits.join().unwrap().ok(), tree.child("a"));
    let tree = tree.wait_timeout(ms(1)).unwrap_err();
    let shown = (*tree).clone();
    tree.cancel("enough").unwrap();
    let end = tree.wait_timeout(PATIENCE).unwrap();
    assert!(matches!(end, ExitReason::Cancelled(_)), "{end}");
    assert!(shown.wait_end().wait().is_ok());
}

// pins: S14
#[test]
fn a_tree_of_a_scheduler_that_stops_or_was_never_started_is_not_waited_for_in_vain() {
    let scheduler = start(1);
    let tree = hurt(&scheduler);
    let waits = (*tree).clone();
    let waits = std::thread::spawn(move || waits.wait_up("a").wait());
    drop(scheduler);
    assert!(matches!(waits.join().unwrap(), Err(TreeError::Ended(_))));

    let unstarted = Scheduler::builder().build().unwrap();
    let child = || actor_fn(|_, (): (), _| Ok(()));
    let tree = Supervisor::one_for_one().child("a", child);
    let tree = tree.start(&unstarted).unwrap();
    assert!(tree.wait_up("a").wait().is_ok());
    let refused = tree.changes().next_blocking().unwrap_err();
    assert!(refused.to_string().contains("Builder::start"), "{refused}");
    let shown = (*tree).clone();
    drop((tree, unstarted));
    assert!(shown.is_finished());
}

// pins: S14
#[test]
fn a_step_gets_the_error_of_its_wait() {
    sim(78).run(|rt| {
        let tree = web(&Log::default()).start(rt).unwrap();
        let shown = (*tree).clone();
        let asks = rt.spawn(process_fn(move |_, events, out| {
            match events.next() {
                None => _ = out.ask(shown.wait_up("wep"), 1),
                Some(Event::Completion(it)) => {
                    let Err(CommandError::Failed(error)) = it.result else {
                        panic!("there is no such child")
                    };
                    let error = error.downcast_ref::<TreeError>();
                    out.done(matches!(error, Some(TreeError::Child(_))));
                }
                Some(_) => {}
            }
            Ok(())
        }));
        let end = rt.wait(asks.unwrap()).into_result().unwrap();
        assert_eq!(end.as_bool(), Some(true));
        tree.cancel("enough").unwrap();
        end_of(rt, tree);
    });
}
