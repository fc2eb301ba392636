//! Panics of users' code called by the node: connections and names go on.

use ganger_cluster::{
    Builder, Cluster, NameLost, NodeChange, Running, StoreFaults, Twin, TwinStore,
};
use ganger_proc_api::{CommandError, Instant, Message, NodeName, Payload, actor_fn, process_fn};
use ganger_sched::Scheduler;
use serde::{Deserialize, Serialize};
use std::panic::panic_any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// Its destructor panics at its reader's node.
#[derive(Serialize, Deserialize)]
struct Mine {
    #[serde(skip)]
    is_armless: bool,
}

impl Drop for Mine {
    fn drop(&mut self) {
        assert!(self.is_armless || thread::panicking(), "on purpose");
    }
}

fn mine() -> Mine {
    Mine { is_armless: true }
}

type Node = (Scheduler, Cluster);

fn node(twin: &Twin, name: &str, set: impl FnOnce(Builder) -> Builder) -> Node {
    let scheduler = Scheduler::builder().workers(2).node(name).quiet_failures();
    let scheduler = scheduler.start().unwrap();
    let builder = Cluster::builder().engine(twin.port());
    let builder = set(builder.types(|types| _ = types.add::<Mine>("mine")));
    let cluster = builder.join(&scheduler).unwrap();
    (scheduler, cluster)
}

struct Two {
    near: Node,
    far: Node,
    _running: Running,
}

fn two() -> Two {
    let twin = Twin::new(7);
    twin.hints(true);
    let running = twin.run();
    let (near, far) = (node(&twin, "near", |it| it), node(&twin, "far", |it| it));
    while near.1.nodes().is_empty() || far.1.nodes().is_empty() {
        thread::yield_now();
    }
    Two {
        near,
        far,
        _running: running,
    }
}

// pins: B18
#[test]
fn a_destructor_that_panics_ends_no_link() {
    let two = two();
    let gone = two.far.0.spawn(process_fn(|_, _, _| Ok(()))).unwrap();
    let to = two.far.0.absolute(gone.pid());
    two.far.0.terminate(gone.pid()).unwrap();
    drop(gone.wait_timeout(PATIENCE).unwrap());
    let far = NodeName::new("far").unwrap();
    // A message without a process, and inputs without a taker.
    two.near
        .0
        .send(Message::new("mine", Payload::any(mine())).to(to))
        .unwrap();
    let call = two.near.1.call_on::<Mine, u64>(far, "no function", mine());
    let refused = call.wait_timeout(PATIENCE);
    assert!(
        matches!(refused, Err(CommandError::Failed(_))),
        "{refused:?}"
    );
    let start = two.near.1.spawn_on(far, "no kind", mine()).call();
    let refused = start.wait_timeout(PATIENCE);
    assert!(
        matches!(refused, Err(CommandError::Failed(_))),
        "{refused:?}"
    );
    assert_eq!(two.near.1.peers()[0].ended, 0, "the session lasts");
    assert_eq!(two.far.1.peers()[0].ended, 0, "the session lasts");
}

enum Nasty {
    Number(u64),
}

/// The payload of a panic, whose end is another panic.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("on purpose, again");
    }
}

impl From<NodeChange> for Nasty {
    fn from(_: NodeChange) -> Self {
        panic_any(Bomb);
    }
}

impl From<NameLost> for Nasty {
    fn from(_: NameLost) -> Self {
        panic_any(Bomb);
    }
}

// pins: B24
#[test]
fn a_watcher_of_nodes_whose_function_panics_ends_no_link() {
    let twin = Twin::new(7);
    twin.hints(true);
    let _running = twin.run();
    let near = node(&twin, "near", |it| it);
    let nasty = near.0.spawn(actor_fn(|_, _: Nasty, _| Ok(()))).unwrap();
    near.1.watch_nodes(nasty.address().recipient());
    let (tell, told) = channel();
    let watcher = actor_fn(move |_, change: NodeChange, _| Ok(tell.send(change)?));
    let watcher = near.0.spawn(watcher).unwrap();
    near.1.watch_nodes(watcher.address().recipient());
    let far = node(&twin, "far", |it| it);
    let third = node(&twin, "third", |it| it);
    for _ in 0..2 {
        let up = told.recv_timeout(PATIENCE).unwrap();
        assert!(matches!(up, NodeChange::Up { .. }), "{up:?}");
    }
    let found = near.1.whereis(NodeName::new("far").unwrap(), "nobody");
    assert_eq!(found.wait_timeout(PATIENCE).unwrap(), None);
    for peer in far.1.peers().iter().chain(&third.1.peers()) {
        assert_eq!(peer.ended, 0, "the session lasts");
    }
}

// pins: B34, B35
#[test]
fn owners_whose_code_panics_end_no_names_of_others() {
    let (twin, store) = (Twin::new(1), TwinStore::new(1));
    let _clock = twin.run();
    let clock = Arc::new(AtomicU64::new(1));
    let of_lease = Arc::clone(&clock);
    let (scheduler, cluster) = node(&twin, "near", |builder| {
        let now = move || Instant::from_nanos(of_lease.load(Ordering::SeqCst));
        builder.store(store.port("near")).lease_clock(now)
    });
    let names = cluster.strong_names().unwrap();
    let (tell, told) = channel();
    let nasty = actor_fn(move |_, Nasty::Number(number), _| Ok(tell.send(number)?));
    let nasty = scheduler.spawn(nasty).unwrap();
    let owner = || nasty.address().recipient::<NameLost>();
    names
        .register("billing", owner())
        .wait_timeout(PATIENCE)
        .unwrap();
    let lock = names.lock("invoices").wait_timeout(PATIENCE).unwrap();
    let (call, called) = channel();
    lock.on_lost(move || {
        call.send(()).unwrap();
        panic_any(Bomb);
    });
    let mut down = StoreFaults::default();
    down.down = true;
    store.faults(down);
    clock.fetch_add(5_000_000_000, Ordering::SeqCst);
    assert!(names.token("billing").is_none());
    called.recv_timeout(PATIENCE).unwrap();
    store.faults(StoreFaults::default());
    store.advance(Duration::from_secs(10));
    // The keeper goes on.
    names
        .register("billing", owner())
        .wait_timeout(PATIENCE)
        .unwrap();
    nasty.address().send(Nasty::Number(7)).unwrap();
    assert_eq!(told.recv_timeout(PATIENCE).unwrap(), 7);
}
