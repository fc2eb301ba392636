//! Frames are read as they were written, and all other bytes are refused.

use super::checker;
use crate::support::{From, Pair, name};
use bytes::{Bytes, BytesMut};
use ganger_cluster::{
    Acks, Event, Frame, FrameError, HEADER, Half, Hello, Incarnation, Lane, MAX_FRAME, Notice,
    Settings,
};
use proptest::collection::vec;
use proptest::prelude::*;

fn half() -> impl Strategy<Value = Half> {
    (any::<u64>(), 1..=u32::MAX).prop_map(|(bits, number)| Half {
        incarnation: Incarnation::from_bits(bits),
        number,
    })
}

fn acks() -> impl Strategy<Value = Acks> {
    (any::<[u64; 2]>(), any::<u32>()).prop_map(|(next, credit)| Acks { next, credit })
}

fn notice() -> impl Strategy<Value = Notice> {
    (0..4, any::<u64>()).prop_map(|(which, bits)| match which {
        0 => Notice::Unknown,
        1 => Notice::NameTaken,
        2 => Notice::Outdated(Incarnation::from_bits(bits)),
        _ => Notice::Restarted(Incarnation::from_bits(bits)),
    })
}

fn hello() -> impl Strategy<Value = Frame> {
    let names = ("[a-zäö]{1,80}", "[a-z]{0,80}", vec(any::<u8>(), 0..100));
    let credit = u32::try_from(MAX_FRAME).unwrap()..;
    (half(), proptest::option::of(half()), names, credit).prop_map(
        |(half, view, (node, cluster, proof), credit)| {
            Frame::Hello(Hello {
                half,
                view,
                name: name(&node),
                cluster: cluster.into(),
                credit,
                said: Bytes::new(),
                proof: proof.into(),
            })
        },
    )
}

fn ack() -> impl Strategy<Value = Frame> {
    let probe = (any::<u64>(), 0..3);
    (half(), half(), acks(), any::<[bool; 2]>(), probe).prop_map(
        |(to, from, acks, nack, (number, which))| Frame::Ack {
            to,
            from,
            acks,
            nack,
            probe: (which == 1).then_some(number),
            answer: (which == 2).then_some(number),
        },
    )
}

fn frame() -> impl Strategy<Value = Frame> {
    prop_oneof![
        hello(),
        ack(),
        (half(), notice()).prop_map(|(to, notice)| Frame::Reset { to, notice }),
        (half(), half()).prop_map(|(to, from)| Frame::Bye { to, from }),
    ]
}

proptest! {
    // pins: B8
    #[test]
    fn a_frame_is_read_as_it_was_written(frame in frame()) {
        let mut again = Frame::parse(&frame.encode()).unwrap();
        if let Frame::Hello(hello) = &mut again {
            hello.said = Bytes::new();
        }
        prop_assert_eq!(again, frame);
    }

    // pins: B8
    #[test]
    fn any_bytes_are_a_frame_or_refused(
        frame in frame(),
        changes in vec((any::<usize>(), any::<u8>()), 0..4),
    ) {
        let mut bytes = frame.encode().to_vec();
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        checker::check(&bytes);
        bytes.truncate(bytes.len() / 2);
        checker::check(&bytes);
    }

    // pins: B1, B2
    #[test]
    fn messages_come_as_they_were_sent(
        messages in vec((any::<u8>(), any::<bool>(), vec(any::<u8>(), 0..300)), 0..60),
        frame in 300_usize..2_000,
    ) {
        let mut settings = Settings::default();
        settings.frame = frame;
        let mut pair = Pair::up(&settings);
        let mut sent = [Vec::new(), Vec::new()];
        for (op, is_control, mut body) in messages {
            body.truncate(frame - HEADER - 3);
            let lane = if is_control { Lane::Control } else { Lane::Data };
            let now = pair.now();
            pair.a.send(lane, op, now, |it| it.raw(&body)).unwrap();
            sent[lane.index()].push((op, Bytes::from(body)));
        }
        let mut sizes = Vec::new();
        pair.run_with(2, |from, frame| {
            if from == From::A {
                sizes.push(frame.len());
            }
            true
        });
        prop_assert!(sizes.iter().all(|size| *size <= frame));
        let mut got = [Vec::new(), Vec::new()];
        for event in pair.at_b {
            if let Event::Received { lane, messages, .. } = event {
                got[lane.index()].extend(messages.map(|it| (it.op, it.body)));
            }
        }
        prop_assert_eq!(got, sent);
    }
}

/// Returns a frame of two messages.
fn data() -> BytesMut {
    let mut pair = Pair::up(&Settings::default());
    for number in 0..2 {
        pair.say(From::A, Lane::Data, number, 5).unwrap();
    }
    let now = pair.now();
    let frame = pair.a.poll_frame(now).unwrap().frame;
    checker::check(&frame);
    BytesMut::from(&frame[..])
}

fn error(change: impl FnOnce(&mut BytesMut)) -> FrameError {
    let mut frame = data();
    change(&mut frame);
    checker::check(&frame);
    Frame::parse(&frame.freeze()).unwrap_err()
}

// pins: B8
// case: 35, 56
#[test]
fn each_wrong_part_of_a_frame_has_its_error() {
    assert_eq!(error(|it| it.truncate(59)), FrameError::Size(59));
    let size = MAX_FRAME + 1;
    assert_eq!(error(|it| it.resize(size, 0)), FrameError::Size(size));
    assert_eq!(error(|it| it[0] = 2), FrameError::Version(2));
    assert_eq!(error(|it| it[1] = 6), FrameError::Kind(6));
    assert_eq!(error(|it| it[2] = 2), FrameError::Lane(2));
    assert_eq!(error(|it| it[3] = 1), FrameError::Flags(1));
    assert_eq!(error(|it| it[16] = 0), FrameError::Half);
    assert_eq!(error(|it| it[28..32].fill(0)), FrameError::Half);
    for count in [0, 1, 3, 255] {
        assert_eq!(error(|it| it[4] = count), FrameError::Messages);
    }
    // A count beyond all memory is compared with the bytes at hand.
    assert_eq!(error(|it| it[4..8].fill(255)), FrameError::Messages);
    // A message without an op, and messages longer and shorter than they are.
    for length in [0, 5, 100] {
        assert_eq!(error(|it| it[HEADER] = length), FrameError::Messages);
    }
    let only_a_length = |it: &mut BytesMut| {
        it.truncate(HEADER + 2);
        it[HEADER..].fill(0);
        it[4] = 1;
    };
    assert_eq!(error(only_a_length), FrameError::Messages);
    assert_eq!(error(|it| it[HEADER + 1] = 255), FrameError::Messages);
    assert_eq!(error(|it| it.extend([0])), FrameError::Messages);
}

// pins: B8
#[test]
fn a_hello_has_names_and_a_credit_of_a_frame_at_least() {
    let error = |change: fn(&mut Vec<u8>)| {
        let hello = Hello {
            half: Half {
                incarnation: Incarnation::from_bits(7),
                number: 1,
            },
            view: None,
            name: name("ab"),
            cluster: "c".into(),
            credit: 1 << 20,
            said: Bytes::new(),
            proof: Bytes::from_static(&[1, 2]),
        };
        let mut bytes = Frame::Hello(hello).encode().to_vec();
        assert_eq!(bytes[HEADER..], [2, b'a', b'b', 1, b'c', 2, 1, 2]);
        change(&mut bytes);
        checker::check(&bytes);
        Frame::parse(&bytes.into()).map(|_| ())
    };
    assert_eq!(error(|_| {}), Ok(()));
    assert_eq!(error(|it| it.extend([9, 9])), Ok(()), "for later versions");
    assert_eq!(error(|it| it[58] = 0), Err(FrameError::Credit(0)));
    assert_eq!(error(|it| it[HEADER] = 0), Err(FrameError::Name));
    assert_eq!(error(|it| it[HEADER] = 100), Err(FrameError::Name));
    assert_eq!(error(|it| it[HEADER + 1] = 255), Err(FrameError::Name));
    assert_eq!(error(|it| it[HEADER + 5] = 3), Err(FrameError::Body));
    assert_eq!(error(|it| it[HEADER + 5] = 0x80), Err(FrameError::Body));
    assert_eq!(error(|it| it.truncate(HEADER + 5)), Err(FrameError::Body));
    assert_eq!(error(|it| it[28] = 0), Err(FrameError::Half));
    assert_eq!(error(|it| it[4] = 1), Err(FrameError::Messages));
}
