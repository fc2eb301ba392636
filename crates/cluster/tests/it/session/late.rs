//! Late frames, and the end of a side.

use crate::support::{From, Pair, at, ends};
use bytes::Bytes;
use ganger_cluster::{End, Frame, Incarnation, Lane, Notice, Settings, State};

/// Returns both sides when they are up, with all Hellos that have come.
fn up_with_hellos() -> (Pair, Vec<(From, Bytes)>) {
    let mut pair = Pair::new(&Settings::default());
    let mut hellos = Vec::new();
    pair.a.open(at(0));
    pair.run_with(1, |from, frame| {
        if matches!(Frame::parse(frame), Ok(Frame::Hello(_))) {
            hellos.push((from, frame.clone()));
        }
        true
    });
    assert!(pair.a.is_up() && pair.b.is_up());
    (pair, hellos)
}

// pins: B5
#[test]
fn a_late_hello_opens_no_session_after_a_farewell() {
    let (mut pair, hellos) = up_with_hellos();
    let now = pair.now();
    pair.a.close(now);
    pair.run(1);
    assert_eq!(ends(&pair.at_a), [End::Closed]);
    assert_eq!(ends(&pair.at_b), [End::Bye]);
    let now = pair.now();
    for (from, hello) in &hellos {
        match from {
            From::A => pair.b.handle(hello, now),
            From::B => pair.a.handle(hello, now),
        }
    }
    pair.run(3_000);
    assert_eq!(pair.a.stats().state, State::Down);
    assert_eq!(pair.b.stats().state, State::Down);
    // A side gets a session when it asks.
    let now = pair.now();
    pair.b.open(now);
    pair.run(3_000);
    assert!(pair.a.is_up() && pair.b.is_up());
}

// pins: B5
#[test]
fn a_side_that_leaves_says_so_again_to_a_peer_that_still_opens() {
    let mut pair = Pair::new(&Settings::default());
    pair.a.open(at(0));
    // The other side hears Hellos alone, so its session is not up.
    pair.run_with(1, |_, frame| {
        matches!(Frame::parse(frame), Ok(Frame::Hello(_)))
    });
    assert!(pair.a.is_up() && !pair.b.is_up());
    let now = pair.now();
    pair.a.close(now);
    // The farewell is lost.
    pair.run_with(1, |from, _| from == From::B);
    pair.run(3_000);
    assert_eq!(pair.a.stats().state, State::Down);
    assert_eq!(pair.b.stats().state, State::Down);
}

// pins: B5
#[test]
fn a_side_that_leaves_before_it_is_up_tells_the_peer() {
    let mut pair = Pair::new(&Settings::default());
    pair.a.open(at(0));
    pair.b.open(at(0));
    // A side hears both Hellos of its peer, whose session comes up first.
    let mut of_b = 0;
    pair.run_with(1, |from, frame| {
        let is_hello = matches!(Frame::parse(frame), Ok(Frame::Hello(_)));
        of_b += u32::from(from == From::B && is_hello);
        is_hello && (from == From::A || of_b == 1)
    });
    assert!(!pair.a.is_up() && pair.b.is_up());
    let now = pair.now();
    pair.a.close(now);
    pair.run(3_000);
    assert_eq!(ends(&pair.at_b), [End::Bye]);
    assert_eq!(pair.a.stats().state, State::Down);
    assert_eq!(pair.b.stats().state, State::Down);
}

// pins: B5
#[test]
fn a_side_that_leaves_says_so_also_behind_many_answers() {
    let mut pair = Pair::up(&Settings::default());
    let now = pair.now();
    let (to, mut from) = (pair.a.session().unwrap(), pair.b.session().unwrap());
    from.number += 1;
    for _ in 0..100 {
        pair.a.handle(&Frame::Bye { to, from }.encode(), now);
    }
    pair.a.close(now);
    pair.run(1);
    assert_eq!(ends(&pair.at_b), [End::Bye]);
}

// pins: B5
#[test]
fn a_late_refusal_ends_no_session() {
    for notice in [
        Notice::NameTaken,
        Notice::Outdated(Incarnation::from_bits(9)),
    ] {
        let mut pair = Pair::up(&Settings::default());
        let to = pair.b.session().unwrap();
        let now = pair.now();
        pair.b.handle(&Frame::Reset { to, notice }.encode(), now);
        pair.say(From::A, Lane::Data, 1, 0).unwrap();
        pair.run(3_000);
        assert!(ends(&pair.at_b).is_empty(), "{notice:?}");
        assert!(ends(&pair.at_a).is_empty(), "{notice:?}");
    }
}
