//! Schedulers whose routers lead back to them.

use ganger::prelude::*;
use ganger::receiver_fn;
use ganger::{Envelope, HostName, Node, NodeName, Router, SendError, SendErrorKind, WeakHandle};
use std::sync::{Arc, OnceLock};

/// Starts a scheduler on the node of its router, which does not know the scheduler yet.
fn on_node() -> (Scheduler, Arc<Node>) {
    let node = Arc::new(Node::new(NodeName::new("here").unwrap()));
    let router = Arc::new(Router::new(Arc::clone(&node)));
    let builder = Scheduler::builder().workers(1).node("here").host("main");
    (builder.router(router).build().unwrap(), node)
}

/// A scheduler, set later.
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

/// Refuses unknown targets: otherwise the scheduler would ask itself for ever.
// pins: R2
#[test]
fn a_scheduler_behind_itself_refuses_what_it_does_not_know() {
    let (scheduler, node) = on_node();
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

/// Lets each scheduler send envelopes for other hosts on to the other.
// pins: R2
#[test]
fn schedulers_that_route_to_each_other_refuse_what_neither_knows() {
    let [first, second] = [(); 2].map(|()| Later::default());
    let build = |host: &str, own: &Later, other: &Later| {
        let other = Arc::clone(other);
        let router = receiver_fn(move |envelope| send_to(&other, envelope));
        let builder = Scheduler::builder().workers(1).host(host);
        let builder = builder.router(Arc::new(router));
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
