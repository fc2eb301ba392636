//! The lives of processes, as subscribers see them.

use ganger_observe::{
    Life, LifeChange, LifeEvent, LifeEvents, LifeFilter, LifeKind, SupervisorChange, life,
};
use ganger_proc_api::{
    Context, ExitCause, Pid, Process, StepOutput, UpgradeRequest, actor_fn, process_fn,
};
use ganger_sched::{ContextExt as _, Observe, Scheduler};
use ganger_supervise::{ChildSpec, Supervisor};
use std::collections::HashMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

fn ends() -> impl Process {
    process_fn(|_, _, out| {
        out.done(());
        Ok(())
    })
}

fn fails() -> impl Process {
    process_fn(|_, _, _| Err("no luck".into()))
}

fn changes(events: &LifeEvents) -> Vec<(Pid, LifeChange)> {
    events.try_iter().map(|it| (it.pid, it.change)).collect()
}

fn failed() -> LifeChange {
    LifeChange::Ended(ExitCause::Failed("no luck".into()))
}

// pins: V17
#[test]
fn starts_and_ends_are_told_with_what_is_known_of_the_process() {
    let builder = Scheduler::builder().workers(1).quiet_failures();
    let scheduler = life(builder.observe(Observe::Counts)).start().unwrap();
    let lives = Life::of(&scheduler).unwrap();
    // The subscriber learns nothing of processes before its begin.
    scheduler.spawn(ends()).unwrap().wait();
    let events = lives.subscribe(LifeFilter::all(), 100);
    let labelled = scheduler.spawner().labelled("tenant-7");
    let parent = labelled.spawn(actor_fn(|ctx: &Context, (): (), out: &mut StepOutput| {
        drop(ctx.spawn(fails())?);
        out.done(());
        Ok(())
    }));
    let parent = parent.unwrap();
    let pid = parent.pid();
    let before = scheduler.now();
    parent.send(()).unwrap();
    parent.wait();
    let mut seen: Vec<LifeEvent> = Vec::new();
    while seen.len() < 4 {
        seen.push(events.recv_timeout(PATIENCE).expect("an event"));
    }
    let of_parent = |it: &&LifeEvent| it.pid == pid;
    let (own, childs): (Vec<_>, Vec<_>) = seen.iter().partition(of_parent);
    let kinds = |all: &[&LifeEvent]| -> Vec<_> { all.iter().map(|it| it.change.clone()).collect() };
    let done = LifeChange::Ended(ExitCause::Done);
    assert_eq!(kinds(&own), [LifeChange::Started, done]);
    assert_eq!(kinds(&childs), [LifeChange::Started, failed()]);
    for event in &seen {
        assert_eq!(event.label.as_deref(), Some("tenant-7"), "{event:?}");
    }
    assert_eq!(own[0].method.as_str(), "actor");
    for event in childs {
        let of = (event.parent, event.method.as_str());
        assert_eq!(of, (Some(pid), "main"));
        assert!(
            event.type_name.contains("fails") && event.at >= before,
            "{event:?}"
        );
    }
    assert!(own[0].type_name.contains("starts_and_ends") && own[0].parent.is_none());
    assert_eq!((events.try_recv().is_none(), events.lost()), (true, 0));
    assert!(Life::of(&Scheduler::start_default().unwrap()).is_none());
}

// pins: V17
#[test]
fn filters_choose_by_type_method_label_and_kind() {
    let builder = Scheduler::builder().workers(1).quiet_failures();
    let scheduler = life(builder.observe(Observe::Counts)).start().unwrap();
    let lives = Life::of(&scheduler).unwrap();
    let all = LifeFilter::all;
    let filters = [
        all().kind(LifeKind::Failed),
        all().kind(LifeKind::Started).kind(LifeKind::Failed),
        all().type_name("fails"),
        all().label("a").kind(LifeKind::Ended),
        all().method("nothing has it"),
        all().type_name("fails").label("b"),
    ];
    let queues = filters.map(|it| lives.subscribe(it, 100));
    let spawn = |label: &str, is_failing| {
        let spawner = scheduler.spawner().labelled(label);
        let process = match is_failing {
            true => spawner.spawn(fails()),
            false => spawner.spawn(ends()),
        };
        let process = process.unwrap();
        let pid = process.pid();
        process.wait();
        pid
    };
    let (one, two) = (spawn("a", false), spawn("a", true));
    let done = LifeChange::Ended(ExitCause::Done);
    let begun = LifeChange::Started;
    let expected = [
        vec![(two, failed())],
        vec![(one, begun.clone()), (two, begun.clone()), (two, failed())],
        vec![(two, begun), (two, failed())],
        vec![(one, done), (two, failed())],
        vec![],
        vec![],
    ];
    assert_eq!(queues.each_ref().map(changes), expected);
}

// pins: V17
#[test]
fn a_full_queue_loses_and_counts_and_no_worker_waits() {
    let scheduler = life(Scheduler::builder().workers(1)).start().unwrap();
    let lives = Life::of(&scheduler).unwrap();
    let (small, large) = (
        lives.subscribe(LifeFilter::all(), 10),
        lives.subscribe(LifeFilter::all(), 1_000),
    );
    let pids: Vec<_> = (0..50)
        .map(|_| {
            let process = scheduler.spawn(ends()).unwrap();
            let pid = process.pid();
            // An end is there before its reason.
            process.wait();
            pid
        })
        .collect();
    let (kept, all) = (changes(&small), changes(&large));
    assert_eq!((all.len(), large.lost()), (100, 0));
    assert_eq!((&*kept, small.lost()), (&all[..10], 90));
    for (pair, pid) in all.chunks(2).zip(pids) {
        let done = LifeChange::Ended(ExitCause::Done);
        assert_eq!(pair, [(pid, LifeChange::Started), (pid, done)]);
    }
    // There is room again; the ended subscription gets nothing, and hinders nothing.
    drop(large);
    scheduler.spawn(ends()).unwrap().wait();
    assert_eq!((changes(&small).len(), small.lost()), (2, 90));
    drop(scheduler);
    assert!(small.recv_timeout(Duration::ZERO).is_none());
}

// pins: V17
#[test]
fn each_process_has_its_events_in_order_while_subscriptions_come_and_go() {
    let scheduler = life(Scheduler::builder().workers(2)).start().unwrap();
    let lives = Life::of(&scheduler).unwrap();
    let events = lives.subscribe(LifeFilter::all(), 10_000);
    let (is_over, both) = (AtomicBool::new(false), Barrier::new(3));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            both.wait();
            // Ordering: Relaxed: a flag alone.
            while !is_over.load(Ordering::Relaxed) {
                let short = lives.subscribe(LifeFilter::all(), 1);
                let _event = short.recv_timeout(Duration::from_millis(1));
            }
        });
        let starts = || {
            both.wait();
            let all = (0..1_000).map(|_| scheduler.spawn(ends()).unwrap());
            all.for_each(|it| drop(it.wait()));
        };
        let threads = [scope.spawn(starts), scope.spawn(starts)];
        threads.into_iter().for_each(|it| it.join().unwrap());
        // Ordering: Relaxed: a flag alone.
        is_over.store(true, Ordering::Relaxed);
    });
    let mut lived: HashMap<Pid, Vec<LifeChange>> = HashMap::new();
    for (pid, change) in changes(&events) {
        lived.entry(pid).or_default().push(change);
    }
    assert_eq!((lived.len(), events.lost()), (2_000, 0));
    let whole = [LifeChange::Started, LifeChange::Ended(ExitCause::Done)];
    assert!(lived.values().all(|it| *it == whole));
}

// pins: V17
#[test]
fn upgrades_and_restarts_in_place_are_told() {
    let builder = Scheduler::builder().workers(1).quiet_failures();
    let scheduler = life(builder).start().unwrap();
    let lives = Life::of(&scheduler).unwrap();
    let idle = scheduler.spawn(actor_fn(|_, (): (), _| Ok(()))).unwrap();
    let events = lives.subscribe(LifeFilter::all().kind(LifeKind::Upgraded), 10);
    let request = UpgradeRequest::process(ends(), "main", ());
    scheduler.upgrade(idle.pid(), request).unwrap();
    let pid = idle.pid();
    assert!(idle.wait().is_done());
    let event = events.try_recv().unwrap();
    assert_eq!((event.pid, event.change), (pid, LifeChange::Upgraded));
    assert!(event.type_name.contains("ends"), "its new type");

    let events = lives.subscribe(LifeFilter::all().kind(LifeKind::Restarted), 10);
    let child = ChildSpec::new("r", || actor_fn(|_, (): (), _| Err("no luck".into())));
    let tree = Supervisor::one_for_one().with(child.in_place());
    let tree = tree.start(&scheduler).unwrap();
    let address = tree.address::<()>("r").unwrap();
    address.send(()).unwrap();
    let event = events.recv_timeout(PATIENCE).expect("a restart");
    let expected = (address.pid(), LifeChange::Restarted);
    assert_eq!((event.pid, event.change), expected);
}

/// Returns the states of supervisors that come next, with the methods' PIDs left out.
fn states(events: &LifeEvents, count: usize) -> Vec<(Pid, SupervisorChange)> {
    let next = |_| {
        let event = events.recv_timeout(PATIENCE).expect("an event");
        match event.change {
            LifeChange::Supervisor(state) => (event.pid, *state),
            other => panic!("{other:?}"),
        }
    };
    (0..count).map(next).collect()
}

// pins: V17
#[test]
fn supervisors_tell_of_children_that_start_again_and_why_and_of_their_own_end() {
    let builder = Scheduler::builder().workers(1).quiet_failures();
    let scheduler = life(builder).start().unwrap();
    let lives = Life::of(&scheduler).unwrap();
    let events = lives.subscribe(LifeFilter::all().kind(LifeKind::Supervisor), 100);
    let all = lives.subscribe(LifeFilter::all(), 100);
    let root = Supervisor::one_for_one().label("root");
    let root = root.intensity(1, Duration::from_secs(60));
    let root = root.child("steady", || process_fn(|_, _, _| Ok(())));
    let root = root.child("fails", || process_fn(|_, _, _| Err("no luck".into())));
    let root = root.start(&scheduler).unwrap();
    let (child, cause): (std::sync::Arc<str>, _) = ("fails".into(), "no luck".into());
    let restarts = SupervisorChange::Restarts {
        child: child.clone(),
        cause: ExitCause::Failed(cause),
    };
    let gave_up = SupervisorChange::GaveUp {
        child,
        cause: "failed: no luck".into(),
    };
    let expected = [SupervisorChange::Up, restarts, gave_up].map(|it| (root.pid(), it));
    assert_eq!(states(&events, 3), expected);
    drop(root.wait_end());
    // Its own start comes behind `Up`, and its end last.
    let mut order = Vec::new();
    let mut has_ended = false;
    while !has_ended {
        let event = all.recv_timeout(PATIENCE).unwrap();
        if event.pid == root.pid() {
            has_ended = matches!(event.change, LifeChange::Ended(_));
            order.push(std::mem::discriminant(&event.change));
        }
    }
    let state = std::mem::discriminant(&LifeChange::Supervisor(Box::new(SupervisorChange::Up)));
    let started = std::mem::discriminant(&LifeChange::Started);
    let ended = std::mem::discriminant(&LifeChange::Ended(ExitCause::Done));
    assert_eq!(order, [state, started, state, state, ended]);
    assert_eq!(events.try_recv().map(|it| it.change), None);
}

// pins: V17
#[test]
fn a_supervisor_tells_once_that_it_stops_also_below_another() {
    let scheduler = life(Scheduler::builder().workers(1)).start().unwrap();
    let lives = Life::of(&scheduler).unwrap();
    let events = lives.subscribe(LifeFilter::all().kind(LifeKind::Supervisor), 100);
    let below = || {
        let below = Supervisor::one_for_all().label("below");
        below.child("idle", || process_fn(|_, _, _| Ok(())))
    };
    let root = Supervisor::one_for_one()
        .label("root")
        .child("below", below);
    let root = root.start(&scheduler).unwrap();
    let up = states(&events, 2);
    let (below, top) = (up[0].0, up[1].0);
    assert_eq!(up, [below, top].map(|it| (it, SupervisorChange::Up)));
    assert_eq!(top, root.pid());
    scheduler.stop(PATIENCE).unwrap();
    // A supervisor stops its children before it ends.
    let stops = [top, below].map(|it| (it, SupervisorChange::Stops));
    assert_eq!(states(&events, 2), stops);
    assert_eq!(events.try_recv().map(|it| it.change), None);
}

// pins: V17
#[test]
fn a_child_whose_start_fails_and_one_that_is_replaced_start_again_with_a_cause() {
    let scheduler = life(Scheduler::builder().workers(1).quiet_failures());
    let scheduler = scheduler.start().unwrap();
    let lives = Life::of(&scheduler).unwrap();
    let events = lives.subscribe(LifeFilter::all().kind(LifeKind::Supervisor), 100);
    let starts = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    // Runs at first, and fails; its second start fails; the third one stays.
    let flaky = move || -> Result<Box<dyn Process>, ganger_proc_api::BoxError> {
        // Ordering: Relaxed: a count alone.
        match starts.fetch_add(1, Ordering::Relaxed) {
            0 => Ok(Box::new(fails())),
            1 => Err("not now".into()),
            _ => Ok(Box::new(process_fn(|_, _, _| Ok(())))),
        }
    };
    let root = Supervisor::one_for_all().label("root");
    let root = root.child("idle", || process_fn(|_, _, _| Ok(())));
    let root = root.child("flaky", flaky).start(&scheduler).unwrap();
    let seen = states(&events, 4);
    let of = |child: &str| -> Vec<ExitCause> {
        let cause = |it: &(Pid, SupervisorChange)| match &it.1 {
            SupervisorChange::Restarts { child: of, cause } if **of == *child => {
                Some(cause.clone())
            }
            _ => None,
        };
        seen.iter().filter_map(cause).collect()
    };
    let text = |text: &str| ExitCause::Failed(text.into());
    assert_eq!(of("flaky"), [text("no luck"), text("not now")]);
    let [ExitCause::Cancelled(_)] = &*of("idle") else {
        panic!("{seen:?}");
    };
    assert_eq!(seen[0], (root.pid(), SupervisorChange::Up));
}
