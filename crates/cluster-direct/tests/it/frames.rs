//! Frames between connected nodes.

use crate::support::{Node, Told, engine, frames, name, pair};
use bytes::Bytes;
use ganger_cluster::{Engine, Lane, MAX_FRAME};
use std::time::Duration;

/// Returns a number as a frame of this length, at least 8.
fn numbered(number: usize, length: usize) -> Bytes {
    let mut frame = vec![0; length];
    frame[..8].copy_from_slice(&(number as u64).to_le_bytes());
    frame.into()
}

fn number(frame: &[u8]) -> usize {
    usize::try_from(u64::from_le_bytes(*frame.first_chunk().unwrap())).unwrap()
}

/// Sends `count` frames, and waits for room in a full lane.
fn send_all(from: &Node, to: &Node, count: usize, length: impl Fn(usize) -> usize) {
    for each in 0..count {
        let frame = numbered(each, length(each));
        while !from.send(to, frame.clone()) {
            let is_told = |told: &[Told]| told.contains(&Told::Writable(to.name.clone()));
            from.inbox
                .until("room", is_told)
                .retain(|it| !matches!(it, Told::Writable(_)));
        }
    }
}

// pins: H1
#[test]
fn frames_of_all_lengths_arrive_in_order_both_ways() {
    let (alpha, beta) = pair(engine(), engine());
    let length = |number: usize| [8, 100, 5000, MAX_FRAME][number % 4];
    std::thread::scope(|scope| {
        scope.spawn(|| send_all(&alpha, &beta, 1000, length));
        scope.spawn(|| send_all(&beta, &alpha, 1000, length));
    });
    for node in [&alpha, &beta] {
        let told = node
            .inbox
            .until("all frames", |told| frames(told).len() == 1000);
        for (each, frame) in frames(&told).iter().enumerate() {
            assert_eq!((number(frame), frame.len()), (each, length(each)));
        }
    }
}

// pins: H1
#[test]
fn three_nodes_find_each_other_from_a_single_seed() {
    let alpha = Node::start("alpha", engine());
    let beta = Node::start("beta", engine().seeds(alpha.seed()));
    let gamma = Node::start("gamma", engine().seeds(alpha.seed()));
    let nodes = [&alpha, &beta, &gamma];
    for node in nodes {
        for peer in nodes.into_iter().filter(|it| it.name != node.name) {
            node.until_connected(peer);
            assert!(node.send(peer, node.name.as_str().to_owned()));
        }
    }
    for node in nodes {
        let told = node
            .inbox
            .until("two frames", |told| frames(told).len() >= 2);
        for it in &*told {
            // The engine says the right sender.
            if let Told::Frame(from, frame) = it {
                assert_eq!(from.as_str().as_bytes(), frame);
            }
        }
    }
}

/// Fills the lane to a peer that reads nothing: the lane takes its room, and no more. The other
/// lane has room.
// pins: H1
#[test]
fn a_full_lane_refuses_and_says_when_there_is_room() {
    let alpha = Node::start("alpha", engine().outbox(10 * MAX_FRAME));
    let beta = crate::hostile::Stranger::join(&alpha, "beta");
    let frame = Bytes::from(vec![7; MAX_FRAME]);
    let to = name("beta");
    let mut taken = 0;
    while alpha.engine.send(&to, Lane::Data, frame.clone()) {
        taken += 1;
        // The system's own buffers are some megabytes.
        assert!(taken < 10_000, "a queue without a bound");
    }
    assert!(alpha.engine.send(&to, Lane::Control, frame.clone()));
    alpha.inbox.clear();
    beta.read_in_the_background();
    let is_told = |told: &[Told]| told.contains(&Told::Writable(to.clone()));
    // The hint at the connection's begin may come late, and is none of room.
    loop {
        let mut told = alpha.inbox.until("room", is_told);
        told.clear();
        drop(told);
        if alpha.engine.send(&to, Lane::Data, frame.clone()) {
            break;
        }
    }
}

// pins: H1
#[test]
fn frames_to_nodes_that_are_not_connected_are_refused() {
    let alpha = Node::start("alpha", engine());
    assert!(
        !alpha
            .engine
            .send(&name("beta"), Lane::Data, Bytes::from("frame"))
    );
}

/// Stops a node after many sends: all taken frames arrive, and then the peer is gone.
// pins: H5
#[test]
fn a_stop_sends_what_was_taken() {
    let (alpha, beta) = pair(engine().outbox(64 << 20), engine());
    for each in 0..200 {
        assert!(alpha.send(&beta, numbered(each, MAX_FRAME)));
    }
    alpha.stop();
    let told = beta.inbox.until("the end of alpha", |told| {
        told.contains(&Told::Vanished(alpha.name.clone()))
    });
    let frames = frames(&told);
    assert!(frames.iter().map(|it| number(it)).eq(0..200));
    assert_eq!(told.last(), Some(&Told::Vanished(alpha.name.clone())));
}

/// Stops an engine whose peer does not read, and an engine without peers: both end in time.
// pins: H5
#[test]
fn a_stop_ends_in_time() {
    let alpha = Node::start("alpha", engine());
    let stranger = crate::hostile::Stranger::join(&alpha, "beta");
    let frame = Bytes::from(vec![7; MAX_FRAME]);
    while alpha.engine.send(&name("beta"), Lane::Data, frame.clone()) {}
    let begin = std::time::Instant::now();
    alpha.engine.stop(Duration::from_millis(50));
    assert!(begin.elapsed() < crate::support::PATIENCE / 2);
    assert!(!alpha.engine.send(&name("beta"), Lane::Data, frame));
    assert_eq!(alpha.engine.local_addr(), None);
    alpha.engine.stop(Duration::from_secs(60));
    drop(stranger);
}

/// Starts a stopped engine again; a running engine does not start.
#[test]
fn an_engine_starts_again_after_its_stop() {
    let alpha = Node::start("alpha", engine());
    let again = alpha.engine.start(&alpha.name, alpha.inbox.clone());
    assert!(again.unwrap_err().to_string().contains("alpha"));
    alpha.stop();
    alpha
        .engine
        .start(&alpha.name, alpha.inbox.clone())
        .unwrap();
    let beta = Node::start("beta", engine().seeds(alpha.seed()));
    beta.until_connected(&alpha);
}
