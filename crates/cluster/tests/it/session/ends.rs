//! How sessions begin and end.

use crate::support::{From, Pair, at, ends, heard, refusals, session};
use bytes::Bytes;
use ganger_cluster::{
    End, Event, Frame, FrameError, Lane, Notice, ReadError, SendError, Settings, State,
};

/// A frame of messages without a sender.
const MALFORMED: [u8; 64] = {
    let mut bytes = [0; 64];
    (bytes[0], bytes[1], bytes[4], bytes[16]) = (1, 2, 1, 1);
    bytes
};

fn is_hello(frame: &Bytes) -> bool {
    matches!(Frame::parse(frame), Ok(Frame::Hello(_)))
}

fn is_in(lane: Lane, frame: &Bytes) -> bool {
    matches!(Frame::parse(frame), Ok(Frame::Data { lane: of, .. }) if of == lane)
}

// pins: B5
#[test]
fn both_may_open_at_once_and_lost_hellos_are_repeated() {
    let mut pair = Pair::new(&Settings::default());
    pair.a.open(at(0));
    pair.b.open(at(0));
    let mut lost = 0;
    pair.run_with(1_000, |_, frame| {
        lost += u32::from(is_hello(frame));
        !is_hello(frame) || lost > 3
    });
    assert!(pair.a.is_up() && pair.b.is_up());
    for events in [&pair.at_a, &pair.at_b] {
        assert!(matches!(events[..], [Event::Up { .. }]), "{events:?}");
    }
}

#[test]
fn hellos_to_a_node_that_is_not_there_come_less_often() {
    let mut pair = Pair::new(&Settings::default());
    pair.a.open(at(0));
    let mut hellos = 0;
    pair.run_with(60_000, |_, _| {
        hellos += 1;
        false
    });
    assert!((60..70).contains(&hellos), "{hellos}");
    // A hint brings a Hello at once.
    let now = pair.now();
    pair.a.appeared(now);
    assert!(pair.a.poll_frame(now).is_some());
}

// pins: B6
// case: 10
#[test]
fn heartbeats_keep_an_idle_session_and_silence_ends_it() {
    let mut pair = Pair::up(&Settings::default());
    let mut beats = 0;
    pair.run_with(60_000, |_, _| {
        beats += 1;
        true
    });
    assert!((100..130).contains(&beats), "{beats} in a minute");
    assert!(ends(&pair.at_a).is_empty() && ends(&pair.at_b).is_empty());
    // Nothing gets through for a little less than the time, and then for a little longer.
    pair.run_with(5_000, |_, _| false);
    pair.run(2_000);
    assert!(ends(&pair.at_a).is_empty() && ends(&pair.at_b).is_empty());
    pair.run_with(8_000, |_, _| false);
    assert_eq!(ends(&pair.at_a), [End::Silence]);
    assert_eq!(ends(&pair.at_b), [End::Silence]);
    pair.run(2_000);
    assert!(pair.a.is_up() && pair.b.is_up());
}

// pins: B3, B4
// case: 28
#[test]
fn a_lane_that_loses_all_ends_the_session_though_the_peer_is_heard() {
    for lane in Lane::ALL {
        let mut pair = Pair::up(&Settings::default());
        pair.say(From::A, lane, 1, 0).unwrap();
        pair.run_with(6_900, |_, frame| !is_in(lane, frame));
        assert!(ends(&pair.at_a).is_empty());
        pair.run_with(200, |_, frame| !is_in(lane, frame));
        assert_eq!(ends(&pair.at_a), [End::NoProgress], "{lane:?}");
        assert_eq!(ends(&pair.at_b), [End::Newer], "{lane:?}");
        assert!(pair.a.is_up() && pair.b.is_up());
    }
}

// pins: B4
#[test]
fn an_end_counts_what_was_sent_and_gives_back_what_was_not() {
    let mut settings = Settings::default();
    settings.window = 1;
    settings.frame = 300;
    let mut pair = Pair::up(&settings);
    for number in 0..5 {
        pair.say(From::A, Lane::Data, number, 200).unwrap();
    }
    pair.run_with(8_000, |from, frame| from == From::B || is_hello(frame));
    let ended = pair.at_a.iter().find_map(|event| match event {
        Event::Ended { undelivered, .. } => Some(undelivered),
        _ => None,
    });
    let undelivered = ended.unwrap();
    assert_eq!(undelivered.unacknowledged, 1);
    let unsent = undelivered.unsent.iter().flat_map(|it| it.1.clone());
    let numbers = unsent.map(|it| ganger_cluster::Reader::new(it.body).varint());
    assert!(numbers.eq((1..5).map(Ok)));
    assert_eq!(ends(&pair.at_a).len(), 1);
}

// pins: B3
#[test]
fn messages_for_a_peer_that_is_not_there_come_back() {
    let mut pair = Pair::new(&Settings::default());
    let now = pair.now();
    let refused = pair.say(From::A, Lane::Data, 1, 0);
    assert_eq!(refused, Err(SendError::NoSession));
    pair.a.open(now);
    pair.run_with(100_000, |_, _| false);
    assert!(pair.at_a.is_empty(), "without a message there is no end");
    pair.say(From::A, Lane::Data, 1, 0).unwrap();
    pair.run_with(7_100, |_, _| false);
    let [
        Event::Ended {
            why, undelivered, ..
        },
    ] = &pair.at_a[..]
    else {
        panic!("{:?}", pair.at_a);
    };
    assert_eq!(*why, End::Unreachable);
    assert_eq!(undelivered.unacknowledged, 0);
    assert_eq!(undelivered.unsent.len(), 1);
    // The session still opens.
    pair.run(2_000);
    assert!(pair.a.is_up());
}

// pins: B4
#[test]
fn a_side_that_leaves_says_so() {
    let mut pair = Pair::up(&Settings::default());
    pair.say(From::A, Lane::Data, 1, 0).unwrap();
    pair.run(2);
    assert!(pair.a.is_flushed());
    let now = pair.now();
    pair.a.close(now);
    pair.run(10_000);
    assert_eq!(ends(&pair.at_a), [End::Closed]);
    assert_eq!(ends(&pair.at_b), [End::Bye]);
    for side in [&pair.a, &pair.b] {
        assert_eq!(side.stats().state, State::Down);
        assert_eq!(side.deadline(), None);
    }
    // Either side may open again.
    let now = pair.now();
    pair.b.open(now);
    pair.run(1);
    assert!(pair.a.is_up() && pair.b.is_up());
}

// pins: B5
#[test]
fn a_frame_of_an_earlier_session_is_not_delivered_and_its_sender_is_told() {
    let mut pair = Pair::up(&Settings::default());
    pair.say(From::A, Lane::Data, 1, 0).unwrap();
    let old = pair.a.poll_frame(pair.now()).unwrap();
    // Only the sender ends the session, and opens another.
    let now = pair.now();
    let session = pair.a.session().unwrap();
    pair.a.fail(session, ReadError::Short, now);
    pair.run(1);
    assert!(pair.a.is_up() && pair.b.is_up());
    pair.at_b.clear();
    let now = pair.now();
    pair.b.handle(&old.frame, now);
    let answer = pair.b.poll_frame(now).unwrap();
    let to = session;
    let notice = Notice::Unknown;
    assert_eq!(Frame::parse(&answer.frame), Ok(Frame::Reset { to, notice }));
    pair.a.handle(&answer.frame, now);
    pair.run(10);
    assert!(pair.a.is_up(), "the Reset is for the earlier half");
    assert!(heard(&pair.at_b).is_empty() && ends(&pair.at_b).is_empty());
}

// pins: B5
#[test]
fn a_side_whose_session_has_ended_at_the_peer_learns_it_by_a_reset() {
    let mut pair = Pair::up(&Settings::default());
    let now = pair.now();
    // The farewell is lost.
    pair.a.close(now);
    assert!(pair.a.poll_frame(now).is_some());
    pair.say(From::B, Lane::Data, 1, 0).unwrap();
    pair.run(10);
    assert_eq!(ends(&pair.at_b), [End::Reset]);
}

// pins: B5
#[test]
fn an_old_hello_ends_no_session() {
    let settings = Settings::default();
    let mut pair = Pair::new(&settings);
    pair.a.open(at(0));
    let mut old = None;
    pair.run_with(1, |from, frame| {
        if from == From::A && old.is_none() {
            old = Some(frame.clone());
        }
        true
    });
    let now = pair.now();
    let session = pair.a.session().unwrap();
    pair.a.fail(session, ReadError::Short, now);
    pair.run(1);
    assert!(pair.a.is_up() && pair.b.is_up());
    pair.at_b.clear();
    let now = pair.now();
    pair.b.handle(&old.unwrap(), now);
    pair.run(10);
    assert!(pair.at_b.is_empty(), "{:?}", pair.at_b);
    assert!(pair.b.is_up());
}

// pins: B6
#[test]
fn a_peer_that_vanishes_is_asked_and_ends_only_without_an_answer() {
    let mut pair = Pair::up(&Settings::default());
    let now = pair.now();
    pair.a.vanished(now);
    pair.run(1_000);
    assert!(ends(&pair.at_a).is_empty());
    let now = pair.now();
    pair.a.vanished(now);
    pair.run_with(299, |_, _| false);
    assert!(ends(&pair.at_a).is_empty());
    pair.run_with(2, |_, _| false);
    assert_eq!(ends(&pair.at_a), [End::Vanished]);
}

// pins: B6
#[test]
fn an_answer_to_an_earlier_question_is_no_sign_of_life() {
    let mut pair = Pair::up(&Settings::default());
    let now = pair.now();
    pair.a.vanished(now);
    let mut answer = None;
    pair.run_with(1, |from, frame| {
        if from == From::B {
            answer = Some(frame.clone());
        }
        true
    });
    let now = pair.now();
    pair.a.vanished(now);
    pair.run_with(100, |_, _| false);
    let now = pair.now();
    pair.a.handle(&answer.unwrap(), now);
    pair.run_with(250, |_, _| false);
    assert_eq!(ends(&pair.at_a), [End::Vanished]);
}

// pins: B8
// case: 35
#[test]
fn a_malformed_frame_ends_the_session_with_its_reason() {
    let mut pair = Pair::up(&Settings::default());
    let now = pair.now();
    pair.a.handle(&Bytes::from_static(&MALFORMED), now);
    pair.run(1);
    let error = FrameError::Half;
    assert_eq!(ends(&pair.at_a), [End::Malformed(error)]);
    assert!(pair.a.is_up(), "another session has opened");
    // Before a session is up, it refuses the peer.
    let mut side = session("a", 1, "b", &Settings::default());
    side.open(at(0));
    side.handle(&Bytes::from_static(b"GET / HTTP/1.1"), at(0));
    let events: Vec<_> = std::iter::from_fn(|| side.poll_event()).collect();
    assert_eq!(refusals(&events).len(), 1);
}

// pins: B8
// case: 35
#[test]
fn a_message_that_is_not_readable_ends_its_session_and_no_later_one() {
    let mut pair = Pair::up(&Settings::default());
    let session = pair.a.session().unwrap();
    let now = pair.now();
    pair.a.fail(session, ReadError::Text, now);
    pair.a.fail(session, ReadError::Text, now);
    pair.run(1);
    assert_eq!(ends(&pair.at_a), [End::Unreadable(ReadError::Text)]);
    assert_eq!(ends(&pair.at_b), [End::Newer]);
}
