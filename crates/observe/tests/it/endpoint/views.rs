//! Groups, the tree and waits.

use super::support::{get, until};
use ganger_lock::Mutex;
use ganger_observe::api::{Groups, State, Tree, WaitFor, Waits};
use ganger_observe::{Endpoint, Observer, Party, serve};
use ganger_proc_api::{BoxError, Message, Pid, process_fn};
use ganger_sched::{ContextExt as _, Observe, Scheduler};
use ganger_supervise::Supervisor;
use ganger_task::Cx;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

async fn waits(cx: Cx<u64>) -> Result<(), BoxError> {
    while cx.recv().await.is_some() {}
    Ok(())
}

async fn sleeps(cx: Cx) -> Result<(), BoxError> {
    cx.sleep(Duration::from_hours(1)).await?;
    Ok(())
}

fn observed(host: &str) -> Scheduler {
    let builder = Scheduler::builder().workers(1).observe(Observe::Counts);
    builder.host(host).start().unwrap()
}

// pins: V10
#[test]
fn alike_processes_are_a_group_and_what_they_wait_for_tells_them_apart() {
    let (one, two) = (observed("one"), observed("two"));
    let endpoint = serve("127.0.0.1:0").scheduler(&one).scheduler(&two);
    let endpoint = endpoint.start().unwrap();
    let _idle: Vec<_> = (0..3).map(|_| one.spawn(waits).unwrap()).collect();
    let _asleep: Vec<_> = (0..2).map(|_| one.spawn(sleeps).unwrap()).collect();
    let tenant = one.spawner().labelled("tenant").spawn(sleeps).unwrap();
    let _other = two.spawn(waits).unwrap();
    let groups = || get(&endpoint, "/api/v1/groups").json::<Groups>();
    until("all wait", || groups().groups.len() == 4);
    let groups = groups();
    assert_eq!(groups.others, 0);
    let counts: Vec<_> = groups.groups.iter().map(|it| it.count).collect();
    assert_eq!(counts, [3, 2, 1, 1]);
    let [idle, asleep, labelled, other] = &*groups.groups else {
        panic!("{groups:?}");
    };
    assert_eq!((idle.scheduler, other.scheduler), (1, 2));
    assert!(idle.type_name.ends_with("::waits") && asleep.type_name.ends_with("::sleeps"));
    assert_eq!((idle.state, asleep.state), (State::Idle, State::Blocked));
    assert_eq!((&idle.waits_for, &*idle.method), (&None, "task"));
    assert_eq!(asleep.waits_for.as_deref(), Some("sleep"));
    assert_eq!(labelled.label.as_deref(), Some("tenant"));
    drop(tenant);
}

// pins: V10
#[test]
fn the_tree_has_supervisors_with_restarts_and_below_each_process_what_it_has_started() {
    let scheduler = observed("tree");
    let endpoint = serve("127.0.0.1:0").scheduler(&scheduler).start().unwrap();
    let starts = Arc::new(AtomicUsize::new(0));
    let fails_once = move || {
        // Ordering: Relaxed: a count alone.
        let number = starts.fetch_add(1, Ordering::Relaxed);
        async move |cx: Cx| match number {
            0 => Err::<(), BoxError>("the first one fails".into()),
            _ => {
                let child = cx.named("grandchild").spawn(waits)?;
                cx.sleep(Duration::from_hours(1)).await?;
                drop(child);
                Ok(())
            }
        }
    };
    let below = || Supervisor::dynamic().label("below");
    let root = Supervisor::one_for_one().label("root");
    let root = root.child("fails", fails_once).child("below", below);
    let root = root.start(&scheduler).unwrap();
    let alone = scheduler.spawn(waits).unwrap();
    let tree = || get(&endpoint, "/api/v1/tree").json::<Tree>();
    until("all are there", || {
        let nodes = tree().nodes;
        nodes.len() == 5 && nodes.iter().any(|it| it.restarts == 1 && it.pid.is_some())
    });
    let Tree { nodes, others, .. } = tree();
    assert_eq!(others, 0);
    let find = |pid: Pid| nodes.iter().position(|it| it.pid == Some(pid.to_string()));
    let at = |name: &str| {
        nodes
            .iter()
            .position(|it| it.name.as_deref() == Some(name))
            .unwrap()
    };
    let top = find(root.pid()).unwrap();
    assert!(nodes[top].is_supervisor && nodes[top].parent.is_none());
    assert_eq!(nodes[top].kind, "root (one for one)");
    let fails = &nodes[at("fails")];
    assert_eq!((fails.parent, fails.restarts), (Some(top as u64), 1));
    assert_eq!(
        fails.last_cause.as_deref(),
        Some("failed: the first one fails")
    );
    let below = &nodes[at("below")];
    assert!(below.is_supervisor && below.parent == Some(top as u64));
    assert_eq!(below.kind, "below (dynamic)");
    assert_eq!(nodes[at("grandchild")].parent, Some(at("fails") as u64));
    let alone = &nodes[find(alone.pid()).unwrap()];
    assert!(alone.parent.is_none() && !alone.is_supervisor);
    // Parents come first.
    let parents = nodes
        .iter()
        .zip(0..)
        .filter_map(|(it, at)| Some((it.parent?, at)));
    assert!(parents.into_iter().all(|(parent, at)| parent < at));
}

/// Spawns two processes of the scheduler, at the PIDs 1 and 2, that have a lock each and wait for
/// the other's.
fn cross(scheduler: &Scheduler) {
    let locks = Arc::new([Mutex::new(()), Mutex::new(())]);
    let both = Arc::new(AtomicUsize::new(0));
    for (first, id) in [(0, 1), (1, 2)] {
        let (locks, both) = (Arc::clone(&locks), Arc::clone(&both));
        let process = ganger_task::process(async move |cx: Cx| {
            let _own = locks[first].lock().await;
            // Ordering: Relaxed: a count alone.
            both.fetch_add(1, Ordering::Relaxed);
            // Ordering: Relaxed: a count alone.
            while both.load(Ordering::Relaxed) < 2 {
                cx.yield_now().await;
            }
            let _other = locks[1 - first].lock().await;
            Ok::<(), BoxError>(())
        });
        let pid = Pid::new(scheduler.host_name(), id);
        drop(scheduler.submit_as(pid, process, "crosses", ()).unwrap());
    }
}

fn graph(endpoint: &Endpoint) -> Waits {
    get(endpoint, "/api/v1/waits").json()
}

fn place(at: u64) -> usize {
    usize::try_from(at).unwrap()
}

fn of_lock(waits: &Waits) -> Vec<&WaitFor> {
    waits.waits.iter().filter(|it| it.kind == "mutex").collect()
}

// pins: V10
#[test]
fn two_schedulers_with_the_same_host_and_pids_are_never_mixed_up() {
    let (one, two) = (observed("twin"), observed("twin"));
    let endpoint = serve("127.0.0.1:0").scheduler(&one).scheduler(&two);
    let endpoint = endpoint.watch_waits().start().unwrap();
    // In the first scheduler, each process waits for the other. In the second scheduler, PID 2
    // waits for the lock of PID 1.
    cross(&one);
    let lock = Arc::new(Mutex::new(()));
    let has = {
        let lock = Arc::clone(&lock);
        ganger_task::process(async move |cx: Cx| {
            let _own = lock.lock().await;
            cx.sleep(Duration::from_hours(1)).await?;
            Ok::<(), BoxError>(())
        })
    };
    let wants = ganger_task::process(async move |_: Cx| {
        drop(lock.lock().await);
        Ok::<(), BoxError>(())
    });
    let pid = |id| Pid::new(two.host_name(), id);
    drop(two.submit_as(pid(1), has, "has", ()).unwrap());
    until("it has the lock", || {
        two.process(pid(1)).unwrap().state == ganger_sched::ProcessState::Blocked
    });
    drop(two.submit_as(pid(2), wants, "wants", ()).unwrap());
    let of =
        |scheduler| move |it: &&WaitFor| it.scheduler == Some(scheduler) && !it.parties.is_empty();
    until("all wait", || {
        let waits = graph(&endpoint);
        let locks = of_lock(&waits);
        locks.iter().copied().filter(of(1)).count() == 2
            && locks.iter().copied().filter(of(2)).count() == 1
    });
    let waits = graph(&endpoint);
    let cycles: Vec<_> = waits
        .cycles
        .iter()
        .filter(|it| {
            it.iter()
                .any(|at| waits.waits[place(*at)].waiter.contains("twin"))
        })
        .collect();
    let [cycle] = &*cycles else {
        panic!("{waits:?}");
    };
    let cycle: Vec<_> = cycle.iter().map(|at| &waits.waits[place(*at)]).collect();
    assert_eq!(cycle.len(), 2);
    for (wait, other) in cycle.iter().zip(cycle.iter().rev()) {
        assert_eq!(wait.scheduler, Some(1));
        assert_eq!(wait.parties, std::slice::from_ref(&other.waiter));
        assert_eq!(wait.party_schedulers, [Some(1)]);
        assert!(wait.waiter_name.is_some());
    }
    let locks = of_lock(&waits);
    let free = locks.iter().find(|it| it.scheduler == Some(2)).unwrap();
    assert_eq!(free.party_schedulers, [Some(2)]);
    let head = waits
        .heads
        .iter()
        .find(|it| it.scheduler == Some(2))
        .unwrap();
    assert_eq!((&*head.party, head.waiters), ("{twin|1}", 1));
    assert!(waits.heads.iter().all(|it| it.scheduler != Some(1)));
    // The observer of the second knows the same, by the numbers of schedulers.
    let seen = Observer::of(&two).waits();
    let party = Party::Process(pid(1), two.number());
    assert!(seen.heads.iter().any(|it| it.party == party));
    let cycle = seen.cycles.iter().find(|it| {
        it.iter().all(|at| {
            let Party::Process(_, number) = seen.waits[*at].waiter else {
                return false;
            };
            number == one.number()
        })
    });
    assert!(cycle.is_some(), "{seen:?}");
}

// pins: V10
#[test]
fn senders_that_wait_for_room_and_commands_that_wait_are_shown() {
    let builder = Scheduler::builder()
        .workers(1)
        .mailbox_limit(1)
        .host("room");
    let scheduler = builder.observe(Observe::Counts).start().unwrap();
    let endpoint = serve("127.0.0.1:0").scheduler(&scheduler).watch_waits();
    let endpoint = endpoint.start().unwrap();
    // The process takes no message.
    let full = scheduler.spawn(process_fn(|_, _, _| Ok(()))).unwrap();
    full.send(Message::new("first", ())).unwrap();
    let address = full.address().clone();
    let sender = scheduler.spawn(async move |_: Cx| {
        address.send_async(Message::new("second", ())).await?;
        Ok(())
    });
    let sender = sender.unwrap();
    let asleep = scheduler.spawn(sleeps).unwrap();
    let (full_pid, sender_pid) = (full.pid().to_string(), sender.pid().to_string());
    let wait_of = |waits: &Waits, kind: &str, party: &str| -> Option<WaitFor> {
        let mut all = waits.waits.iter();
        let found = all.find(|it| it.kind == kind && it.parties.iter().any(|it| it == party));
        found.cloned()
    };
    std::thread::scope(|scope| {
        // This thread waits for the end of the sender.
        scope.spawn(|| sender.wait());
        until("all wait", || {
            let waits = graph(&endpoint);
            wait_of(&waits, "mailbox", &full_pid).is_some()
                && wait_of(&waits, "exit", &sender_pid).is_some()
                && waits.waits.iter().any(|it| it.kind == "sleep")
        });
        let waits = graph(&endpoint);
        let room = wait_of(&waits, "mailbox", &full_pid).unwrap();
        assert_eq!((room.scheduler, &room.waiter), (Some(1), &sender_pid));
        let end = wait_of(&waits, "exit", &sender_pid).unwrap();
        assert!(end.scheduler.is_none() && end.waiter.starts_with("ThreadId"));
        let sleep = waits.waits.iter().find(|it| it.kind == "sleep").unwrap();
        assert_eq!(sleep.waiter, asleep.pid().to_string());
        assert!(sleep.parties.is_empty() && waits.watched_ns > 0);
        // The thread waits behind the sender.
        let head = waits.heads.iter().find(|it| it.party == full_pid).unwrap();
        assert_eq!(head.waiters, 2);
        assert_eq!(waits.others, 0);
        scheduler.terminate(full.pid()).unwrap();
    });
    until("no sender waits", || {
        wait_of(&graph(&endpoint), "mailbox", &full_pid).is_none()
    });
}

// pins: V10
#[test]
fn the_question_of_a_viewer_is_no_wait_of_the_program() {
    let scheduler = observed("quiet");
    let endpoint = serve("127.0.0.1:0").scheduler(&scheduler).watch_waits();
    let endpoint = endpoint.start().unwrap();
    let of_viewer = |host: &str| host.contains("observe|");
    for _ in 0..3 {
        // Viewers of other tests' endpoints may ask at a moment; this one asks at each look.
        until("no question of a viewer is a wait", || {
            let waits = get(&endpoint, "/api/v1/waits").json::<Waits>();
            let mut waiters = waits.waits.iter().map(|it| &it.waiter);
            let mut heads = waits.heads.iter().map(|it| &it.party);
            !waiters.any(|it| of_viewer(it)) && !heads.any(|it| of_viewer(it))
        });
    }
}
