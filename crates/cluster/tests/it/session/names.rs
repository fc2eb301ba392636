//! Nodes that are started again, nodes with the same name, and strangers.

use crate::support::{From, Pair, at, ends, heard, name, refusals, session};
use bytes::Bytes;
use ganger_cluster::{End, Halves, Identity, Incarnation, Lane, Proof, Refusal, Session, Settings};
use std::sync::Arc;

// pins: B7
// case: 25
#[test]
fn a_node_that_was_started_again_ends_the_session_of_its_predecessor() {
    let settings = Settings::default();
    let mut pair = Pair::up(&settings);
    pair.b = session("b", 2, "a", &settings);
    pair.say(From::A, Lane::Data, 1, 0).unwrap();
    let now = pair.now();
    pair.b.open(now);
    pair.run(900);
    assert!(ends(&pair.at_a).is_empty(), "the predecessor may be alive");
    pair.run(200);
    // The messages for the predecessor do not reach it.
    assert_eq!(ends(&pair.at_a), [End::Restarted]);
    assert!(pair.a.is_up() && pair.b.is_up());
    assert!(heard(&pair.at_b).is_empty());
}

/// Carries frames between `a` and two nodes with the name `b`. Both get the frames of `a`.
fn three(pair: &mut Pair, other: &mut Session, millis: u64) -> Vec<ganger_cluster::Event> {
    let mut events = Vec::new();
    for _ in 0..millis {
        let mut to_other = Vec::new();
        pair.run_with(1, |from, frame| {
            if from == From::A {
                to_other.push(frame.clone());
            }
            true
        });
        let now = pair.now();
        for frame in to_other {
            other.handle(&frame, now);
        }
        while let Some(sent) = other.poll_frame(now) {
            pair.a.handle(&sent.frame, now);
        }
        events.extend(std::iter::from_fn(|| other.poll_event()));
    }
    events
}

// pins: B7
// case: 32
#[test]
fn the_second_of_two_nodes_with_a_name_is_refused_while_the_first_answers() {
    let settings = Settings::default();
    let mut pair = Pair::up(&settings);
    let mut other = session("b", 2, "a", &settings);
    other.open(pair.now());
    let events = three(&mut pair, &mut other, 3_000);
    assert!(
        refusals(&events).contains(&Refusal::NameTaken),
        "{events:?}"
    );
    assert!(!other.is_up());
    assert!(ends(&pair.at_a).is_empty() && ends(&pair.at_b).is_empty());
    // The first still has the name after a break of its session.
    let now = pair.now();
    let half = pair.b.session().unwrap();
    pair.b.fail(half, ganger_cluster::ReadError::Short, now);
    pair.run(1);
    assert_eq!(ends(&pair.at_a), [End::Newer]);
    assert!(pair.a.is_up() && pair.b.is_up());
}

// pins: B7
// case: 32
#[test]
fn the_second_of_two_nodes_with_a_name_takes_the_place_of_a_silent_first() {
    let settings = Settings::default();
    let mut pair = Pair::up(&settings);
    let mut other = session("b", 2, "a", &settings);
    let now = pair.now();
    other.open(now);
    let hello = other.poll_frame(now).unwrap();
    pair.a.handle(&hello.frame, now);
    pair.run_with(1_001, |_, _| false);
    assert_eq!(ends(&pair.at_a), [End::Restarted]);
}

// pins: B7
// case: 25
#[test]
fn a_node_with_a_clock_set_back_learns_the_later_incarnation() {
    let settings = Settings::default();
    let mut pair = Pair::new(&settings);
    pair.b = session("b", 9, "a", &settings);
    pair.a.open(at(0));
    pair.run(1);
    pair.b = session("b", 5, "a", &settings);
    let now = pair.now();
    pair.b.open(now);
    pair.run(10);
    let newest = Incarnation::from_bits(9);
    assert_eq!(refusals(&pair.at_b), [Refusal::Outdated(newest)]);
    let above = Incarnation::from_bits(5).above(newest);
    pair.b = session("b", above.to_bits(), "a", &settings);
    let now = pair.now();
    pair.b.open(now);
    pair.run(1_500);
    assert!(pair.a.is_up() && pair.b.is_up());
}

fn stranger(identity: Identity) -> Session {
    let halves = Halves::new(Incarnation::from_bits(3));
    Session::new(identity, halves, name("a"), Settings::default())
}

/// Returns the refusal of a peer with this identity.
fn refused(identity: Identity, a: &mut Session) -> Vec<Refusal> {
    let mut peer = stranger(identity);
    peer.open(at(0));
    let hello = peer.poll_frame(at(0)).unwrap();
    a.handle(&hello.frame, at(0));
    let events: Vec<_> = std::iter::from_fn(|| a.poll_event()).collect();
    assert_eq!(a.session(), None, "nothing is kept of a stranger");
    refusals(&events)
}

// pins: B7
// case: 33
#[test]
fn strangers_are_refused_by_name_cluster_and_proof() {
    struct Cookie(&'static [u8]);

    impl Proof for Cookie {
        fn make(&self, said: &[u8]) -> Bytes {
            let sum = said.iter().map(|it| u64::from(*it)).sum::<u64>();
            [self.0, &sum.to_le_bytes()].concat().into()
        }

        fn check(&self, said: &[u8], proof: &[u8]) -> bool {
            self.make(said) == proof
        }
    }

    let mut a = session("a", 1, "b", &Settings::default());
    let other = refused(Identity::new(name("c"), "cluster"), &mut a);
    assert_eq!(other, [Refusal::OtherName("c".into())]);
    let other = refused(Identity::new(name("b"), "staging"), &mut a);
    assert_eq!(other, [Refusal::OtherCluster("staging".into())]);
    let mut identity = Identity::new(name("a"), "cluster");
    identity.proof = Arc::new(Cookie(b"secret"));
    let halves = Halves::new(Incarnation::from_bits(1));
    let mut a = Session::new(identity, halves, name("b"), Settings::default());
    let mut peer = Identity::new(name("b"), "cluster");
    assert_eq!(refused(peer.clone(), &mut a), [Refusal::WrongProof]);
    peer.proof = Arc::new(Cookie(b"guess"));
    assert_eq!(refused(peer.clone(), &mut a), [Refusal::WrongProof]);
    peer.proof = Arc::new(Cookie(b"secret"));
    let mut peer = stranger(peer);
    peer.open(at(0));
    for _ in 0..3 {
        while let Some(sent) = peer.poll_frame(at(0)) {
            a.handle(&sent.frame, at(0));
        }
        while let Some(sent) = a.poll_frame(at(0)) {
            peer.handle(&sent.frame, at(0));
        }
    }
    assert!(a.is_up() && peer.is_up());
}
