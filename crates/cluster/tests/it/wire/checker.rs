//! Checks of the parser with any bytes, for the tests and for the fuzz target.

use bytes::Bytes;
use ganger_cluster::{
    Event, Frame, HEADER, Halves, Identity, Incarnation, Known, MAX_FRAME, NodeId, Reader, Session,
    Settings, SymbolKind,
};
use ganger_proc_api::Instant;

fn session(me: &str, peer: &str) -> Session {
    let halves = Halves::new(Incarnation::from_bits(1));
    let name = |text: &str| NodeId::new(text).expect("a name");
    let identity = Identity::new(name(me), "c");
    Session::new(identity, halves, name(peer), Settings::default())
}

/// Returns two sides with a session. Their halves have number 1 of incarnation 1.
fn up() -> (Session, Session) {
    let (mut a, mut b) = (session("a", "b"), session("b", "a"));
    let now = Instant::from_nanos(0);
    a.open(now);
    for _ in 0..3 {
        while let Some(sent) = a.poll_frame(now) {
            b.handle(&sent.frame, now);
        }
        while let Some(sent) = b.poll_frame(now) {
            a.handle(&sent.frame, now);
        }
    }
    assert!(a.is_up() && b.is_up());
    (a, b)
}

/// Reads all messages by all readers: none may panic, or read beyond its end.
fn read(frame: &Frame, length: usize) {
    let Frame::Data { messages, .. } = frame else {
        return;
    };
    let mut sum = 0;
    let mut known = Known::default();
    assert!(messages.len() > 0);
    for message in messages.clone() {
        sum += message.cost;
        let mut reader = Reader::new(message.body.clone());
        while reader.symbol(&mut known, SymbolKind::Topic).is_ok() {}
        let mut reader = Reader::new(message.body.clone());
        while let Ok(bytes) = reader.bytes() {
            assert!(bytes.len() <= message.body.len());
        }
        while reader.u8().is_ok() {}
        assert!(reader.rest().is_empty());
    }
    assert_eq!(sum, messages.cost());
    assert_eq!(sum + HEADER, length);
}

/// Returns a Hello without its original bytes.
fn without_bytes(frame: Frame) -> Frame {
    match frame {
        Frame::Hello(mut hello) => {
            hello.said = Bytes::new();
            Frame::Hello(hello)
        }
        other => other,
    }
}

/// Reads bytes as a frame. After success, the frame is written and read again without a change.
/// Sessions take it in each state.
pub(crate) fn check(bytes: &[u8]) {
    let bytes = Bytes::copy_from_slice(bytes);
    let parsed = Frame::parse(&bytes);
    match &parsed {
        Ok(frame) => {
            assert!((HEADER..=MAX_FRAME).contains(&bytes.len()));
            read(frame, bytes.len());
            let again = Frame::parse(&frame.encode()).map(without_bytes);
            assert_eq!(again, Ok(without_bytes(frame.clone())));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    let now = Instant::from_nanos(1);
    let (mut a, _) = up();
    let mut opening = session("a", "b");
    opening.open(now);
    for mut side in [session("a", "b"), opening, a_with_messages(&mut a, now)] {
        let was_up = side.is_up();
        while side.poll_frame(now).is_some() {}
        while side.poll_event().is_some() {}
        side.handle(&bytes, now);
        let mut frames = 0;
        while let Some(sent) = side.poll_frame(now) {
            assert!(Frame::parse(&sent.frame).is_ok());
            frames += 1;
        }
        // An answer, a Hello, repeated messages, an acknowledgement.
        assert!(frames < 10);
        let events: Vec<_> = std::iter::from_fn(|| side.poll_event()).collect();
        assert!(events.len() <= 2, "{events:?}");
        let has_ended = events.iter().any(|it| matches!(it, Event::Ended { .. }));
        if parsed.is_err() {
            assert_eq!(has_ended, was_up, "{events:?}");
        }
    }
}

fn a_with_messages(a: &mut Session, now: Instant) -> Session {
    let empty = session("a", "b");
    let mut a = std::mem::replace(a, empty);
    for lane in ganger_cluster::Lane::ALL {
        let sent = a.send(lane, 1, now, |it| it.symbol(SymbolKind::Topic, "news"));
        assert!(sent.is_ok());
    }
    a
}
