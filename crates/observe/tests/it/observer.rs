//! Questions to a scheduler, compared with plain answers.

use ganger_link::LinkContext as _;
use ganger_link::Registry as _;
use ganger_observe::{By, Observer, Top};
use ganger_proc_api::{BoxError, Message, Pid, process_fn};
use ganger_sched::{ContextExt, Observe, ProcessState, Scheduler};
use ganger_supervise::Supervisor;
use ganger_task::Cx;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

fn observed() -> Scheduler {
    let builder = Scheduler::builder().workers(1).observe(Observe::Counts);
    builder.build().unwrap()
}

/// Takes all messages.
fn takes() -> impl ganger_proc_api::Process {
    process_fn(|_, events, out| {
        let _taken = events.count();
        out.defer_cancel();
        Ok(())
    })
}

const HOUR: Duration = Duration::from_hours(1);

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < end, "{what}: not in time");
        thread::yield_now();
    }
}

fn pids(top: &[Top]) -> Vec<(Pid, u64)> {
    top.iter().map(|it| (it.pid, it.value)).collect()
}

// pins: V6
#[test]
fn the_top_ones_are_those_of_a_sort() {
    let scheduler = observed();
    let all: Vec<_> = (0..500_u64)
        .map(|number| {
            let process = scheduler.submit(takes(), "takes", ()).unwrap();
            // Some processes have equal numbers of messages.
            for _ in 0..number * 7 % 31 {
                process.send(Message::new("n", ())).unwrap();
            }
            (process.pid(), number * 7 % 31)
        })
        .collect();
    let observer = Observer::of(&scheduler).in_haste();
    let mut expected = all.clone();
    expected.sort_by_key(|&(pid, value)| (std::cmp::Reverse(value), pid));
    for n in [0, 1, 10, 499, 500, 10_000] {
        let top = observer.top(n, By::Mailbox, Duration::ZERO);
        assert_eq!(pids(&top), expected[..n.min(500)]);
        assert!(top.iter().all(|it| it.counts.waiting == it.value));
    }
    assert_eq!(
        pids(&observer.top(3, By::Growth, Duration::ZERO)),
        expected[..3]
    );
    let oldest = &observer.top(1, By::Age, Duration::ZERO)[0];
    assert_eq!(oldest.pid, all[0].0);
    drop(scheduler);
}

// pins: V5
#[test]
fn a_window_orders_by_what_was_done_in_it() {
    let scheduler = observed();
    let (old, new) = (takes(), takes());
    let old = scheduler.submit(old, "old", ()).unwrap();
    let new = scheduler
        .spawner()
        .labelled("fresh")
        .submit(new, "new", ())
        .unwrap();
    scheduler.start().unwrap();
    for _ in 0..50 {
        old.send(Message::new("n", ())).unwrap();
    }
    let observer = Observer::of(&scheduler).in_haste();
    let events = |n| observer.top(n, By::Events, Duration::ZERO);
    while events(1)[0].value < 50 {
        thread::yield_now();
    }
    let top = thread::scope(|scope| {
        let window = Duration::from_millis(200);
        let observer = &observer;
        let top = scope.spawn(move || observer.top(2, By::Events, window));
        // Before, in, and after the window: as long as this is not seen, it goes on.
        while !top.is_finished() {
            new.send(Message::new("n", ())).unwrap();
            thread::sleep(Duration::from_millis(1));
        }
        top.join().unwrap()
    });
    assert_eq!((top[0].pid, top[1].pid), (new.pid(), old.pid()));
    assert!(top[0].value > 0 && top[1].value == 0, "{top:?}");
    assert_eq!(
        (top[0].label.as_deref(), &*top[0].method),
        (Some("fresh"), "new")
    );
    assert_eq!(top[1].counts.events, 50);
}

// pins: V7, V8
#[test]
fn groups_are_of_processes_that_are_alike() {
    let scheduler = observed();
    let sleeps = || {
        process_fn(|_, events, out| {
            if events.next().is_none() {
                out.sleep(Duration::from_secs(3_600), 1);
            }
            Ok(())
        })
    };
    for _ in 0..5 {
        drop(
            scheduler
                .spawner()
                .labelled("a")
                .submit(sleeps(), "sleeps", ())
                .unwrap(),
        );
    }
    for _ in 0..3 {
        drop(
            scheduler
                .spawner()
                .labelled("b")
                .submit(takes(), "takes", ())
                .unwrap(),
        );
    }
    let parent = process_fn(|ctx, _, out| {
        ctx.set_label("b");
        ctx.submit(takes(), "takes", ())?;
        out.defer_cancel();
        Ok(())
    });
    drop(scheduler.submit(parent, "parent", ()).unwrap());
    scheduler.start().unwrap();
    let observer = Observer::of(&scheduler).in_haste();
    let groups = || -> Vec<_> {
        let groups = observer.groups().into_iter();
        let plain = groups.map(|it| {
            let waits_for = it.waits_for.map(|name| name.to_string());
            (
                it.method.to_string(),
                it.label,
                it.state,
                waits_for,
                it.count,
            )
        });
        plain.collect()
    };
    while groups()
        .iter()
        .any(|it| it.2 == ProcessState::Ready || it.2 == ProcessState::Running)
    {
        thread::yield_now();
    }
    let seen = groups();
    assert_eq!(seen.len(), 3, "{seen:?}");
    let (method, label, state, waits_for, count) = &seen[0];
    assert_eq!(
        (&**method, label.as_deref(), *count),
        ("sleeps", Some("a"), 5)
    );
    assert_eq!(*state, ProcessState::Blocked);
    assert!(
        waits_for.as_deref().is_some_and(|it| it.contains("sleep")),
        "{seen:?}"
    );
    assert_eq!(
        (&*seen[1].0, seen[1].4, seen[1].2),
        ("takes", 4, ProcessState::Idle)
    );
    assert_eq!((seen[2].1.as_deref(), seen[2].4), (Some("b"), 1));
}

#[test]
fn a_scheduler_that_is_not_observed_has_no_top_and_still_has_groups() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    drop(scheduler.submit(takes(), "takes", ()).unwrap());
    let observer = Observer::of(&scheduler);
    assert!(observer.top(5, By::Busy, Duration::ZERO).is_empty());
    assert!(
        observer
            .top(5, By::Busy, Duration::from_secs(60))
            .is_empty()
    );
    assert_eq!(observer.groups().len(), 1);
}

// pins: V6
#[test]
fn workers_timers_alarms_and_long_steps_are_those_of_the_handle() {
    let builder = Scheduler::builder().workers(1).observe(Observe::Counts);
    let scheduler = builder.start().unwrap();
    let ends = process_fn(|_, _, out| {
        out.done(());
        Ok(())
    });
    scheduler.spawn(ends).unwrap().wait();
    let observer = Observer::of(&scheduler);
    let steps = || -> u64 { observer.workers().iter().map(|it| it.counts.steps).sum() };
    // The worker may be about to count.
    while steps() == 0 || steps() != scheduler.stats().total.steps {
        thread::yield_now();
    }
    let workers = observer.workers();
    assert!(workers.iter().all(|it| it.times.is_some()));
    assert_eq!(observer.timers(), scheduler.timers().stats());
    assert!(observer.alarms().is_empty() && observer.long_steps().is_empty());
    let plain = Scheduler::builder().workers(1).build().unwrap();
    let workers = Observer::of(&plain).workers();
    assert!(!workers.is_empty() && workers.iter().all(|it| it.times.is_none()));
}

// pins: V10
#[test]
fn a_process_is_shown_with_its_watchers_restarts_and_links() {
    let scheduler = Scheduler::builder().workers(1).observe(Observe::Counts);
    let scheduler = scheduler.quiet_failures().start().unwrap();
    let starts = AtomicUsize::new(0);
    let fails_once = move || {
        // Ordering: Relaxed: a count alone.
        let is_first = starts.fetch_add(1, Ordering::Relaxed) == 0;
        async move |cx: Cx| {
            if is_first {
                return Err::<(), BoxError>("no stock".into());
            }
            let peer = cx
                .linked()
                .spawn(async |cx: Cx| Ok(cx.sleep(HOUR).await?))?;
            cx.sleep(HOUR).await?;
            drop(peer);
            Ok(())
        }
    };
    let root = Supervisor::one_for_one().child("fails", fails_once);
    let root = root.start(&scheduler).unwrap();
    let observer = Observer::of(&scheduler).in_haste();
    let child = || {
        let node = observer
            .tree()
            .nodes
            .into_iter()
            .find(|it| it.restarts == 1);
        let process = observer.process(node?.pid?)?;
        (!process.waits.is_empty() && process.watched_by.is_some()).then_some(process)
    };
    until("it has been started again", || child().is_some());
    let seen = child().unwrap();
    assert_eq!(
        (seen.restarts, seen.info.parent),
        (Some(1), Some(root.pid()))
    );
    assert_eq!(seen.last_cause.unwrap().to_string(), "failed: no stock");
    assert_eq!(seen.watched_by.unwrap().processes, [root.pid()]);
    assert_eq!((seen.links.len(), seen.waits.len()), (1, 1));
    assert!(seen.counts.unwrap().steps > 0 && seen.bytes.unwrap() > 200);
    let supervisor = || observer.process(root.pid()).unwrap();
    assert_eq!(supervisor().restarts, None);
    until("its monitor is seen", || {
        supervisor().monitors == [seen.info.pid]
    });
    // A waiting thread.
    let end = scheduler.end_of(seen.info.pid).unwrap();
    let outside = || Some(child()?.watched_by?.outside);
    until("it is told of the end", || outside() == Some(1));
    drop(end);
    until("it does not wait any more", || outside() == Some(0));
    assert!(
        observer
            .process(Pid::new(scheduler.host_name(), 1 << 40))
            .is_none()
    );
}

// pins: V10
#[test]
fn readers_have_what_was_counted_since_their_own_answers() {
    let scheduler = Scheduler::builder().workers(1).observe(Observe::Counts);
    let scheduler = scheduler.start().unwrap();
    let observer = Observer::of(&scheduler);
    let other = observer.clone();
    let ends = || {
        let ends = scheduler.spawn(process_fn(|_, events, out| {
            if events.count() > 0 {
                out.done(());
            }
            Ok(())
        }));
        let ends = ends.unwrap();
        ends.send(Message::new("n", ())).unwrap();
        ends.wait();
    };
    ends();
    let first = observer.since(0).unwrap();
    assert_eq!((first.total.done, first.events), (1, Some(1)));
    ends();
    let of_other = other.since(first.sequence).unwrap();
    assert_eq!((of_other.total.done, of_other.events), (1, Some(1)));
    assert!(of_other.sequence > first.sequence);
    ends();
    let own = observer.since(first.sequence).unwrap();
    assert_eq!(
        (own.total.done, own.total.started, own.events),
        (2, 2, Some(2))
    );
    assert!(own.time >= of_other.time && own.sequence > of_other.sequence);
    assert_eq!(other.since(of_other.sequence).unwrap().total.done, 1);
    assert_eq!(observer.since(0).unwrap().total.done, 3);
    // No other observer knows its numbers, and the last 64 are known.
    assert!(Observer::of(&scheduler).since(first.sequence).is_none());
    let mut last = observer.since(0).unwrap();
    for _ in 0..63 {
        last = observer.since(last.sequence).unwrap();
    }
    assert!(observer.since(own.sequence).is_none());
    assert!(observer.since(last.sequence - 63).is_some());
}
