//! The nodes of a cluster.

use super::support::{get, until};
use crate::metrics::documented_of;
use ganger_cluster::{Cluster, NodeId, Twin};
use ganger_link::Registry as _;
use ganger_observe::api::{Nodes, Peer};
use ganger_observe::{Observer, serve};
use ganger_proc_api::{ExitCause, NodeName, actor_fn};
use ganger_sched::Scheduler;

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
    for (name, kind, _) in documented_of(|place| place == "cluster") {
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
