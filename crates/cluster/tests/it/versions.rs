//! Two versions of a program side by side.

use crate::support::{Pair, at, ends, name, refusals, session};
use bytes::Bytes;
use ganger_cluster::conformance::{PATIENCE, scheduler};
use ganger_cluster::{
    Cluster, End, Engine, Foreign, FrameError, Lane, Refusal, Settings, Twin, Types,
};
use ganger_proc_api::{Envelope, Payload, Pid, process_fn};
use ganger_sched::Scheduler;
use serde::{Deserialize, Serialize};
use std::sync::mpsc::{Receiver, channel};

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Order(u64);

/// The later form, with a field more, and so with a name of its own.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct OrderWithPlace(u64, String);

fn old(types: &mut Types) {
    types.add::<Order>("shop.order.v1");
}

fn new(types: &mut Types) {
    old(types);
    types.add::<OrderWithPlace>("shop.order.v2");
}

fn node(twin: &Twin, name: &str, types: fn(&mut Types)) -> (Scheduler, Cluster) {
    let scheduler = scheduler(name).start().unwrap();
    let builder = Cluster::builder().engine(twin.port()).types(types);
    let cluster = builder.join(&scheduler).unwrap();
    (scheduler, cluster)
}

/// Starts a process that shows its payloads to the test.
fn receiver(scheduler: &Scheduler) -> (Pid, Receiver<Payload>) {
    let (tell, told) = channel();
    let process = process_fn(move |_, events, _| {
        for event in events {
            if let Ok(message) = event.into_message() {
                tell.send(message.payloads.into_first())?;
            }
        }
        Ok(())
    });
    let process = scheduler.spawn(process).unwrap();
    (scheduler.absolute(process.pid()), told)
}

// pins: B21
// case: 34, 56
#[test]
fn a_node_with_a_newer_type_and_one_without_work_together() {
    let twin = Twin::new(5);
    let _running = twin.run();
    let (before, at_before) = node(&twin, "before", old);
    let (after, _at_after) = node(&twin, "after", new);
    let (to_before, seen_before) = receiver(&before);
    let (to_after, seen_after) = receiver(&after);
    for number in 0..100 {
        let later = OrderWithPlace(number, "here".into());
        for value in [Payload::any(Order(number)), Payload::any(later)] {
            let envelope = Envelope::new(None, to_before, "order", value);
            after.send_blocking(envelope).unwrap();
        }
        let value = Payload::any(Order(number));
        let envelope = Envelope::new(None, to_after, "order", value);
        before.send_blocking(envelope).unwrap();
    }
    for number in 0..100 {
        let known = seen_before.recv_timeout(PATIENCE).unwrap();
        assert_eq!(known.downcast::<Order>().unwrap(), Order(number));
        let foreign = seen_before.recv_timeout(PATIENCE).unwrap();
        let foreign = foreign.downcast::<Foreign>().unwrap();
        assert_eq!(&*foreign.name, "shop.order.v2");
        let whole: OrderWithPlace = postcard::from_bytes(&foreign.bytes).unwrap();
        assert_eq!(whole, OrderWithPlace(number, "here".into()));
        let known = seen_after.recv_timeout(PATIENCE).unwrap();
        assert_eq!(known.downcast::<Order>().unwrap(), Order(number));
    }
    // The older refuses what it can't encode, at the send.
    let value = Payload::any(OrderWithPlace(1, String::new()));
    let refused = before.send(Envelope::new(None, to_after, "order", value));
    assert!(refused.is_err());
    assert_eq!(at_before.nodes().len(), 1, "the session lasts");
}

/// Sends frames of a later version of the wire: a stranger is refused with the version, a session
/// ends with it, and nodes of the own version go on.
// pins: B7, B8
// case: 34, 56
#[test]
fn a_later_version_of_the_wire_is_refused_by_its_number() {
    let later = Bytes::from([9_u8; 60].to_vec());
    let mut alone = session("a", 1, "b", &Settings::default());
    alone.open(at(0));
    alone.handle(&later, at(0));
    let events: Vec<_> = std::iter::from_fn(|| alone.poll_event()).collect();
    let version = FrameError::Version(9);
    assert_eq!(refusals(&events), [Refusal::Malformed(version)]);
    let mut pair = Pair::up(&Settings::default());
    let now = pair.now();
    pair.a.handle(&later, now);
    pair.run(100);
    assert_eq!(ends(&pair.at_a), [End::Malformed(version)]);
    assert!(pair.a.is_up() && pair.b.is_up(), "the next session is up");

    let twin = Twin::new(5);
    let _running = twin.run();
    let (near, at_near) = node(&twin, "near", old);
    let (far, _at_far) = node(&twin, "far", old);
    let stranger = twin.engine(&name("stranger"));
    let (to_far, seen) = receiver(&far);
    for number in 0..100 {
        stranger.send(&name("near"), Lane::Data, later.clone());
        let value = Payload::any(Order(number));
        let sent = near.send_blocking(Envelope::new(None, to_far, "order", value));
        sent.unwrap();
        let value = seen.recv_timeout(PATIENCE).unwrap();
        assert_eq!(value.downcast::<Order>().unwrap(), Order(number));
    }
    let names: Vec<_> = at_near.nodes().into_iter().map(|(it, _)| it).collect();
    assert_eq!(names, [name("far")]);
}
