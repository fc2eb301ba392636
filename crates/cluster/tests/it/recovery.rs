//! The recovery of a node from faults.

use bytes::Bytes;
use ganger_cluster::conformance::{PATIENCE, scheduler};
use ganger_cluster::{Cluster, NodeChange, Settings, Twin};
use ganger_proc_api::{Envelope, Pid, actor_fn};
use ganger_sched::Scheduler;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

fn node(twin: &Twin, name: &str, settings: Settings) -> (Scheduler, Cluster) {
    let scheduler = scheduler(name).start().unwrap();
    let builder = Cluster::builder().engine(twin.port()).settings(settings);
    let cluster = builder.join(&scheduler).unwrap();
    (scheduler, cluster)
}

/// Starts a process that passes what it gets to the test, and returns its PID as another node knows
/// it.
fn receiver(scheduler: &Scheduler) -> (Pid, Receiver<Bytes>) {
    let (tell, told) = channel();
    let process = actor_fn(move |_, bytes: Bytes, _| Ok(tell.send(bytes)?));
    let process = scheduler.spawn(process).unwrap();
    (scheduler.absolute(process.pid()), told)
}

fn watched(scheduler: &Scheduler, cluster: &Cluster) -> Receiver<NodeChange> {
    let (tell, told) = channel();
    let watcher = actor_fn(move |_, change: NodeChange, _| Ok(tell.send(change)?));
    let watcher = scheduler.spawn(watcher).unwrap();
    cluster.watch_nodes(watcher.address().recipient());
    told
}

// pins: B22
#[test]
fn a_large_message_passes_a_queue_that_is_smaller() {
    let twin = Twin::new(1);
    let _running = twin.run();
    let mut small = Settings::default();
    small.queue = 16 << 10;
    let (near, _near) = node(&twin, "near", small);
    let (far, _far) = node(&twin, "far", Settings::default());
    let (pid, told) = receiver(&far);
    let large = Bytes::from(vec![7; 1 << 20]);
    let envelope = Envelope::new(None, pid, "bytes", large.clone());
    near.send(envelope).unwrap();
    assert!(told.recv_timeout(PATIENCE).unwrap() == large);
}

// pins: B24
#[test]
fn a_node_that_never_answers_is_told_with_the_number_of_messages() {
    let twin = Twin::new(2);
    let _running = twin.run();
    let mut soon = Settings::default();
    soon.dead = Duration::from_millis(500);
    let (near, cluster) = node(&twin, "near", soon);
    let changes = watched(&near, &cluster);
    let nobody: Pid = "{nobody@main|1}".parse().unwrap();
    for number in 0..3_u64 {
        near.send(Envelope::new(None, nobody, "number", number))
            .unwrap();
    }
    let NodeChange::Unreachable {
        node, undelivered, ..
    } = changes.recv_timeout(PATIENCE).unwrap()
    else {
        panic!("no session was up");
    };
    assert_eq!((node.as_str(), undelivered), ("nobody", 3));
}

// pins: B24
#[test]
fn a_link_that_is_terminated_is_followed_by_another() {
    let twin = Twin::new(3);
    let _running = twin.run();
    let (near, cluster) = node(&twin, "near", Settings::default());
    let (far, _far) = node(&twin, "far", Settings::default());
    let changes = watched(&near, &cluster);
    let (pid, told) = receiver(&far);
    let send = |byte| {
        let bytes = Bytes::from(vec![byte; 8]);
        near.send(Envelope::new(None, pid, "bytes", bytes))
    };
    send(1).unwrap();
    assert_eq!(told.recv_timeout(PATIENCE).unwrap()[0], 1);
    let up = |change| matches!(change, NodeChange::Up { .. });
    assert!(up(changes.recv_timeout(PATIENCE).unwrap()));

    let all = near.processes();
    let mut links = all.iter().filter(|it| it.type_name.ends_with("::Link"));
    let link = links.next().expect("the link is a process").pid;
    near.terminate(link).unwrap();
    let down = changes.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(down, NodeChange::Down { .. }), "{down:?}");
    // The old link is gone once its end is told.
    send(2).unwrap();
    assert_eq!(told.recv_timeout(PATIENCE).unwrap()[0], 2);
    assert!(up(changes.recv_timeout(PATIENCE).unwrap()));
}

/// Loses chunks of a large message, and messages behind it, with their session: the end counts
/// them, and none goes into the next session.
// pins: B3, B22, B24
#[test]
fn what_waits_beside_a_session_is_not_of_the_next() {
    const BEHIND: u64 = 10;
    let twin = Twin::new(4);
    let _running = twin.run();
    let mut soon = Settings::default();
    soon.dead = Duration::from_secs(2);
    let (near, cluster) = node(&twin, "near", soon);
    // The near side ends first, by its own clock, and not because the far side has opened another.
    let mut late = Settings::default();
    late.dead = PATIENCE;
    let (far, at_far) = node(&twin, "far", late);
    let changes = watched(&near, &cluster);
    let far_changes = watched(&far, &at_far);
    let (pid, told) = receiver(&far);
    let send = |bytes: Vec<u8>| {
        let envelope = Envelope::new(None, pid, "bytes", Bytes::from(bytes));
        near.send(envelope).unwrap();
    };
    send(vec![1]);
    assert_eq!(told.recv_timeout(PATIENCE).unwrap()[0], 1);
    let [here, there] = ["near", "far"].map(|name| ganger_cluster::NodeId::new(name).unwrap());
    twin.cut(&here, &there);
    send(vec![2; 4 << 20]);
    for _ in 0..BEHIND {
        send(vec![3]);
    }
    let up = |change| matches!(change, NodeChange::Up { .. });
    assert!(up(changes.recv_timeout(PATIENCE).unwrap()));
    assert!(up(far_changes.recv_timeout(PATIENCE).unwrap()));
    let down = changes.recv_timeout(PATIENCE).unwrap();
    let NodeChange::Down {
        undelivered, why, ..
    } = down
    else {
        panic!("{down:?}");
    };
    assert_eq!(why, ganger_cluster::End::NoProgress);
    assert!(undelivered > BEHIND, "{undelivered} messages are counted");
    twin.heal(&here, &there);
    let is_told = |change| matches!(change, NodeChange::Down { why, .. } if !is_unreadable(&why));
    assert!(is_told(far_changes.recv_timeout(PATIENCE).unwrap()));
    assert!(up(changes.recv_timeout(PATIENCE).unwrap()));
    send(vec![4]);
    let next = told.recv_timeout(PATIENCE).unwrap();
    assert_eq!(&next[..], [4], "a message of the last session");
    assert!(up(far_changes.recv_timeout(PATIENCE).unwrap()));
    assert!(changes.try_recv().is_err() && far_changes.try_recv().is_err());
}

fn is_unreadable(why: &ganger_cluster::End) -> bool {
    matches!(why, ganger_cluster::End::Unreadable(_))
}
