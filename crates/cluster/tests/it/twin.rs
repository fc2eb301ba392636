//! The twin's knobs.

use crate::support::{Inbox, Told, at, ms, name};
use bytes::Bytes;
use ganger_cluster::{Engine, EngineError, Faults, Lane, NodeId, Twin, TwinEngine};
use ganger_proc_api::Instant;
use std::sync::Arc;
use std::time::Duration;

struct Net {
    twin: Twin,
    a: TwinEngine,
    at_b: Arc<Inbox>,
    names: [NodeId; 2],
}

impl Net {
    fn new(seed: u64, faults: Faults) -> Self {
        let twin = Twin::new(seed);
        twin.faults(faults);
        let names = [name("a"), name("b")];
        let at_b = Inbox::start(&twin.engine(&names[1]), &names[1]);
        let a = twin.engine(&names[0]);
        Self {
            twin,
            a,
            at_b,
            names,
        }
    }

    fn send(&self, number: u8) -> bool {
        self.a
            .send(&self.names[1], Lane::Data, Bytes::from(vec![number; 100]))
    }

    /// Returns the frames at `b`, by their first byte.
    fn came(&self) -> Vec<u8> {
        let told = self.at_b.take().into_iter();
        let first = told.filter_map(|told| match told {
            Told::Frame(from, frame) => {
                assert_eq!(from, self.names[0]);
                Some(frame[0])
            }
            _ => None,
        });
        first.collect()
    }

    /// Sends 100 frames in 100 ms, and returns their arrivals.
    fn hundred(&self) -> Vec<(u8, Instant)> {
        let mut came = Vec::new();
        for number in 0..100 {
            self.send(number);
            self.twin.advance(ms(1));
            came.extend(self.came().into_iter().map(|it| (it, self.twin.now())));
        }
        self.twin.advance(ms(10_000));
        came.extend(self.came().into_iter().map(|it| (it, self.twin.now())));
        came
    }
}

// pins: B11
#[test]
fn without_faults_all_comes_at_once_and_in_order() {
    let net = Net::new(1, Faults::default());
    let came = net.hundred();
    assert!(came.iter().map(|it| it.0).eq(0..100));
    assert!(came.iter().map(|it| it.1).eq((1..=100).map(at)));
}

// pins: B11
#[test]
fn each_fault_does_what_it_says_and_a_seed_repeats_it() {
    let with = |change: fn(&mut Faults)| {
        let mut faults = Faults::default();
        change(&mut faults);
        let run = |seed| {
            let net = Net::new(seed, faults);
            let came = net.hundred();
            (came, net.twin.counts())
        };
        let first = run(3);
        assert_eq!(first, run(3));
        let numbers: Vec<u8> = first.0.iter().map(|it| it.0).collect();
        (numbers, first.1)
    };
    let (came, counts) = with(|it| it.drop = [0, 300]);
    assert!(
        (40..95).contains(&came.len()) && came.is_sorted(),
        "{came:?}"
    );
    assert_eq!(counts.lost, 100 - came.len() as u64);
    let (came, _) = with(|it| it.drop = [1000, 0]);
    assert_eq!(came.len(), 100, "the other lane");
    let (mut came, counts) = with(|it| it.repeat = 300);
    assert_eq!(came.len() as u64, 100 + counts.repeated);
    assert!(counts.repeated > 5);
    came.dedup();
    assert!(came.into_iter().eq(0..100));
    let (mut came, _) = with(|it| (it.reorder, it.late) = (200, ms(30)));
    assert!(!came.is_sorted());
    came.sort_unstable();
    assert!(came.into_iter().eq(0..100));
    let (came, _) = with(|it| it.jitter = ms(30));
    assert!(came.into_iter().eq(0..100), "jitter keeps the order");
}

// pins: B11
#[test]
fn delay_and_bandwidth_say_when_a_frame_comes() {
    let mut faults = Faults::default();
    faults.delay = ms(5);
    // 100 bytes take 2 ms.
    faults.bandwidth = Some(50_000);
    let net = Net::new(1, faults);
    (0..3).for_each(|number| assert!(net.send(number)));
    assert_eq!(net.twin.next_arrival(), Some(at(7)));
    for (now, expected) in [(6, &[][..]), (7, &[0]), (8, &[]), (9, &[1]), (11, &[2])] {
        net.twin.advance_to(at(now));
        assert_eq!(net.came(), expected, "at {now} ms");
    }
    assert_eq!(net.twin.next_arrival(), None);
}

// pins: B11
#[test]
fn a_full_way_refuses_and_says_when_it_takes_frames_again() {
    let mut faults = Faults::default();
    faults.delay = ms(5);
    faults.room = 250;
    let net = Net::new(1, faults);
    let at_a = Inbox::start(&net.a, &net.names[0]);
    let taken: Vec<_> = (0..4).map(|number| net.send(number)).collect();
    assert_eq!(taken, [true, true, false, false]);
    assert!(at_a.take().is_empty());
    net.twin.advance(ms(5));
    let told = at_a.take();
    assert!(
        matches!(&told[..], [Told::Writable(to)] if *to == net.names[1]),
        "{told:?}"
    );
    assert_eq!(net.came(), [0, 1]);
    assert!(net.send(9));
}

// pins: B11
#[test]
fn a_cut_has_a_direction_and_a_pause_holds_what_comes() {
    let net = Net::new(1, Faults::default());
    let [a, b] = &net.names;
    let at_a = Inbox::start(&net.a, a);
    net.twin.cut(a, b);
    net.send(1);
    let engine = net.twin.engine(b);
    engine.send(a, Lane::Data, Bytes::from_static(b"x"));
    net.twin.advance(ms(1));
    assert!(net.came().is_empty());
    assert_eq!(at_a.take().len(), 1);
    net.twin.heal(a, b);
    net.twin.pause(b);
    (2..4).for_each(|number| assert!(net.send(number)));
    net.twin.advance(ms(1_000));
    assert!(net.twin.is_paused(b) && net.came().is_empty());
    net.twin.resume(b);
    net.twin.advance(Duration::ZERO);
    assert_eq!(net.came(), [2, 3]);
}

// pins: B11
#[test]
fn a_crash_tells_and_frames_under_way_reach_the_next_node_of_the_name() {
    let mut faults = Faults::default();
    faults.delay = ms(5);
    let net = Net::new(1, faults);
    net.twin.hints(true);
    let [a, b] = &net.names;
    let at_a = Inbox::start(&net.a, a);
    net.twin.advance(ms(1));
    assert!(matches!(&net.at_b.take()[..], [Told::Appeared(it)] if it == a));
    let again = net.twin.engine(b).start(b, net.at_b.clone());
    assert!(matches!(again, Err(EngineError::Running(it)) if it == *b));
    net.send(1);
    net.twin.crash(b);
    net.send(2);
    net.twin.advance(ms(1));
    assert!(matches!(&at_a.take()[..], [Told::Vanished(it)] if it == b));
    let heir = Inbox::start(&net.twin.engine(b), b);
    net.twin.advance(ms(10));
    assert_eq!(heir.take().len(), 2);
    assert!(net.came().is_empty());
    net.twin.engine(b).stop(Duration::ZERO);
    net.send(3);
    net.twin.advance(ms(10));
    assert_eq!(net.twin.counts().lost, 1);
}

// pins: B11
#[test]
fn frames_that_are_too_large_are_lost_and_counted() {
    let net = Net::new(1, Faults::default());
    net.twin.small(99);
    assert_eq!(net.a.max_frame(), 99);
    assert!(net.send(1));
    net.twin.small(100);
    assert!(net.send(2));
    net.twin.advance(ms(1));
    assert_eq!(net.came(), [2]);
    assert_eq!(net.twin.counts().too_large, 1);
}
