//! The order in which a router looks for a receiver.

use crate::common::*;
use ganger_proc_api::{Envelope, Message, SendError, SendErrorKind};
use ganger_relay::{AddError, EnvelopeReceiver, Node, Router, receiver_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn here() -> Router {
    Router::new(Arc::new(Node::new(node("here"))))
}

// pins: R3
#[test]
fn local_node_then_peer_then_fallback() {
    let router = here();
    let (local, peer, fallback) = (Recorder::new(), Recorder::new(), Recorder::new());
    router.local().add_host(host("a"), local.clone()).unwrap();
    router.add_peer(node("there"), peer.clone()).unwrap();
    assert!(router.set_fallback(fallback.clone()).is_none());

    router.send(envelope("{a|1}", 1)).unwrap();
    assert_eq!(local.take_one("{a|1}"), 1);
    router.send(envelope("{here@a|1}", 2)).unwrap();
    assert_eq!(local.take_one("{here@a|1}"), 2);
    router.send(envelope("{there@a|1}", 3)).unwrap();
    assert_eq!(peer.take_one("{there@a|1}"), 3);
    router.send(envelope("{elsewhere@a|1}", 4)).unwrap();
    assert_eq!(fallback.take_one("{elsewhere@a|1}"), 4);

    for other in [local, peer, fallback] {
        assert!(other.take().is_empty());
    }
}

// pins: R2, R3
#[test]
fn the_first_responsible_receiver_gives_the_final_answer() {
    let router = here();
    let fallback = Recorder::new();
    router.set_fallback(fallback.clone());
    for kind in ALL_KINDS {
        router.local().add_host(host("a"), refuser(kind)).unwrap();
        router.add_peer(node("there"), refuser(kind)).unwrap();
        assert_refused(&router, "{a|1}", kind);
        assert_refused(&router, "{here@a|1}", kind);
        assert_refused(&router, "{there@a|1}", kind);
        router.local().remove_host(host("a")).unwrap();
        router.remove_peer(node("there")).unwrap();
    }
    assert_refused(&router, "{a|1}", SendErrorKind::HostNotFound);
    assert_refused(&router, "{here@a|1}", SendErrorKind::HostNotFound);
    assert!(fallback.take().is_empty(), "the fallback was not asked");

    for kind in ALL_KINDS {
        router.set_fallback(refuser(kind));
        assert_refused(&router, "{there@a|1}", kind);
    }
}

// pins: R2, R3
#[test]
fn without_a_peer_and_a_fallback_there_is_no_way() {
    let router = here();
    assert_refused(&router, "{there@a|1}", SendErrorKind::NodeNotFound);
    router.add_peer(node("elsewhere"), Recorder::new()).unwrap();
    assert_refused(&router, "{there@a|1}", SendErrorKind::NodeNotFound);
}

// pins: R3
#[test]
fn a_second_peer_of_that_name_is_refused_and_handed_back() {
    let router = here();
    let (first, second) = (Recorder::new(), Recorder::new());
    router.add_peer(node("there"), first.clone()).unwrap();

    let error = router.add_peer(node("there"), second.clone()).unwrap_err();
    assert_eq!(error.to_string(), "the peer there already exists");
    assert_eq!(format!("{error:?}"), r#"PeerExists { peer: "there", .. }"#);
    assert!(matches!(error, AddError::PeerExists { peer, .. } if peer == node("there")));
    assert!(is_same(&error.into_receiver(), &second));

    router.send(envelope("{there@a|1}", 1)).unwrap();
    assert_eq!(first.take_one("{there@a|1}"), 1);
}

// pins: R3
#[test]
fn the_local_node_is_no_peer_of_itself() {
    let router = here();
    let peer = Recorder::new();
    let error = router.add_peer(node("here"), peer.clone()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid peer here: this is the local node"
    );
    assert_eq!(format!("{error:?}"), r#"LocalNode { node: "here", .. }"#);
    assert!(matches!(error, AddError::LocalNode { node: n, .. } if n == node("here")));
    assert!(is_same(&error.into_receiver(), &peer));
    assert!(router.peers().is_empty());
}

// pins: R3
#[test]
fn peers_and_the_fallback_come_and_go() {
    let router = here();
    let (peer, fallback, next) = (Recorder::new(), Recorder::new(), Recorder::new());
    // No other test uses these names: names are ordered by their first use.
    for name in ["peer-b", "there", "peer-a"] {
        router.add_peer(node(name), peer.clone()).unwrap();
    }
    assert_eq!(router.peers(), ["peer-a", "peer-b", "there"].map(node));
    assert!(router.clear_fallback().is_none());
    assert!(router.set_fallback(fallback.clone()).is_none());

    assert!(is_same(&router.remove_peer(node("there")).unwrap(), &peer));
    assert!(router.remove_peer(node("there")).is_none());
    assert_eq!(router.peers(), ["peer-a", "peer-b"].map(node));
    router.send(envelope("{there@a|1}", 1)).unwrap();
    assert_eq!(fallback.take_one("{there@a|1}"), 1);

    assert!(is_same(
        &router.set_fallback(next.clone()).unwrap(),
        &fallback
    ));
    router.send(envelope("{there@a|1}", 2)).unwrap();
    assert_eq!(next.take_one("{there@a|1}"), 2);
    assert!(is_same(&router.clear_fallback().unwrap(), &next));
    assert!(router.clear_fallback().is_none());
    assert_refused(&router, "{there@a|1}", SendErrorKind::NodeNotFound);

    router.add_peer(node("there"), peer.clone()).unwrap();
    router.send(envelope("{there@a|1}", 3)).unwrap();
    assert_eq!(peer.take_one("{there@a|1}"), 3);
    assert!(fallback.take().is_empty());
}

// pins: R3
#[test]
fn a_router_is_a_peer_of_another() {
    let (router, other) = (here(), Router::new(Arc::new(Node::new(node("there")))));
    let recorder = Recorder::new();
    other.local().add_host(host("a"), recorder.clone()).unwrap();
    router.add_peer(node("there"), Arc::new(other)).unwrap();
    router.send(envelope("{there@a|1}", 1)).unwrap();
    assert_eq!(recorder.take_one("{there@a|1}"), 1);
    assert_refused(&router, "{there@b|1}", SendErrorKind::HostNotFound);
    let text = format!("{router:?}");
    assert!(
        text.contains(r#"peers: ["there"], fallback: false"#),
        "{text}"
    );
}

/// Checks that a receiver can answer the source of a message, through a third node as well.
// pins: R3
#[test]
fn an_envelope_that_leaves_its_node_says_from_which_one_it_is() {
    let (here, there) = (
        Arc::new(here()),
        Arc::new(Router::new(Arc::new(Node::new(node("there"))))),
    );
    here.add_peer(node("there"), there.clone()).unwrap();
    there.add_peer(node("here"), here.clone()).unwrap();
    let (asker, echo, far) = (Recorder::new(), Recorder::new(), Recorder::new());
    here.local()
        .add_host(host("source"), asker.clone())
        .unwrap();
    there.local().add_host(host("a"), echo.clone()).unwrap();
    there.add_peer(node("far"), far.clone()).unwrap();
    here.set_fallback(there.clone());

    here.send(envelope("{there@a|1}", 1)).unwrap();
    here.send_control(envelope("{there@a|1}", 2)).unwrap();
    for arrived in echo.take() {
        let source = arrived.message.source.unwrap();
        assert_eq!(source, pid("{here@source|1}"));
        there.send(Message::new("answer", ()).to(source)).unwrap();
    }
    assert_eq!(asker.take().len(), 2);

    here.send(envelope("{far@a|1}", 3)).unwrap();
    let passed = far.take().remove(0);
    assert_eq!(passed.message.source, Some(pid("{here@source|1}")));
    here.send(Message::new("without a source", ()).to(pid("{there@a|1}")))
        .unwrap();
    assert_eq!(echo.take().remove(0).message.source, None);
    // Without this line, each router would keep the other alive.
    assert!(there.remove_peer(node("here")).is_some());
}

// pins: R2, R3
#[test]
fn a_loop_of_routers_refuses_what_none_of_them_knows() {
    let routers = ["one", "two", "three"].map(|name| {
        let local = Arc::new(Node::new(node(name)));
        Arc::new(Router::new(local))
    });
    for (router, next) in routers.iter().zip(routers.iter().cycle().skip(1)) {
        // Each router knows the next router, and none keeps another alive.
        router.set_fallback(Arc::new(Arc::downgrade(next)));
    }
    // Each send starts with the full limit, so later sends are refused in the same way.
    for _ in 0..100 {
        assert_refused(&*routers[0], "{nowhere@a|1}", SendErrorKind::NodeNotFound);
    }
    let far = Recorder::new();
    routers[2].add_peer(node("far"), far.clone()).unwrap();
    routers[0].send(envelope("{far@a|1}", 1)).unwrap();
    assert_eq!(far.take().len(), 1);
}

/// Sends among routers that try one another: two tries on each of many levels would need
/// exponentially many sends.
// pins: R2, R3
#[test]
fn routers_that_try_one_another_refuse_soon_what_none_of_them_knows() {
    let routers = ["one", "two", "three"].map(|name| {
        let local = Arc::new(Node::new(node(name)));
        Arc::new(Router::new(local))
    });
    let asked = Arc::new(AtomicUsize::new(0));
    for (n, router) in routers.iter().enumerate() {
        let [first, second] = [1, 2].map(|step| Arc::downgrade(&routers[(n + step) % 3]));
        let asked = Arc::clone(&asked);
        let either = receiver_fn(move |envelope| {
            let before = asked.fetch_add(1, Ordering::Relaxed);
            assert!(before < 10_000, "they are asked without end");
            (first.send(envelope)).or_else(|error| second.send(error.into_envelope()))
        });
        router.set_fallback(Arc::new(either));
    }
    for _ in 0..10 {
        assert_refused(&*routers[0], "{nowhere@a|1}", SendErrorKind::NodeNotFound);
        asked.store(0, Ordering::Relaxed);
    }
}

// pins: R3
#[test]
fn thirty_three_routers_may_stand_behind_one_another() {
    let routers: Vec<_> = (0..33)
        .map(|n| {
            let local = Arc::new(Node::new(node(&format!("row-{n}"))));
            Arc::new(Router::new(local))
        })
        .collect();
    for pair in routers.windows(2) {
        pair[0].set_fallback(pair[1].clone());
    }
    let sink = Recorder::new();
    let last = routers[32].local();
    last.add_host(host("a"), sink.clone()).unwrap();
    routers[0].send(envelope("{row-32@a|1}", 1)).unwrap();
    assert_eq!(sink.take().len(), 1);
}

/// Ordinary messages go to the first receiver, control messages to the second.
struct ByKind(Arc<Recorder>, Arc<Recorder>);

impl EnvelopeReceiver for ByKind {
    fn send(&self, envelope: Envelope) -> Result<(), SendError> {
        self.0.send(envelope)
    }

    fn send_control(&self, envelope: Envelope) -> Result<(), SendError> {
        self.1.send(envelope)
    }
}

// pins: R2
#[test]
fn a_receiver_that_is_gone_gives_the_envelope_back() {
    let (router, ordinary, control) = (here(), Recorder::new(), Recorder::new());
    let peer = Arc::new(ByKind(ordinary.clone(), control.clone()));
    router
        .add_peer(node("there"), Arc::new(Arc::downgrade(&peer)))
        .unwrap();
    router.send(envelope("{there@a|1}", 1)).unwrap();
    router.send_control(envelope("{there@a|1}", 2)).unwrap();
    assert_eq!(ordinary.take_one("{there@a|1}"), 1);
    assert_eq!(control.take_one("{there@a|1}"), 2);
    drop(peer);
    assert_refused(&router, "{there@a|1}", SendErrorKind::Stopping);
}
