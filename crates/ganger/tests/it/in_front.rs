//! Channels and other receivers in front of a scheduler, as its own processes see them.

use crate::support::Echo;
use ganger::EnvelopeReceiver as _;
use ganger::prelude::*;
use ganger::receiver_fn;
use ganger::{
    ChannelHost, Envelope, HostName, Node, NodeName, Router, SendError, SendErrorKind, WeakHandle,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// A scheduler on the node of its router, which does not know the scheduler yet.
fn on_node(routes_unknown: bool) -> (Scheduler, Arc<Node>) {
    let node = Arc::new(Node::new(NodeName::new("here").unwrap()));
    let router = Arc::new(Router::new(Arc::clone(&node)));
    let builder = Scheduler::builder().workers(1).node("here").host("main");
    let builder = builder.router(router).route_unknown(routes_unknown);
    (builder.build().unwrap(), node)
}

fn channels_of(scheduler: &Scheduler, node: &Node) -> ChannelHost<WeakHandle> {
    ChannelHost::in_front_of(scheduler.downgrade(), node.name(), scheduler.host_name())
}

/// A scheduler with channels in front of it.
fn behind_channels() -> (Scheduler, Arc<ChannelHost<WeakHandle>>) {
    let (scheduler, node) = on_node(true);
    let channels = Arc::new(channels_of(&scheduler, &node));
    let host = scheduler.host_name();
    node.add_host(host, channels.clone()).unwrap();
    scheduler.start().unwrap();
    (scheduler, channels)
}

/// A scheduler that is set later.
type Later = Arc<OnceLock<WeakHandle>>;

fn send_to(scheduler: &Later, envelope: Envelope) -> Result<(), SendError> {
    let handle = scheduler.get().and_then(WeakHandle::upgrade);
    handle.expect("it is there").send(envelope)
}

fn pid(text: &str) -> Pid {
    text.parse().unwrap()
}

fn send(scheduler: &Scheduler, text: &str) -> Result<(), SendError> {
    scheduler.send(Envelope::new(None, pid(text), "topic", 1_u64))
}

fn assert_refused(scheduler: &Scheduler, text: &str, kind: SendErrorKind) {
    let refused = send(scheduler, text).unwrap_err();
    assert_eq!(refused.kind, kind, "{text}");
    assert_eq!(refused.into_envelope().message.topic, "topic");
}

// pins: R5
#[test]
fn processes_answer_whom_is_attached_in_front_of_their_scheduler() {
    let (scheduler, channels) = behind_channels();
    for text in ["{main|7}", "{here@main|7}"] {
        let inbox = channels.attach(pid(text)).unwrap();
        let echo = scheduler.submit(Echo, "main", ()).unwrap();
        let question = Envelope::new(inbox.pid(), echo.pid(), "question", 7_u64);
        scheduler.send(question).unwrap();
        let exit = echo.wait();
        assert!(exit.is_done(), "{exit:?}");
        assert_eq!(inbox.recv().unwrap().message.topic, "answer");
        let control = Envelope::new(None, inbox.pid(), "control", ());
        scheduler.send_control(control).unwrap();
        assert_eq!(inbox.recv().unwrap().message.topic, "control");
    }
}

// pins: R2, R5
#[test]
fn what_nobody_takes_is_not_found() {
    let (scheduler, channels) = behind_channels();
    assert_refused(&scheduler, "{main|7}", SendErrorKind::NotFound);
    let inbox = channels.attach(pid("{main|7}")).unwrap();
    send(&scheduler, "{main|7}").unwrap();
    drop(inbox);
    assert_refused(&scheduler, "{main|7}", SendErrorKind::NotFound);
}

/// Otherwise the envelope would come back to the receiver for ever.
// pins: R2
#[test]
fn who_is_in_front_may_ask_twice() {
    let (place, asked) = (Later::default(), Arc::new(AtomicU64::new(0)));
    let (later, count) = (Arc::clone(&place), Arc::clone(&asked));
    let front = receiver_fn(move |envelope| {
        let before = count.fetch_add(1, Ordering::SeqCst);
        assert!(before < 10, "it asks itself for ever");
        let first = send_to(&later, envelope);
        first.or_else(|error| send_to(&later, error.into_envelope()))
    });
    let builder = Scheduler::builder().workers(1).host("main");
    let builder = builder.router(Arc::new(front)).route_unknown(true);
    let scheduler = builder.build().unwrap();
    place.set(scheduler.downgrade()).unwrap();
    assert_refused(&scheduler, "{main|7}", SendErrorKind::NotFound);
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

// pins: R5
#[test]
fn who_is_in_front_may_send_to_another_there() {
    let (scheduler, node) = on_node(true);
    let channels = channels_of(&scheduler, &node);
    let inbox = channels.attach(pid("{main|8}")).unwrap();
    let weak = scheduler.downgrade();
    let front = receiver_fn(move |envelope: Envelope| match envelope.target.id() {
        7 => {
            let handle = weak.upgrade().expect("it sends");
            handle.send(Envelope::new(None, pid("{main|8}"), "noted", 1_u64))
        }
        _ => channels.send(envelope),
    });
    node.add_host(scheduler.host_name(), Arc::new(front))
        .unwrap();
    for (text, topic) in [("{main|8}", "topic"), ("{main|7}", "noted")] {
        send(&scheduler, text).unwrap();
        assert_eq!(inbox.recv().unwrap().message.topic, topic);
    }
}

/// Otherwise the scheduler would ask itself for ever.
// pins: R2
#[test]
fn a_scheduler_behind_itself_refuses_whom_it_does_not_know() {
    for routes_unknown in [false, true] {
        let (scheduler, node) = on_node(routes_unknown);
        // The router does not know it.
        assert_refused(&scheduler, "{main|7}", SendErrorKind::NotFound);
        for name in ["main", "other"] {
            let handle = scheduler.handle();
            let again = receiver_fn(move |envelope| handle.send(envelope));
            let name = HostName::new(name).unwrap();
            node.add_host(name, Arc::new(again)).unwrap();
        }
        for _ in 0..100 {
            assert_refused(&scheduler, "{main|7}", SendErrorKind::NotFound);
            assert_refused(&scheduler, "{other|7}", SendErrorKind::HostNotFound);
        }
        // Otherwise the scheduler would keep itself alive.
        for name in node.hosts() {
            assert!(node.remove_host(name).is_some());
        }
    }
}

/// Each sends unknown envelopes on to the other.
// pins: R2
#[test]
fn schedulers_that_route_to_each_other_refuse_whom_neither_knows() {
    let [first, second] = [(); 2].map(|()| Later::default());
    let build = |host: &str, own: &Later, other: &Later| {
        let other = Arc::clone(other);
        let router = receiver_fn(move |envelope| send_to(&other, envelope));
        let builder = Scheduler::builder().workers(1).host(host);
        let builder = builder.router(Arc::new(router)).route_unknown(true);
        let scheduler = builder.build().unwrap();
        own.set(scheduler.downgrade()).unwrap();
        scheduler
    };
    let schedulers = [build("a", &first, &second), build("b", &second, &first)];
    for (text, kind) in [
        ("{a|7}", SendErrorKind::NotFound),
        ("{b|7}", SendErrorKind::NotFound),
        ("{c|7}", SendErrorKind::HostNotFound),
        ("{x@a|7}", SendErrorKind::NodeNotFound),
    ] {
        assert_refused(&schedulers[0], text, kind);
        let control = Envelope::new(None, pid(text), "topic", 1_u64);
        let refused = schedulers[0].send_control(control).unwrap_err();
        assert_eq!(refused.kind, kind, "a control message to {text}");
    }
}
