//! Frames and hints between two nodes.

use crate::support::broker::Broker;
use crate::support::node::{LONG, Node, Told, name};
use crate::support::raw::Raw;
use bytes::Bytes;
use ganger_cluster::{Engine, EngineError, EngineSink, Lane, MAX_FRAME, NodeId};
use ganger_cluster_nats::{Nats, NatsError, NoticeKind};
use std::sync::{Arc, mpsc};
use std::time::Duration;

struct Deaf;

impl EngineSink for Deaf {
    fn frame(&self, _: &NodeId, _: Bytes) {}
}

/// Returns the reason why the engine can't start.
fn refused(engine: &Nats) -> NatsError {
    match engine.start(&name("alpha"), Arc::new(Deaf)) {
        Err(EngineError::Other(error)) => *error.downcast::<NatsError>().unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn frames_go_both_ways_in_both_lanes_whatever_the_names() {
    let Some(broker) = Broker::start() else {
        return;
    };
    let [a, b] = ["alpha.1", "бета *>"].map(|me| Node::start(me, Nats::new(broker.url())));
    for lane in Lane::ALL {
        for (from, to) in [(&a, &b), (&b, &a)] {
            for (byte, length) in [0, 1, 1000, MAX_FRAME].into_iter().enumerate() {
                let byte = u8::try_from(byte).unwrap();
                let frame = Bytes::from(vec![byte; length]);
                from.send(&to.me, lane, &frame);
                let (sender, came) = to.frame();
                assert_eq!((sender, came.len()), (from.me.clone(), length));
                assert_eq!(came, frame);
            }
        }
    }
    let stats = a.engine.stats();
    assert_eq!((stats.is_connected, stats.received), ([true; 2], [4; 2]));
    assert_eq!(stats.out.map(|it| (it.taken, it.lost)), [(4, 0); 2]);
}

#[test]
fn a_node_hears_its_cluster_and_not_itself() {
    let Some(broker) = Broker::start() else {
        return;
    };
    let node = |me, cluster| Node::start(me, Nats::new(broker.url()).cluster(cluster));
    let (a, b, other) = (
        node("alpha", "shop"),
        node("beta", "shop"),
        node("beta", "other"),
    );
    let frame = Bytes::from_static(b"frame");
    a.send(&a.me, Lane::Data, &frame);
    other.send(&a.me, Lane::Data, &frame);
    b.send(&a.me, Lane::Data, &Bytes::from_static(b"first"));
    assert_eq!(a.frame(), (b.me.clone(), Bytes::from_static(b"first")));
    assert_eq!(a.engine.stats().received, [0, 1]);
}

#[test]
fn a_node_appears_and_its_farewell_is_heard_at_once() {
    let Some(broker) = Broker::start() else {
        return;
    };
    // Without its farewell it would be missed after hours.
    let node = |me| {
        Node::start(
            me,
            Nats::new(broker.url()).beacon(Duration::from_secs(3600)),
        )
    };
    let a = node("alpha");
    let b = node("beta");
    a.wait_for(&Told::Appeared(b.me.clone()));
    let last = Bytes::from_static(b"last");
    b.send(&a.me, Lane::Data, &last);
    b.engine.stop(LONG);
    assert!(!b.engine.send(&a.me, Lane::Data, last.clone()));
    let mut told = Vec::new();
    while told.len() < 2 {
        told.push(a.wait(Some));
    }
    let expected = [
        Told::Frame(b.me.clone(), last),
        Told::Vanished(b.me.clone()),
    ];
    // Each of the two has a connection of its own.
    assert!(expected.iter().all(|it| told.contains(it)), "{told:?}");
    // The node may come back.
    let again = node("beta");
    a.wait_for(&Told::Appeared(again.me.clone()));
}

#[test]
fn a_node_that_is_silent_vanishes() {
    let Some(broker) = Broker::start() else {
        return;
    };
    let engine = Nats::new(broker.url()).beacon(Duration::from_millis(50));
    let a = Node::start("alpha", engine);
    let mut ghost = Raw::connect(broker.port);
    ghost.publish("g.ganger.live.ghost", b"gb\x01\x00run-no-1");
    a.wait_for(&Told::Appeared(name("ghost")));
    a.wait_for(&Told::Vanished(name("ghost")));
    ghost.publish("g.ganger.live.ghost", b"gb\x01\x00run-no-1");
    a.wait_for(&Told::Appeared(name("ghost")));
    // A restart too quick for a silence.
    ghost.publish("g.ganger.live.ghost", b"gb\x01\x00run-no-2");
    a.wait_for(&Told::Vanished(name("ghost")));
    a.wait_for(&Told::Appeared(name("ghost")));
}

#[test]
fn a_broker_that_comes_back_is_told() {
    let Some(mut broker) = Broker::start() else {
        return;
    };
    let (sender, notices) = mpsc::channel();
    let engine = Nats::new(broker.url()).on_notice(move |notice| {
        // The test may have ended.
        let _unheard = sender.send(notice.clone());
    });
    let engine = engine.beacon(Duration::from_secs(3600));
    let a = Node::start("alpha", engine);
    let b = Node::start("beta", Nats::new(broker.url()));
    a.wait_for(&Told::Appeared(b.me.clone()));
    broker.kill();
    let mut gone = Vec::new();
    while gone.len() < 2 {
        let notice = notices.recv_timeout(LONG).unwrap();
        if notice.kind == NoticeKind::Disconnected {
            gone.push(notice.lane);
        }
    }
    gone.sort();
    assert_eq!(gone, Lane::ALL);
    let frame = Bytes::from_static(b"frame");
    for lane in Lane::ALL {
        assert!(!a.engine.send(&b.me, lane, frame.clone()), "no connection");
    }
    assert_eq!(a.engine.stats().is_connected, [false; 2]);
    broker.restart();
    // Each lane tells it, and sessions may open at once.
    let mut wanted = vec![
        Told::Writable(b.me.clone()),
        Told::Writable(b.me.clone()),
        Told::Appeared(b.me.clone()),
    ];
    a.wait(|told| {
        let place = wanted.iter().position(|it| *it == told);
        if let Some(place) = place {
            wanted.remove(place);
        }
        wanted.is_empty().then_some(())
    });
    assert!(a.engine.stats().reconnects > 0);
}

/// Bytes of strangers.
// case: 35
#[test]
fn what_is_no_frame_is_dropped_and_counted() {
    let Some(broker) = Broker::start() else {
        return;
    };
    let a = Node::start("alpha", Nats::new(broker.url()));
    let mut raw = Raw::connect(broker.port);
    let too_long = vec![0; MAX_FRAME + 1];
    raw.frame("g.ganger.alpha.beta.data", &too_long);
    raw.publish("g.ganger.alpha.beta.data", b"a wrong checksum");
    // Another form of a name is no name: see `subject`.
    raw.frame("g.ganger.alpha.%62eta.data", b"forged");
    raw.frame("g.ganger.alpha.alpha.data", b"from itself");
    raw.publish("g.ganger.live.alpha", b"gb\x01\x00run-no-1");
    raw.publish("g.ganger.live.beta", b"no beacon");
    raw.publish("g.ganger.live.beta", b"");
    raw.publish("g.ganger.live.gamma", b"gb\x01\x00run-no-1");
    raw.frame("g.ganger.alpha.beta.data", b"frame");
    let frame = Told::Frame(name("beta"), Bytes::from_static(b"frame"));
    let mut wanted = vec![Told::Appeared(name("gamma")), frame];
    a.wait(|told| {
        let place = wanted.iter().position(|it| *it == told);
        wanted.remove(place.unwrap_or_else(|| panic!("{told:?}")));
        wanted.is_empty().then_some(())
    });
    assert_eq!(a.engine.stats().foreign, 7);
}

#[test]
fn an_engine_runs_once_at_a_time() {
    let Some(broker) = Broker::start() else {
        return;
    };
    let engine = Nats::new(broker.url());
    let (me, frame) = (name("alpha"), Bytes::from_static(b"frame"));
    assert!(!engine.send(&name("beta"), Lane::Data, frame.clone()));
    for _ in 0..2 {
        engine.start(&me, Arc::new(Deaf)).unwrap();
        let again = engine.start(&name("beta"), Arc::new(Deaf));
        assert!(matches!(again, Err(EngineError::Running(_))), "{again:?}");
        assert!(engine.send(&name("beta"), Lane::Data, frame.clone()));
        engine.stop(LONG);
        engine.stop(LONG);
        assert!(!engine.send(&name("beta"), Lane::Data, frame.clone()));
    }
}

#[test]
fn frames_fit_the_broker() {
    let Some(broker) = Broker::with("max_payload: 8192") else {
        return;
    };
    let [a, b] = ["alpha", "beta"].map(|me| Node::start(me, Nats::new(broker.url())));
    assert_eq!(a.engine.max_frame(), 8188);
    a.send(&b.me, Lane::Data, &Bytes::from(vec![1; 8189]));
    a.send(&b.me, Lane::Data, &Bytes::from(vec![2; 8188]));
    assert_eq!(b.frame().1, vec![2; 8188]);
    assert_eq!(a.engine.stats().out[1].lost, 1);
    let Some(small) = Broker::with("max_payload: 4095") else {
        return;
    };
    let error = refused(&Nats::new(small.url()));
    assert!(matches!(error, NatsError::SmallPayload(4095)), "{error}");
}

#[test]
fn a_start_without_a_broker_says_what_was_tried() {
    let Some(mut broker) = Broker::start() else {
        return;
    };
    broker.kill();
    let url = format!("nats://user:secret@127.0.0.1:{}", broker.port);
    let engine = Nats::new(url).connect_within(Duration::from_millis(200));
    let error = refused(&engine);
    assert!(matches!(error, NatsError::Unreachable { .. }), "{error:?}");
    let text = error.to_string();
    assert!(
        text.contains(&broker.port.to_string()) && !text.contains("secret"),
        "{text}"
    );
    // The engine may be started again.
    broker.restart();
    engine.start(&name("alpha"), Arc::new(Deaf)).unwrap();
}
