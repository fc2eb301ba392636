//! Order, loss and repetition in a lane.

use crate::support::{From, Pair, ends, heard, ms};
use bytes::Bytes;
use ganger_cluster::{Event, Frame, Lane, Settings};
use proptest::prelude::*;
use std::collections::VecDeque;

fn is_data(frame: &Bytes) -> bool {
    matches!(Frame::parse(frame), Ok(Frame::Data { .. }))
}

/// Returns the number of a frame of messages.
fn seq(frame: &Bytes) -> Option<u64> {
    match Frame::parse(frame) {
        Ok(Frame::Data { seq, .. }) => Some(seq),
        _ => None,
    }
}

/// Returns settings with small frames: a message of 200 bytes fills a frame.
fn small() -> Settings {
    let mut settings = Settings::default();
    settings.frame = 300;
    settings
}

// pins: B1, B2
#[test]
fn a_missing_frame_is_asked_for_at_once_and_all_behind_it_come_again() {
    let mut pair = Pair::up(&small());
    for number in 0..5 {
        pair.say(From::A, Lane::Data, number, 200).unwrap();
    }
    let mut lost = false;
    let mut sent = Vec::new();
    pair.run_with(5, |from, frame| {
        let number = seq(frame).filter(|_| from == From::A);
        sent.extend(number);
        let is_lost = number == Some(1) && !lost;
        lost |= is_lost;
        !is_lost
    });
    assert_eq!(heard(&pair.at_b), [0, 1, 2, 3, 4]);
    assert_eq!(sent, [0, 1, 2, 3, 4, 1, 2, 3, 4]);
    assert!(pair.a.is_flushed());
}

// pins: B2
#[test]
fn what_comes_twice_is_delivered_once_and_acknowledged_again() {
    let mut pair = Pair::up(&small());
    pair.say(From::A, Lane::Data, 7, 0).unwrap();
    let mut copy = None;
    pair.run_with(2, |_, frame| {
        if is_data(frame) {
            copy = Some(frame.clone());
        }
        true
    });
    let mut acks = 0;
    let now = pair.now();
    pair.b.handle(&copy.unwrap(), now);
    pair.run_with(1, |from, _| {
        acks += u32::from(from == From::B);
        true
    });
    assert_eq!(heard(&pair.at_b), [7]);
    assert_eq!(acks, 1);
}

// pins: B3
#[test]
fn a_lost_last_frame_comes_again_after_the_time_out() {
    let mut pair = Pair::up(&Settings::default());
    pair.say(From::A, Lane::Data, 7, 0).unwrap();
    let mut lost = 0;
    pair.run_with(500, |_, frame| {
        lost += u32::from(is_data(frame));
        !is_data(frame) || lost > 2
    });
    assert_eq!(heard(&pair.at_b), [7]);
    assert_eq!(pair.a.stats().resent, [0, 2]);
    assert_eq!(pair.a.stats().frames, [0, 1]);
    assert!(ends(&pair.at_a).is_empty());
}

// pins: B6
#[test]
fn a_paused_peer_gets_few_frames_and_then_all_of_them() {
    let mut settings = small();
    settings.queue = 1 << 20;
    let mut pair = Pair::up(&settings);
    for number in 0..1_000 {
        pair.say(From::A, Lane::Data, number, 200).unwrap();
    }
    // The window is full, and nothing is answered for five seconds.
    let mut first = 0;
    pair.run_with(1, |from, _| {
        first += u32::from(from == From::A);
        false
    });
    let mut again = 0;
    pair.run_with(5_000, |from, _| {
        again += u32::from(from == From::A);
        false
    });
    assert_eq!(first, 1_000);
    assert!(again < 20, "{again} frames for a peer that is silent");
    pair.run(1_500);
    assert!(heard(&pair.at_b).into_iter().eq(0..1_000));
    assert!(ends(&pair.at_a).is_empty());
}

// pins: B1
#[test]
fn control_overtakes_data_and_each_lane_is_in_order() {
    let mut pair = Pair::up(&small());
    for number in 0..10 {
        pair.say(From::A, Lane::Data, number, 200).unwrap();
        pair.say(From::A, Lane::Control, 100 + number, 0).unwrap();
    }
    pair.run(3);
    let heard = heard(&pair.at_b);
    let (control, data): (Vec<u64>, Vec<u64>) = heard.iter().partition(|it| **it >= 100);
    assert!(control.into_iter().eq(100..110));
    assert!(data.into_iter().eq(0..10));
    assert_eq!(
        heard[..10],
        [100, 101, 102, 103, 104, 105, 106, 107, 108, 109]
    );
}

#[test]
fn small_messages_share_a_frame_while_two_others_are_under_way() {
    let mut pair = Pair::up(&Settings::default());
    let now = pair.now();
    // The first two leave alone and at once.
    let mut sent = Vec::new();
    for number in 0..2 {
        pair.say(From::A, Lane::Data, number, 0).unwrap();
        sent.push(pair.a.poll_frame(now).unwrap());
    }
    for number in 2..100 {
        pair.say(From::A, Lane::Data, number, 0).unwrap();
    }
    assert_eq!(pair.a.poll_frame(now), None);
    for sent in sent {
        pair.b.handle(&sent.frame, now);
    }
    let mut frames = 0;
    pair.run_with(1, |_, frame| {
        frames += u32::from(is_data(frame));
        true
    });
    assert!(heard(&pair.at_b).into_iter().eq(0..100));
    assert_eq!(frames, 1);
}

#[test]
fn an_answer_takes_the_acknowledgement_of_its_question_along() {
    let mut pair = Pair::up(&Settings::default());
    let now = pair.now();
    for number in 0..10 {
        pair.say(From::A, Lane::Data, number, 64).unwrap();
        let question = pair.a.poll_frame(now).unwrap();
        pair.b.handle(&question.frame, now);
        assert_eq!(
            pair.b.poll_frame(now),
            None,
            "an acknowledgement of its own"
        );
        // By the other lane, as answers of functions are.
        pair.say(From::B, Lane::Control, number, 64).unwrap();
        let answer = pair.b.poll_frame(now).unwrap();
        pair.a.handle(&answer.frame, now);
        assert!(pair.a.is_flushed());
        assert_eq!(
            pair.a.poll_frame(now),
            None,
            "an acknowledgement of its own"
        );
    }
    assert!(!pair.b.is_flushed());
    let deadline = pair.a.deadline().unwrap();
    assert!(deadline <= now + ms(1), "{deadline:?}");
    let last = pair.a.poll_frame(deadline).unwrap();
    assert!(!is_data(&last.frame));
    pair.b.handle(&last.frame, deadline);
    assert!(pair.b.is_flushed());
}

#[test]
fn a_long_frame_is_acknowledged_at_once() {
    let mut pair = Pair::up(&Settings::default());
    let now = pair.now();
    pair.say(From::A, Lane::Data, 7, 40_000).unwrap();
    let long = pair.a.poll_frame(now).unwrap();
    pair.b.handle(&long.frame, now);
    let ack = pair.b.poll_frame(now).unwrap();
    pair.a.handle(&ack.frame, now);
    assert!(pair.a.is_flushed());
}

proptest! {
    /// Acts with all sizes and orders of sends, polls and arrivals: without loss all messages
    /// arrive while the clock stands still.
    #[test]
    fn no_sender_waits_for_a_delayed_acknowledgement(
        acts in proptest::collection::vec((0_u8..3, 0_usize..4, any::<bool>()), 1..200),
    ) {
        let mut pair = Pair::up(&Settings::default());
        let mut way: [VecDeque<Bytes>; 2] = Default::default();
        let mut said = [0_u64; 2];
        let now = pair.now();
        // At last, all acts left.
        let all = (0..1_000).flat_map(|_| {
            [(1, 0, true), (2, 0, true), (1, 0, false), (2, 0, false)]
        });
        for (act, size, is_a) in acts.into_iter().chain(all) {
            let side = usize::from(!is_a);
            match act {
                0 => {
                    let zeros = [0, 64, 20_000, 40_000][size];
                    let from = [From::A, From::B][side];
                    let lane = [Lane::Data, Lane::Control][size % 2];
                    pair.say(from, lane, said[side], zeros).unwrap();
                    said[side] += 1;
                }
                1 => {
                    let from = [&mut pair.a, &mut pair.b];
                    let sent = from.into_iter().nth(side).unwrap().poll_frame(now);
                    way[side].extend(sent.map(|it| it.frame));
                }
                _ => {
                    let to = [&mut pair.b, &mut pair.a];
                    if let Some(frame) = way[side].pop_front() {
                        to.into_iter().nth(side).unwrap().handle(&frame, now);
                    }
                    pair.look();
                }
            }
        }
        let heard = [&pair.at_b, &pair.at_a].map(|it| heard(it).len() as u64);
        prop_assert_eq!(heard, said);
    }
}

// pins: B3
#[test]
fn a_frame_that_the_engine_refuses_leaves_when_it_takes_frames_again() {
    let mut pair = Pair::up(&small());
    for number in 0..3 {
        pair.say(From::A, Lane::Data, number, 200).unwrap();
    }
    let now = pair.now();
    let refused = pair.a.poll_frame(now).unwrap();
    pair.a.put_back(&refused, now);
    assert_eq!(pair.a.poll_frame(now), None);
    // The other lane goes on.
    pair.say(From::A, Lane::Control, 9, 0).unwrap();
    pair.run(10);
    assert_eq!(heard(&pair.at_b), [9]);
    pair.a.writable();
    pair.run(1);
    assert_eq!(heard(&pair.at_b), [9, 0, 1, 2]);
    // An engine that forgets to call costs a heartbeat.
    pair.say(From::A, Lane::Data, 3, 0).unwrap();
    let now = pair.now();
    let refused = pair.a.poll_frame(now).unwrap();
    pair.a.put_back(&refused, now);
    pair.run(1_100);
    assert_eq!(heard(&pair.at_b), [9, 0, 1, 2, 3]);
}

#[test]
fn a_nack_is_heeded_once_in_a_round_trip() {
    let mut pair = Pair::up(&small());
    // A round trip of 10 ms, as the first frame measures it.
    pair.say(From::A, Lane::Data, 0, 200).unwrap();
    let first = pair.a.poll_frame(pair.now()).unwrap();
    pair.now += 10;
    let now = pair.now();
    pair.b.handle(&first.frame, now);
    pair.run(1);
    assert_eq!(pair.a.stats().round_trip, Some(ms(10)));
    for number in 1..4 {
        pair.say(From::A, Lane::Data, number, 200).unwrap();
    }
    let now = pair.now();
    let mut frames: Vec<_> = std::iter::from_fn(|| pair.a.poll_frame(now)).collect();
    assert_eq!(frames.len(), 3);
    frames.remove(0);
    pair.b.handle(&frames[0].frame, now);
    let nack = pair.b.poll_frame(now).unwrap();
    assert!(matches!(
        Frame::parse(&nack.frame),
        Ok(Frame::Ack {
            nack: [false, true],
            ..
        })
    ));
    // The second gap in the same round trip says nothing.
    pair.b.handle(&frames[1].frame, now);
    assert_eq!(pair.b.poll_frame(now), None);
    pair.a.handle(&nack.frame, now);
    pair.a.handle(&nack.frame, now);
    let again: Vec<_> = std::iter::from_fn(|| pair.a.poll_frame(now)).collect();
    assert_eq!(again.len(), 3);
    pair.a.handle(&nack.frame, now);
    assert_eq!(pair.a.poll_frame(now), None, "of the same round");
    assert!(!pair.at_a.iter().any(|it| matches!(it, Event::Ended { .. })));
}
