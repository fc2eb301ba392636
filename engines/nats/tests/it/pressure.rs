//! More frames than the socket takes.

use crate::support::broker::Broker;
use crate::support::node::{Node, Side, Told, play};
use bytes::Bytes;
use ganger_cluster::{Engine, Lane, SendError, Settings};
use ganger_cluster_nats::Nats;
use std::time::Duration;

const ROOM: usize = 32 << 20;

fn number(frame: &Bytes) -> u32 {
    u32::from_le_bytes(*frame.first_chunk().unwrap())
}

/// Stops a broker, which then takes nothing: `send` says so at once, and the engine says when it
/// goes on. A full lane of data does not delay control.
#[test]
fn a_full_outbox_refuses_is_bounded_loses_nothing_and_control_overtakes_it() {
    let Some(broker) = Broker::start() else {
        return;
    };
    // The connections outlast the pause of the broker.
    let engine = |_| {
        Nats::new(broker.url())
            .outbox(ROOM)
            .ping(Duration::from_secs(3600))
    };
    let [a, b] = ["alpha", "beta"].map(|me| Node::start(me, engine(me)));
    broker.signal("STOP");
    let mut sent = 0_u32;
    let frame = |number: u32| {
        let mut frame = vec![0; 60_000];
        frame[..4].copy_from_slice(&number.to_le_bytes());
        Bytes::from(frame)
    };
    // More than the system's buffers take.
    while a.engine.send(&b.me, Lane::Data, frame(sent)) {
        sent += 1;
    }
    let counts = a.engine.stats().out[Lane::Data.index()];
    assert!(counts.held <= ROOM && counts.refused == 1, "{counts:?}");
    assert!(
        a.engine
            .send(&b.me, Lane::Control, Bytes::from_static(b"control"))
    );
    broker.signal("CONT");
    let mut expected = 0;
    let mut overtaken = None;
    while expected < sent || overtaken.is_none() {
        let (_, frame) = b.frame();
        if &*frame == b"control" {
            overtaken = Some(sent - expected);
        } else {
            assert_eq!(number(&frame), expected);
            expected += 1;
        }
    }
    assert!(
        overtaken > Some(0),
        "control came after {sent} frames of data"
    );
    a.wait_for(&Told::Writable(b.me.clone()));
    assert!(a.engine.send(&b.me, Lane::Data, frame(0)));
}

/// Breaks a connection whose client has frames: they are lost, and counted.
#[test]
fn frames_that_are_lost_with_a_connection_are_counted() {
    let Some(mut broker) = Broker::start() else {
        return;
    };
    let url = broker.url();
    let engine = |_| {
        Nats::new(&*url)
            .outbox(ROOM)
            .ping(Duration::from_secs(3600))
    };
    let [a, b] = ["alpha", "beta"].map(|me| Node::start(me, engine(me)));
    broker.signal("STOP");
    // More than the system's buffers take.
    while a
        .engine
        .send(&b.me, Lane::Data, Bytes::from(vec![0; 60_000]))
    {}
    assert_eq!(a.engine.stats().out[Lane::Data.index()].lost, 0);
    broker.kill();
    broker.restart();
    a.wait_for(&Told::Writable(b.me.clone()));
    let counts = a.engine.stats().out[Lane::Data.index()];
    assert!((1..100).contains(&counts.lost), "{counts:?}");
}

/// Sends to a receiver that consumes nothing: the sender's queue is full, and nothing grows
/// anywhere.
// case: 8
#[test]
fn a_slow_receiver_fills_the_senders_queue_and_nothing_else() {
    let Some(broker) = Broker::start() else {
        return;
    };
    let mut settings = Settings::default();
    (settings.credit, settings.queue) = (256 << 10, 512 << 10);
    settings.dead = Duration::from_secs(600);
    let [a, b] = ["alpha", "beta"].map(|me| Node::start(me, Nats::new(broker.url())));
    let (at_a, at_b) = (a.me.clone(), b.me.clone());
    let mut a = Side::new(a, &at_b, &settings);
    let mut b = Side::new(b, &at_a, &settings);
    b.consumes = false;
    a.session.open(a.now());
    let zeros = vec![0; 1000];
    let mut sent = 0;
    let mut is_full = false;
    // Until the credit is used up and the queue is full.
    play(&mut a, &mut b, |a, _| {
        is_full = loop {
            match a.say(Lane::Data, sent, &zeros) {
                Ok(()) => sent += 1,
                Err(SendError::Full) => break true,
                Err(SendError::NoSession) => break false,
                Err(other) => panic!("{other}"),
            }
        };
        is_full && a.session.stats().unacknowledged == [0, 0] && a.session.is_up()
    });
    let come = b.heard[1].len();
    assert!(
        (200..=262).contains(&come),
        "{come} messages of 1,000 bytes"
    );
    let stats = a.session.stats();
    assert!(stats.queued[1] < settings.queue + 2000, "{stats:?}");
    assert!(b.node.engine.stats().slow == 0 && sent > 700, "{sent}");
    // Control goes on.
    for number in 0..100 {
        a.say(Lane::Control, number, &[]).unwrap();
    }
    play(&mut a, &mut b, |_, b| b.heard[0].len() == 100);
    assert_eq!(b.heard[1].len(), come);
    assert!(a.ends.is_empty() && b.ends.is_empty());
    // The rest is at the sender.
    assert!(
        a.node
            .engine
            .stats()
            .out
            .iter()
            .all(|it| it.held <= 2 << 20)
    );
}
