//! The nodes of a cluster.

use super::support::{get, until};
use crate::metrics::documented_of;
use ganger_cluster::{Cluster, NameLost, NameRevoked, NodeId, StoreFaults, Twin, TwinStore};
use ganger_link::Registry as _;
use ganger_observe::api::{ClusterName, ClusterNames, Node, NodeLease, NodeStore, Nodes, Peer};
use ganger_observe::{Alarms, Kind, Observer, serve};
use ganger_proc_api::{ExitCause, Instant, NodeName, actor_fn};
use ganger_sched::Scheduler;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

fn node(twin: &Twin, name: &str) -> (Scheduler, Cluster) {
    let scheduler = Scheduler::builder().workers(1).node(name).start().unwrap();
    let builder = Cluster::builder().cluster("shop").cookie("secret");
    let cluster = builder.engine(twin.port()).join(&scheduler).unwrap();
    (scheduler, cluster)
}

// pins: V21
#[test]
fn peers_are_shown_with_their_sessions_and_what_has_ended() {
    let twin = Twin::new(1);
    let _clock = twin.run();
    let ((alpha, at_alpha), (beta, at_beta)) = (node(&twin, "alpha"), node(&twin, "beta"));
    let lone = Scheduler::builder().workers(1).start().unwrap();
    let endpoint = serve("127.0.0.1:0").scheduler(&lone).scheduler(&alpha);
    let endpoint = endpoint.start().unwrap();
    assert_eq!(Observer::of(&lone).nodes(), None);
    let peers = || -> Vec<Peer> {
        let seen: Nodes = get(&endpoint, "/api/v1/nodes").json();
        let [node] = &*seen.nodes else {
            panic!("{seen:?}");
        };
        let shown = (node.scheduler, &*node.name, &*node.cluster);
        assert_eq!(shown, (2, "alpha", "shop"));
        assert_eq!(node.incarnation, at_alpha.incarnation().to_string());
        node.peers.clone()
    };
    assert_eq!(peers(), []);

    let sleeper = beta.spawn(actor_fn(|_, (): (), _| Ok(()))).unwrap();
    let end = alpha.end_of(beta.absolute(sleeper.pid())).unwrap();
    until("the session is up", || at_beta.nodes().len() == 1);
    until("beta is up", || peers()[0].state == "up");
    let seen = &peers()[0];
    let run = at_beta.incarnation().to_string();
    assert_eq!(
        (&*seen.name, seen.incarnation.as_deref()),
        ("beta", Some(&*run))
    );
    assert_eq!((seen.watching, seen.watched, seen.ended), (1, 0, 0));
    until("the watch has arrived", || at_beta.peers()[0].watched == 1);
    let metrics = get(&endpoint, "/metrics").body;
    let labels = "{scheduler=\"main\",node=\"alpha\",peer=\"beta\"}";
    for name in ["up", "watching"] {
        let line = format!("ganger_session_{name}{labels} 1");
        assert!(metrics.lines().any(|it| it == line), "{line}\n{metrics}");
    }
    for (name, kind, _) in documented_of(|section| section == "Nodes of a cluster") {
        let total = if kind == "counter" { "_total" } else { "" };
        let name = name.replace('.', "_");
        let name = if name.ends_with("roundtrip") {
            name + "_seconds"
        } else {
            name + total
        };
        let is_it = |line: &str| line.starts_with(&format!("# TYPE {name} {kind}"));
        assert!(metrics.lines().any(is_it), "{name}\n{metrics}");
    }

    twin.crash(&NodeId::new("beta").unwrap());
    assert_eq!(end.wait(), ExitCause::NoConnection);
    until("the end is shown", || peers()[0].ended == 1);
    let seen = &peers()[0];
    assert_eq!((seen.watching, seen.incarnation.as_deref()), (0, None));
    assert!(seen.last_end.is_some());
    assert!(NodeName::new("beta").is_ok_and(|it| at_alpha.stats(it).is_some()));
}

enum Owner {
    Lost,
}

impl From<NameLost> for Owner {
    fn from(_: NameLost) -> Self {
        Self::Lost
    }
}

impl From<NameRevoked> for Owner {
    fn from(_: NameRevoked) -> Self {
        Self::Lost
    }
}

// pins: V22
#[test]
fn names_the_lease_and_the_store_are_shown_also_while_the_store_is_down() {
    let (twin, store) = (Twin::new(1), TwinStore::new(1));
    // The time of the lease stands still but for the test.
    let clock = Arc::new(AtomicU64::new(1));
    let now = Arc::clone(&clock);
    let alpha = Scheduler::builder().workers(1).node("alpha");
    let alpha = alpha.start().unwrap();
    let at_alpha = Cluster::builder()
        .engine(twin.port())
        .store(store.port("alpha"))
        .lease_clock(move || Instant::from_nanos(now.load(Ordering::SeqCst)))
        .join(&alpha)
        .unwrap();
    let endpoint = serve("127.0.0.1:0").scheduler(&alpha).start().unwrap();
    let node = || -> Node {
        let seen: Nodes = get(&endpoint, "/api/v1/nodes").json();
        seen.nodes[0].clone()
    };
    let reached = NodeStore {
        what: "a store of this program alone, for tests".to_owned(),
        lost_ns: None,
        waiting: 0,
    };
    until("the store tells", || {
        node().store.as_ref() == Some(&reached)
    });
    assert_eq!(
        (node().names, node().lease),
        (ClusterNames::default(), None)
    );

    let names = at_alpha.strong_names().unwrap();
    let owner = alpha.spawn(actor_fn(|_, _: Owner, _| Ok(()))).unwrap();
    let name = names.register("billing", owner.address().recipient());
    let token = name.wait_timeout(Duration::from_secs(60)).unwrap().0;
    let lost = owner.address().recipient();
    at_alpha.register_name("cart", &owner, lost).unwrap();
    until("the name has come back", || node().names.strong == 1);
    let shown = |name: &str, token: Option<u64>, is_given_up| ClusterName {
        name: name.to_owned(),
        pid: owner.pid().to_string(),
        node: "alpha".to_owned(),
        token,
        is_given_up,
    };
    let all = |is_given_up| ClusterNames {
        eventual: 1,
        strong: 1,
        first: vec![
            shown("billing", Some(token), is_given_up),
            shown("cart", None, false),
        ],
    };
    let lease = |left_ns| NodeLease {
        left_ns,
        whole_ns: 5_000_000_000,
        names: 1,
        locks: 0,
        waiting: 0,
    };
    let seen = node();
    assert_eq!(seen.names, all(false));
    assert_eq!(seen.lease, Some(lease(5_000_000_000)));
    assert_eq!(seen.store, Some(reached));
    let has = |lines: &[&str]| {
        let metrics = get(&endpoint, "/metrics").body;
        for line in lines {
            assert!(metrics.lines().any(|it| it == *line), "{line}\n{metrics}");
        }
        metrics
    };
    let metrics = has(&[
        "ganger_name_count{scheduler=\"main\",node=\"alpha\",kind=\"eventual\"} 1",
        "ganger_name_count{scheduler=\"main\",node=\"alpha\",kind=\"strong\"} 1",
        "ganger_lease_left_seconds{scheduler=\"main\",node=\"alpha\"} 5",
        "ganger_lease_held{scheduler=\"main\",node=\"alpha\",kind=\"name\"} 1",
        "ganger_lease_held{scheduler=\"main\",node=\"alpha\",kind=\"lock\"} 0",
        "ganger_store_up{scheduler=\"main\",node=\"alpha\"} 1",
        "ganger_store_waiting{scheduler=\"main\",node=\"alpha\"} 0",
    ]);
    for (name, ..) in documented_of(|section| section.starts_with("Nodes")) {
        let name = name.replace('.', "_");
        let is_there = name.starts_with("ganger_session") || metrics.contains(&name);
        assert!(is_there, "{name}\n{metrics}");
    }
    let mut looker = Alarms::new().looker(&alpha);
    looker.look();
    assert!(looker.raised().iter().all(|it| it.kind != Kind::Lease));

    let mut down = StoreFaults::default();
    down.down = true;
    store.faults(down);
    until("the loss is shown", || {
        node().store.is_some_and(|it| it.lost_ns == Some(0))
    });
    // Half of the lease's good time.
    clock.fetch_add(2_500_000_000, Ordering::SeqCst);
    let seen = node();
    let lost_for = seen.store.and_then(|it| it.lost_ns);
    assert_eq!(lost_for, Some(2_500_000_000));
    assert_eq!(seen.lease, Some(lease(2_500_000_000)));
    assert_eq!(seen.names, all(false));
    has(&[
        "ganger_lease_left_seconds{scheduler=\"main\",node=\"alpha\"} 2.5",
        "ganger_store_up{scheduler=\"main\",node=\"alpha\"} 0",
    ]);
    looker.look();
    let raised = looker.raised();
    let raised = raised.iter().find(|it| it.kind == Kind::Lease).unwrap();
    let text = "50 % of the lease's time have passed without a renewal; the limit is 50";
    assert_eq!((&*raised.text, raised.value), (text, 50));

    clock.fetch_add(2_500_000_000, Ordering::SeqCst);
    let seen = node();
    assert_eq!((seen.lease, seen.names), (None, all(true)));
    looker.look();
    assert!(looker.raised().iter().all(|it| it.kind != Kind::Lease));
}
