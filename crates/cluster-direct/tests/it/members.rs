//! The members of a cluster: how nodes find and lose each other.

use crate::hostile::Stranger;
use crate::support::{COOKIE, Node, Told, engine, name, until};
use bytes::Bytes;
use ganger_cluster::{Engine, Lane};
use ganger_cluster_direct::{Direct, SeedsFile};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Restarts a node at the same port: its peer finds the node again, whichever has the lower name.
// pins: H4
#[test]
fn a_restarted_node_is_found_again() {
    for (first, second) in [("alpha", "beta"), ("beta", "alpha")] {
        let stays = Node::start(first, engine());
        let mut goes = Node::start(second, engine().seeds(stays.seed()));
        goes.until_connected(&stays);
        stays.until_connected(&goes);
        let address = goes.address().to_string();
        for round in 0..3 {
            goes.engine.stop(Duration::ZERO);
            let vanished = Told::Vanished(goes.name.clone());
            drop(
                stays
                    .inbox
                    .until("the end", |told| told.contains(&vanished)),
            );
            stays.inbox.clear();
            // Without seeds: the node that stays dials it.
            goes = Node::start(second, Direct::listen(&*address).cookie(COOKIE));
            goes.until_connected(&stays);
            stays.until_connected(&goes);
            let frame = Bytes::from(format!("round {round}"));
            assert!(stays.send(&goes, frame.clone()));
            let expected = Told::Frame(stays.name.clone(), frame);
            drop(goes.inbox.until("a frame", |told| told.contains(&expected)));
        }
    }
}

/// Starts all nodes of a larger cluster at once, each with the same seed: all pairs end with a
/// connection that both sides keep.
// pins: H4
#[test]
fn many_nodes_that_start_at_once_are_all_connected() {
    const NODES: usize = 8;
    let seed = Node::start("node-4", engine());
    let others = (0..NODES).filter(|it| *it != 4);
    let others = others.map(|it| Node::start(&format!("node-{it}"), engine().seeds(seed.seed())));
    let nodes: Vec<_> = others
        .collect::<Vec<_>>()
        .into_iter()
        .chain([seed])
        .collect();
    let is_whole = |node: &Node| node.engine.connected().len() == NODES - 1;
    until("all pairs", || nodes.iter().all(is_whole));
    // Both sides of each pair have the same connection: frames go both ways.
    for from in &nodes {
        for to in nodes.iter().filter(|it| it.name != from.name) {
            let frame = Bytes::from(format!("{} to {}", from.name, to.name));
            until("a frame has arrived", || {
                from.engine.send(&to.name, Lane::Data, frame.clone());
                to.inbox.frames().contains(&frame)
            });
        }
    }
    for node in &nodes {
        assert_eq!(node.engine.refusals(), [], "{}", node.name);
    }
}

/// Makes each node the other's seed, so both dial at once.
// pins: H4
#[test]
fn two_that_dial_each_other_keep_a_single_connection() {
    let ports = || {
        let listeners = [0; 2].map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
        listeners.map(|it| it.local_addr().unwrap().to_string())
    };
    for _ in 0..10 {
        let [at_alpha, at_beta] = ports();
        let direct = |own: &str, other: &str| Direct::listen(own).seeds([other]).cookie(COOKIE);
        let alpha = Node::start("alpha", direct(&at_alpha, &at_beta));
        let beta = Node::start("beta", direct(&at_beta, &at_alpha));
        alpha.until_connected(&beta);
        beta.until_connected(&alpha);
        for (from, to) in [(&alpha, &beta), (&beta, &alpha)] {
            until("a frame has arrived", || {
                from.send(to, "hello");
                !to.inbox.frames().is_empty()
            });
        }
        assert_eq!(alpha.engine.refusals(), []);
        assert_eq!(beta.engine.refusals(), []);
    }
}

// pins: H4
#[test]
fn a_file_of_seeds_may_change() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seeds");
    let often = engine().seek_every(Duration::from_millis(1));
    let alpha = Node::start("alpha", often.discovery(SeedsFile::new(&path)));
    let beta = Node::start("beta", engine());
    let gamma = Node::start("gamma", engine());
    fs::write(&path, format!("# the first\n{}\n", beta.address())).unwrap();
    alpha.until_connected(&beta);
    fs::write(&path, gamma.address().to_string()).unwrap();
    alpha.until_connected(&gamma);
}

/// Gives a seed with several addresses, and a discovery that fails for a while.
// pins: H4
#[test]
fn a_discovery_may_fail_and_hosts_have_names() {
    let beta = Node::start("beta", engine());
    let seed = format!("localhost:{}", beta.address().port());
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let discovery = move || {
        // Ordering: Relaxed: a count alone.
        match counted.fetch_add(1, Ordering::Relaxed) {
            0 | 2 => Err(std::io::Error::other("not now")),
            _ => Ok(vec![seed.clone(), "no address".to_owned()]),
        }
    };
    let often = engine().seek_every(Duration::from_millis(1));
    let alpha = Node::start("alpha", often.discovery(discovery));
    alpha.until_connected(&beta);
    // Ordering: Relaxed: a count alone.
    until("more questions", || asked.load(Ordering::Relaxed) > 4);
    assert_eq!(alpha.engine.connected(), [name("beta")]);
}

/// Starts programs of a machine, which find each other without a word, whether the usual port is
/// free or not.
// pins: H4
#[test]
fn nodes_of_a_machine_find_each_other() {
    // Another test, or another program, may have the port, and another cookie.
    let taken = std::net::TcpListener::bind("127.0.0.1:7447");
    let is_ours = taken.is_ok();
    drop(taken);
    let local = || Direct::local().cookie(COOKIE);
    let nodes = ["alpha", "beta", "gamma"].map(|name| Node::start(name, local()));
    let ports: Vec<_> = nodes.iter().map(|it| it.address().port()).collect();
    assert!(ports[1] != ports[0] && ports[2] != ports[0], "{ports:?}");
    if is_ours && ports[0] == 7447 {
        nodes[1].until_connected(&nodes[0]);
        nodes[2].until_connected(&nodes[0]);
        nodes[2].until_connected(&nodes[1]);
    }
}

/// Waits for further lists of nodes, not at the begin of a connection alone. Two nodes that could
/// not reach each other for a while meet by any third.
// pins: H4
#[test]
fn lists_of_nodes_are_repeated() {
    const ALIVE: u8 = 2;
    const NODES: u8 = 1;
    let alpha = Node::start("alpha", engine());
    let beta = Node::start("beta", engine().seeds(alpha.seed()));
    alpha.until_connected(&beta);
    let mut gamma = Stranger::join(&alpha, "gamma");
    let address = beta.address().to_string();
    let mut lists = 0;
    while lists < 3 {
        let (kind, body) = gamma.frame();
        let has_beta = body
            .windows(address.len())
            .any(|it| it == address.as_bytes());
        lists += usize::from(kind == NODES && has_beta);
        if kind == ALIVE {
            gamma.send(ALIVE, b"");
        }
    }
}

/// Bounds the peers of an engine, which says when it takes no more.
// pins: H2
#[test]
fn peers_are_bounded() {
    let alpha = Node::start("alpha", engine().peer_limit(1));
    let beta = Node::start("beta", engine().seeds(alpha.seed()));
    beta.until_connected(&alpha);
    let gamma = Node::start("gamma", engine().seeds(alpha.seed()));
    gamma.until_refused(ganger_cluster_direct::Reason::TooMany, true);
    // The place of a peer that is gone is free.
    beta.stop();
    gamma.until_connected(&alpha);
}

/// Gives a node without keys a seed outside: the node does not call the stranger.
// pins: H3
#[test]
fn seeds_outside_of_loopback_need_keys() {
    let alpha = Node::start("alpha", engine().seeds(["192.0.2.1:7447"]));
    alpha.until_refused(ganger_cluster_direct::Reason::Insecure, false);
}
