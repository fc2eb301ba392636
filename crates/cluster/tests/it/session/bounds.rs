//! Limits: queues, windows, credit, frames.

use crate::support::{From, Pair, at, ends, heard, ms, session};
use bytes::{Bytes, BytesMut};
use ganger_cluster::{
    End, Event, Frame, HEADER, Known, Lane, MAX_FRAME, Reader, SendError, Settings, SymbolKind,
    Writer,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

// pins: B8
#[test]
fn no_more_is_in_flight_than_the_window() {
    let mut settings = Settings::default();
    settings.window = 1_000;
    settings.frame = 300;
    let mut pair = Pair::up(&settings);
    for number in 0..100 {
        pair.say(From::A, Lane::Data, number, 200).unwrap();
    }
    let now = pair.now();
    while pair.a.poll_frame(now).is_some() {}
    let in_flight = pair.a.stats().unacknowledged[1];
    assert!((600..=1_000).contains(&in_flight), "{in_flight}");
    pair.run(200);
    assert!(heard(&pair.at_b).into_iter().eq(0..100));
}

// pins: B8
#[test]
fn a_full_queue_refuses_and_takes_again_when_frames_have_left() {
    let mut settings = Settings::default();
    settings.queue = 10_000;
    let mut pair = Pair::up(&settings);
    let mut accepted = 0;
    while pair.say(From::A, Lane::Data, accepted, 100).is_ok() {
        accepted += 1;
    }
    let full = pair.say(From::A, Lane::Data, 0, 100);
    assert_eq!(full, Err(SendError::Full));
    assert!((90..100).contains(&accepted), "{accepted}");
    assert!(pair.a.stats().queued[1] < 10_200);
    // The other lane has a queue of its own.
    pair.say(From::A, Lane::Control, 1_000, 0).unwrap();
    pair.run(2);
    pair.say(From::A, Lane::Data, accepted, 100).unwrap();
    pair.run(2);
    assert_eq!(heard(&pair.at_b).len() as u64, accepted + 2);
}

// pins: B8
#[test]
fn the_largest_message_fills_a_frame_and_a_larger_one_is_refused_whole() {
    let mut pair = Pair::up(&Settings::default());
    // A header, a length, an op.
    let most = MAX_FRAME - HEADER - 3;
    let now = pair.now();
    let body = vec![7; most + 1];
    let sent = pair.a.send(Lane::Data, 1, now, |it| it.raw(&body[..most]));
    assert!(sent.is_ok());
    let (needs, limit) = (MAX_FRAME + 1, MAX_FRAME);
    let sent = pair.a.send(Lane::Data, 1, now, |it| {
        it.symbol(SymbolKind::Topic, "news");
        it.raw(&body[..most - 6]);
    });
    let most = limit;
    assert_eq!(sent, Err(SendError::TooLarge { needs, most }));
    // The symbol of the refused message is not known to the peer. So it is sent again.
    let sent = pair.a.send(Lane::Data, 2, now, |it| {
        it.symbol(SymbolKind::Topic, "news");
    });
    assert!(sent.is_ok());
    let mut sizes = Vec::new();
    pair.run_with(2, |from, frame| {
        if from == From::A {
            sizes.push(frame.len());
        }
        true
    });
    assert_eq!(sizes, [MAX_FRAME, HEADER + 3 + 7]);
}

// pins: B9
// case: 8
#[test]
fn a_receiver_that_takes_nothing_stalls_data_and_not_control() {
    let mut settings = Settings::default();
    settings.credit = 100_000;
    settings.frame = 2_000;
    let mut pair = Pair::up(&settings);
    pair.consumes = false;
    for number in 0..500 {
        pair.say(From::A, Lane::Data, number, 1_000).unwrap();
    }
    pair.run(1_000);
    let taken = heard(&pair.at_b).len();
    assert!((95..=100).contains(&taken), "{taken}");
    pair.say(From::A, Lane::Control, 1_000, 0).unwrap();
    pair.run(30_000);
    assert_eq!(heard(&pair.at_b).last(), Some(&1_000));
    assert_eq!(heard(&pair.at_b).len(), taken + 1);
    assert!(
        ends(&pair.at_a).is_empty(),
        "a slow receiver ends no session"
    );
    // The consumed bytes let as many through.
    let session = pair.b.session().unwrap();
    pair.b.consumed(session, 50_000);
    pair.run(10);
    let more = heard(&pair.at_b).len() - taken - 1;
    assert!((45..=50).contains(&more), "{more}");
    pair.consumes = true;
    pair.b.consumed(session, 100_000);
    pair.run(100);
    assert_eq!(heard(&pair.at_b).len(), 501);
}

// pins: B9
#[test]
fn a_lost_word_of_credit_is_asked_for() {
    let mut settings = Settings::default();
    settings.credit = MAX_FRAME;
    settings.frame = 2_000;
    // No heartbeat helps.
    settings.heartbeat = settings.dead / 2;
    let mut pair = Pair::up(&settings);
    pair.consumes = false;
    for number in 0..100 {
        pair.say(From::A, Lane::Data, number, 1_000).unwrap();
    }
    pair.run(50);
    let taken = heard(&pair.at_b).len();
    assert!(taken < 70);
    let session = pair.b.session().unwrap();
    pair.b.consumed(session, MAX_FRAME);
    pair.run_with(1, |from, _| from == From::A);
    assert_eq!(heard(&pair.at_b).len(), taken);
    pair.run(500);
    assert_eq!(heard(&pair.at_b).len(), 100);
}

// pins: B8
#[test]
fn a_peer_that_sends_more_than_it_may_ends_the_session() {
    let mut strict = Settings::default();
    strict.credit = MAX_FRAME;
    let mut pair = Pair::new(&strict);
    pair.consumes = false;
    pair.a.open(at(0));
    pair.run(1);
    pair.say(From::A, Lane::Data, 1, 1_000).unwrap();
    let now = pair.now();
    let frame = pair.a.poll_frame(now).unwrap().frame;
    // The same message again and again, with the next numbers.
    for seq in 0..100_u64 {
        let mut frame = BytesMut::from(&frame[..]);
        frame[32..40].copy_from_slice(&seq.to_le_bytes());
        pair.b.handle(&frame.freeze(), now);
    }
    pair.run_with(1, |_, _| false);
    assert_eq!(ends(&pair.at_b), [End::Violation]);
    assert!(heard(&pair.at_b).len() < 66);
}

// pins: B8
#[test]
fn a_peer_that_acknowledges_what_was_not_sent_ends_the_session() {
    let mut pair = Pair::up(&Settings::default());
    pair.say(From::A, Lane::Data, 1, 0).unwrap();
    let mut ack = None;
    pair.run_with(2, |from, frame| {
        if from == From::B {
            ack = Some(frame.clone());
        }
        true
    });
    let ack: Bytes = ack.unwrap();
    assert!(matches!(Frame::parse(&ack), Ok(Frame::Ack { .. })));
    let mut wrong = BytesMut::from(&ack[..]);
    wrong[48..56].copy_from_slice(&2_u64.to_le_bytes());
    let now = pair.now();
    pair.a.handle(&wrong.freeze(), now);
    pair.run(1);
    assert_eq!(ends(&pair.at_a), [End::Violation]);
}

/// Returns the acknowledgement of `b` for a first message of `a`, which has its credit; and a pair
/// in which it has come.
fn acknowledged(credit: usize, consumed: usize) -> (Pair, Bytes) {
    let mut settings = Settings::default();
    settings.credit = credit;
    settings.frame = 2_000;
    let mut pair = Pair::up(&settings);
    pair.consumes = false;
    pair.say(From::A, Lane::Data, 0, 1_000).unwrap();
    let mut ack = None;
    pair.run_with(1, |from, frame| {
        if from == From::B {
            ack = Some(frame.clone());
        }
        true
    });
    let session = pair.b.session().unwrap();
    pair.b.consumed(session, consumed);
    (pair, ack.unwrap())
}

/// Counts the messages that `b` has when it consumes none.
fn until_stalled(pair: &mut Pair) -> usize {
    for number in 1..200 {
        pair.say(From::A, Lane::Data, number, 1_000).unwrap();
    }
    pair.run(100);
    heard(&pair.at_b).len()
}

// pins: B8
#[test]
fn credit_of_a_late_frame_does_not_count_twice() {
    let (mut pair, ack) = acknowledged(100_000, 0);
    pair.say(From::A, Lane::Data, 1, 1_000).unwrap();
    pair.run(1);
    // The acknowledgement of the first comes after the one of the second.
    let now = pair.now();
    pair.a.handle(&ack, now);
    assert!(until_stalled(&mut pair) <= 100);
    assert!(ends(&pair.at_b).is_empty(), "{:?}", pair.at_b.last());
}

// pins: B9
#[test]
fn a_late_frame_takes_no_credit_back() {
    let (mut pair, ack) = acknowledged(MAX_FRAME, MAX_FRAME);
    // The peer learns of more credit, and then hears what was said before.
    let now = pair.now();
    pair.a.vanished(now);
    pair.run(1);
    let mut old = BytesMut::from(&ack[..]);
    old[56..60].copy_from_slice(&0_u32.to_le_bytes());
    let now = pair.now();
    pair.a.handle(&old.freeze(), now);
    for number in 1..10 {
        pair.say(From::A, Lane::Data, number, 1_000).unwrap();
    }
    pair.run(2);
    assert_eq!(heard(&pair.at_b).len(), 10);
}

// pins: B8
#[test]
fn a_message_whose_writer_panics_leaves_no_trace() {
    let mut pair = Pair::up(&Settings::default());
    pair.say(From::A, Lane::Data, 1, 0).unwrap();
    let now = pair.now();
    let text = "a type";
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        pair.a.send(Lane::Data, 1, now, |writer| {
            writer.symbol(SymbolKind::Type, text);
            panic!("by the test");
        })
    }));
    assert!(panicked.is_err());
    let symbol = |writer: &mut Writer<'_>| writer.symbol(SymbolKind::Type, text);
    pair.a.send(Lane::Data, 2, now, symbol).unwrap();
    pair.run(10);
    assert!(ends(&pair.at_b).is_empty(), "{:?}", ends(&pair.at_b));
    let messages = pair.at_b.iter().filter_map(|event| match event {
        Event::Received { messages, .. } => Some(messages.clone()),
        _ => None,
    });
    let last = messages.flatten().last().unwrap();
    assert_eq!(last.op, 2);
    let read = Reader::new(last.body).symbol(&mut Known::default(), SymbolKind::Type);
    assert_eq!(read.as_deref(), Ok(text));
    // In a frame of its own as well.
    let now = pair.now();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        pair.a.send(Lane::Data, 1, now, |_| panic!("by the test"))
    }));
    assert!(panicked.is_err());
    assert!(pair.a.is_flushed());
    assert!(pair.a.poll_frame(now).is_none());
}

// pins: B7, B8
#[test]
fn strangers_fill_no_memory_while_this_side_does_not_look() {
    let mut stranger = session("a", 1, "b", &Settings::default());
    let mut me = session("b", 1, "a", &Settings::default());
    let now = at(0);
    stranger.open(now);
    let hello = stranger.poll_frame(now).unwrap().frame;
    let mut wrong = BytesMut::from(&hello[..]);
    // Another name, of the same length.
    wrong[61] = b'z';
    let wrong = wrong.freeze();
    for _ in 0..1_000 {
        me.handle(&wrong, now);
        me.handle(&Bytes::from_static(b"no frame"), now);
    }
    let events: Vec<_> = std::iter::from_fn(|| me.poll_event()).collect();
    assert!((1..=16).contains(&events.len()), "{}", events.len());
    // Once looked at, the next is told.
    me.handle(&wrong, now);
    assert!(matches!(me.poll_event(), Some(Event::Refused(_))));
}

// pins: B6
#[test]
fn an_idle_session_lasts_with_extreme_settings() {
    let mut short = Settings::default();
    short.dead = ms(700);
    let mut long = Settings::default();
    for time in [
        &mut long.heartbeat,
        &mut long.dead,
        &mut long.vanished,
        &mut long.rival,
        &mut long.least_timeout,
        &mut long.first_timeout,
    ] {
        *time = Duration::MAX;
    }
    for settings in [short, long] {
        let mut pair = Pair::up(&settings);
        pair.run(5_000);
        pair.say(From::A, Lane::Data, 1, 0).unwrap();
        pair.run(5_000);
        assert_eq!(heard(&pair.at_b), [1]);
        assert!(ends(&pair.at_a).is_empty() && ends(&pair.at_b).is_empty());
    }
}
