//! Code of users that the node calls for a notice, and that calls the node back.

use ganger_cluster::{
    Builder, Cluster, NameLost, NodeChange, StoreFaults, StrongNames, Twin, TwinStore,
};
use ganger_proc_api::{Instant, actor_fn};
use ganger_sched::{Recipient, Scheduler};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

fn node(twin: &Twin, name: &str, set: impl FnOnce(Builder) -> Builder) -> (Scheduler, Cluster) {
    let scheduler = Scheduler::builder().workers(2).node(name);
    let scheduler = scheduler.start().unwrap();
    let cluster = set(Cluster::builder().engine(twin.port())).join(&scheduler);
    (scheduler, cluster.unwrap())
}

/// A change, and how many nodes were up as its message was made.
struct Counted(NodeChange, usize);

static NODE: OnceLock<(Cluster, Recipient<NodeChange>)> = OnceLock::new();

impl From<NodeChange> for Counted {
    fn from(change: NodeChange) -> Self {
        let (cluster, late) = NODE.get().expect("the node is there before its changes");
        if matches!(change, NodeChange::Up { .. }) {
            cluster.watch_nodes(late.clone());
        }
        Self(change, cluster.nodes().len())
    }
}

// pins: B24
#[test]
fn a_watcher_of_nodes_may_call_the_cluster_and_all_get_changes_in_their_order() {
    let twin = Twin::new(7);
    twin.hints(true);
    let _running = twin.run();
    let (scheduler, cluster) = node(&twin, "near", |it| it);
    let (tell_late, told_late) = channel();
    let late = actor_fn(move |_, change: NodeChange, _| Ok(tell_late.send(change)?));
    let late = scheduler.spawn(late).unwrap();
    let late = late.address().recipient();
    assert!(NODE.set((cluster.clone(), late)).is_ok());
    let (tell, told) = channel();
    let counts = actor_fn(move |_, change: Counted, _| Ok(tell.send(change)?));
    let counts = scheduler.spawn(counts).unwrap();
    cluster.watch_nodes(counts.address().recipient());

    let far = node(&twin, "far", |it| it);
    let up = told.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(up, Counted(NodeChange::Up { .. }, 1)));
    let up = told_late.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(up, NodeChange::Up { .. }), "{up:?}");
    drop(far);
    let down = told.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(down, Counted(NodeChange::Down { .. }, 0)));
    let down = told_late.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(down, NodeChange::Down { .. }), "{down:?}");
}

/// Whether the name was held as the message of its loss was made.
struct Loss(bool);

static NAMES: OnceLock<(StrongNames, Recipient<NameLost>)> = OnceLock::new();

impl From<NameLost> for Loss {
    fn from(_: NameLost) -> Self {
        let (names, own) = NAMES.get().expect("the names are there before a loss");
        // The store is down, so the call waits, and its drop takes the claim back.
        drop(names.register("another", own.clone()));
        Self(names.token("billing").is_some())
    }
}

// pins: B34
#[test]
fn the_owner_of_a_lost_name_may_call_the_names() {
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
    let owner = actor_fn(move |_, Loss(is_held), _| Ok(tell.send(is_held)?));
    let owner = scheduler.spawn(owner).unwrap();
    let owner = || owner.address().recipient::<NameLost>();
    assert!(NAMES.set((names.clone(), owner())).is_ok());
    let taken = names.register("billing", owner()).wait_timeout(PATIENCE);
    taken.unwrap();
    let mut down = StoreFaults::default();
    down.down = true;
    store.faults(down);
    clock.fetch_add(5_000_000_000, Ordering::SeqCst);
    assert!(names.token("billing").is_none());
    assert!(!told.recv_timeout(PATIENCE).unwrap());
}
