//! Each reason has its own sentence at both sides.

use crate::hostile::Stranger;
use crate::support::{Node, Told, engine, name, pair};
use ganger_cluster_direct::{Direct, Reason};
use std::collections::HashSet;

/// Starts two nodes that refuse each other, and returns the words of alpha and beta.
fn refuse(alpha: (&str, Direct), beta: (&str, Direct), reason: Reason) -> [String; 2] {
    let alpha = Node::start(alpha.0, alpha.1);
    let beta = Node::start(beta.0, beta.1.seeds(alpha.seed()));
    let by_alpha = alpha.until_refused(reason, false);
    let at_beta = beta.until_refused(reason, true);
    for node in [&alpha, &beta] {
        assert!(node.engine.connected().is_empty());
        assert_eq!(
            node.inbox.count(|_| true),
            0,
            "nothing is told of a refused peer"
        );
    }
    assert_eq!(at_beta.address, alpha.address());
    [by_alpha.to_string(), at_beta.to_string()]
}

// pins: H3
// case: 33
#[test]
fn each_reason_has_a_sentence_at_both_sides() {
    let cookie = refuse(
        ("alpha", engine()),
        ("beta", engine().cookie("another")),
        Reason::Cookie,
    );
    let cluster = refuse(
        ("alpha", engine()),
        ("beta", engine().cluster("other")),
        Reason::Cluster,
    );
    let same = refuse(("alpha", engine()), ("alpha", engine()), Reason::SameName);
    assert!(cookie[0].contains("\"beta\"") && cookie[0].contains("its cookie differs"));
    assert!(cookie[1].contains("\"alpha\"") && cookie[1].contains("this node's cookie differs"));
    assert!(
        cluster[0].contains("it belongs to another cluster"),
        "{cluster:?}"
    );
    assert!(
        cluster[1].contains("this node belongs to another cluster"),
        "{cluster:?}"
    );
    assert!(same[0].contains("it has the name of this node"), "{same:?}");
    assert!(
        same[1].contains("this node has the name of the peer"),
        "{same:?}"
    );
    let all: Vec<_> = [cookie, cluster, same].concat();
    let texts = all.iter().map(|it| it.rsplit(": ").next().unwrap());
    assert_eq!(texts.collect::<HashSet<_>>().len(), all.len());
}

/// Refuses another node with the name of a connected peer for as long as the peer answers.
// pins: H3
// case: 32
#[test]
fn a_taken_name_is_refused_while_its_owner_lives() {
    let (alpha, beta) = pair(engine(), engine());
    let second = Node::start("beta", engine().seeds(alpha.seed()));
    alpha.until_refused(Reason::NameTaken, false);
    let refused = second.until_refused(Reason::NameTaken, true);
    assert!(
        refused.to_string().contains("this node must stop"),
        "{refused}"
    );
    assert!(beta.send(&alpha, "hello"));
    let expected = Told::Frame(name("beta"), "hello".into());
    drop(
        alpha
            .inbox
            .until("a frame", |told| told.contains(&expected)),
    );
    assert_eq!(
        alpha.inbox.count(|it| *it == Told::Vanished(name("beta"))),
        0
    );
}

/// Lets a silent connection lose its place to another program with the name.
// pins: H3, H4
// case: 32
#[test]
fn a_peer_that_is_silent_loses_its_name() {
    let alpha = Node::start("alpha", engine());
    let mut mute = Stranger::join(&alpha, "beta");
    let beta = Node::start("beta", engine().seeds(alpha.seed()));
    // As long as the mute is not silent for long, the name is its own.
    beta.until_refused(Reason::NameTaken, true);
    beta.until_connected(&alpha);
    mute.until_closed();
    assert!(beta.send(&alpha, "hello"));
    let expected = Told::Frame(name("beta"), "hello".into());
    drop(
        alpha
            .inbox
            .until("a frame", |told| told.contains(&expected)),
    );
}

/// Keeps the name of a peer that is late with its answer, but heard otherwise.
// pins: H4
#[test]
fn a_busy_peer_keeps_its_name() {
    const ALIVE: u8 = 2;
    const ASK: u8 = 3;
    let alpha = Node::start("alpha", engine());
    let mut busy = Stranger::join(&alpha, "beta");
    let rival = Node::start("beta", engine().seeds(alpha.seed()));
    // Each question comes by a rival. The busy peer answers none, and says at its own pace that it
    // lives.
    let mut asked = 0;
    while asked < 4 {
        match busy.frame().0 {
            ASK => asked += 1,
            ALIVE => busy.send(ALIVE, b""),
            _ => {}
        }
    }
    assert_eq!(alpha.engine.connected(), [name("beta")]);
    assert_eq!(
        alpha.inbox.count(|it| *it == Told::Vanished(name("beta"))),
        0
    );
    assert!(rival.engine.connected().is_empty());
}

/// Puts a node among its own seeds: the node says nothing about this, and asks once.
// pins: H3
#[test]
fn a_node_may_be_its_own_seed() {
    let alpha = Node::start("alpha", engine());
    let port = alpha.address().port();
    alpha.stop();
    let own = format!("127.0.0.1:{port}");
    let engine = Direct::listen(own.clone()).cookie(crate::support::COOKIE);
    let alpha = Node::start("alpha", engine.seeds([own]));
    let beta = Node::start("beta", crate::support::engine().seeds(alpha.seed()));
    beta.until_connected(&alpha);
    assert_eq!(alpha.engine.refusals(), []);
    assert_eq!(alpha.engine.connected(), [name("beta")]);
}
