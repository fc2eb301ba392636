//! The engine as a guest of the node's scheduler.

use crate::support::{COOKIE, PATIENCE, until};
use ganger_cluster::Cluster;
use ganger_cluster_direct::Direct;
use ganger_net::Net;
use ganger_proc_api::{Envelope, actor_fn};
use ganger_sched::Scheduler;
use ganger_task::Cx;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::channel;
use std::time::Duration;

/// Starts a node with a single worker, which the engine's processes share.
fn guest(name: &str, seed: Option<SocketAddr>) -> (Scheduler, Cluster, Direct) {
    let engine = Direct::listen("127.0.0.1:0").cookie(COOKIE);
    start(name, engine.seeds(seed.map(|it| it.to_string())))
}

fn start(name: &str, engine: Direct) -> (Scheduler, Cluster, Direct) {
    let scheduler = Scheduler::builder().workers(1).node(name);
    let scheduler = scheduler.driver(Net::new().unwrap()).start().unwrap();
    let cluster = Cluster::builder().engine(engine.clone()).join(&scheduler);
    (scheduler, cluster.unwrap(), engine)
}

fn connected() -> [(Scheduler, Cluster, Direct); 2] {
    let alpha = guest("alpha", None);
    let beta = guest("beta", alpha.2.local_addr());
    until("the nodes are connected", || {
        [&alpha, &beta].iter().all(|it| it.1.nodes().len() == 1)
    });
    [alpha, beta]
}

/// Counts the processes of the engine in a scheduler.
fn guests(scheduler: &Scheduler) -> usize {
    let all = scheduler.processes();
    let is_guest = |name: &str| name.contains("cluster_direct");
    all.iter().filter(|it| is_guest(it.type_name)).count()
}

/// Stops a guest: all accepted messages arrive, no process is forced to end, and the single worker
/// never waits for itself.
// pins: B25, H5
#[test]
fn a_guest_ends_with_its_scheduler() {
    let [alpha, beta] = connected();
    let (tell, told) = channel();
    let sum = beta
        .0
        .spawn(actor_fn(move |_, number: u64, _| Ok(tell.send(number)?)));
    let sum = beta.0.absolute(sum.unwrap().pid());
    for number in 0..1_000_u64 {
        alpha
            .0
            .send_blocking(Envelope::new(None, sum, "number", number))
            .unwrap();
    }
    let report = alpha.0.stop(PATIENCE).unwrap();
    assert_eq!((report.forced, &*report.stuck), (0, &[][..]));
    for number in 0..1_000 {
        assert_eq!(told.recv_timeout(PATIENCE), Ok(number));
    }
    until("the node has left", || beta.1.nodes().is_empty());
    assert_eq!(alpha.2.local_addr(), None);
}

/// Leaves the cluster: no process of the engine is left, and the scheduler goes on.
// pins: H5
#[test]
fn a_guest_leaves_its_scheduler_alone() {
    let [alpha, beta] = connected();
    assert!(guests(&alpha.0) >= 5, "{:?}", alpha.0.processes());
    alpha.1.leave(PATIENCE);
    until("the node has left", || beta.1.nodes().is_empty());
    until("no process of the engine", || guests(&alpha.0) == 0);
    let one = alpha.0.spawn(async move |_: Cx| Ok(1_u64)).unwrap();
    assert_eq!(one.wait().take::<u64>().unwrap(), 1);
    let report = beta.0.stop(PATIENCE).unwrap();
    assert_eq!(report.forced, 0);
}

/// Stops a guest without time: the rest ends at once.
// pins: H5
#[test]
fn a_guest_bears_a_stop_without_time() {
    let [alpha, beta] = connected();
    alpha.0.stop(Duration::ZERO).unwrap();
    until("the node has gone", || beta.1.nodes().is_empty());
    assert_eq!(alpha.2.local_addr(), None);
}

/// Ends the engine during a dial to a silent peer: the dial ends, too, long before the time for
/// handshakes.
// pins: H5
#[test]
fn a_dial_under_way_ends_with_the_engine() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let engine = Direct::listen("127.0.0.1:0").cookie(COOKIE);
    let engine = engine.seeds([silent.local_addr().unwrap().to_string()]);
    let alpha = start("alpha", engine.handshake_limit(100 * PATIENCE));
    let _dialled = silent.accept().unwrap();
    alpha.1.leave(Duration::from_millis(10));
    until("no process of the engine", || guests(&alpha.0) == 0);
    let report = alpha.0.stop(PATIENCE).unwrap();
    assert_eq!(report.forced, 0);
}
