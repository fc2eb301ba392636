//! Nodes and their hosts.

use crate::common::*;
use ganger_proc_api::SendErrorKind;
use ganger_relay::{AddError, EnvelopeReceiver, Node, Router, receiver_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

// pins: R3
#[test]
fn a_pid_with_and_without_this_node_reaches_the_host_as_it_was_sent() {
    let here = Node::new(node("here"));
    let (a, b) = (Recorder::new(), Recorder::new());
    here.add_host(host("a"), a.clone()).unwrap();
    here.add_host(host("b"), b.clone()).unwrap();

    here.send(envelope("{a|1}", 1)).unwrap();
    assert_eq!(a.take_one("{a|1}"), 1);
    here.send(envelope("{here@b|1}", 2)).unwrap();
    assert_eq!(b.take_one("{here@b|1}"), 2);
    assert!(a.take().is_empty());
}

// pins: R2
#[test]
fn what_has_no_place_comes_back_whole() {
    let here = Node::new(node("here"));
    here.add_host(host("a"), Recorder::new()).unwrap();
    assert_refused(&here, "{missing|1}", SendErrorKind::HostNotFound);
    assert_refused(&here, "{here@missing|1}", SendErrorKind::HostNotFound);
    assert_refused(&here, "{there@a|1}", SendErrorKind::NodeNotFound);
}

// pins: R2
#[test]
fn a_hosts_refusal_comes_back_as_it_is() {
    let here = Node::new(node("here"));
    for kind in ALL_KINDS {
        here.add_host(host("a"), refuser(kind)).unwrap();
        assert_refused(&here, "{a|1}", kind);
        here.remove_host(host("a")).unwrap();
    }
}

// pins: R3
#[test]
fn a_second_host_of_that_name_is_refused_and_handed_back() {
    let here = Node::new(node("here"));
    let (first, second) = (Recorder::new(), Recorder::new());
    here.add_host(host("a"), first.clone()).unwrap();

    let error = here.add_host(host("a"), second.clone()).unwrap_err();
    assert_eq!(error.to_string(), "the node here already has a host a");
    assert_eq!(
        format!("{error:?}"),
        r#"HostExists { node: "here", host: "a", .. }"#
    );
    assert!(
        matches!(&error, AddError::HostExists { node: n, host: h, .. }
            if (*n, *h) == (node("here"), host("a")))
    );
    assert!(is_same(&error.into_receiver(), &second));

    here.send(envelope("{a|1}", 1)).unwrap();
    assert_eq!(first.take_one("{a|1}"), 1, "the first host is untouched");
}

// pins: R3
#[test]
fn hosts_come_and_go() {
    let here = Node::new(node("here"));
    let (a, b) = (Recorder::new(), Recorder::new());
    // No other test uses these names: names are ordered by their first use.
    for name in ["node-b", "node-c", "node-a"] {
        here.add_host(host(name), a.clone()).unwrap();
    }
    assert_eq!(here.hosts(), ["node-a", "node-b", "node-c"].map(host));
    assert!(is_same(&here.remove_host(host("node-b")).unwrap(), &a));
    assert!(here.remove_host(host("node-b")).is_none());
    assert_eq!(here.hosts(), ["node-a", "node-c"].map(host));
    assert_refused(&here, "{node-b|1}", SendErrorKind::HostNotFound);

    here.add_host(host("node-b"), b.clone()).unwrap();
    here.send(envelope("{node-b|1}", 1)).unwrap();
    assert_eq!(b.take_one("{node-b|1}"), 1);
    assert_eq!(
        format!("{here:?}"),
        r#"Node { name: "here", hosts: ["node-a", "node-b", "node-c"] }"#
    );
}

// pins: R2
#[test]
fn references_to_receivers_are_receivers() {
    fn take(receiver: impl EnvelopeReceiver) {
        receiver.send(envelope("{a|1}", 1)).unwrap();
    }
    let recorder = Recorder::new();
    take(&*recorder);
    take(Arc::clone(&recorder));
    take(recorder.clone() as Arc<dyn EnvelopeReceiver>);
    assert_eq!(recorder.take().len(), 3);
}

/// Sends in a circle: without the limit, the stack would overflow, which ends the program.
// pins: R2
#[test]
fn hosts_that_stand_behind_one_another_in_a_circle_refuse_what_they_get() {
    let here = Arc::new(Node::new(node("here")));
    let router = Arc::new(Router::new(Arc::clone(&here)));
    let itself = Arc::new(Arc::downgrade(&here));
    here.add_host(host("itself"), itself).unwrap();
    let its_router = Arc::new(Arc::downgrade(&router));
    here.add_host(host("router"), its_router).unwrap();
    // Each send starts with the full limit, so later sends are refused in the same way.
    for _ in 0..100 {
        for target in ["{itself|1}", "{here@router|1}"] {
            assert_refused(&*here, target, SendErrorKind::HostNotFound);
            assert_refused(&*router, target, SendErrorKind::HostNotFound);
        }
    }
    let sink = Recorder::new();
    here.add_host(host("a"), sink.clone()).unwrap();
    router.send(envelope("{a|1}", 1)).unwrap();
    assert_eq!(sink.take_one("{a|1}"), 1);
}

/// Checks that the limit counts nested sends, even if each of them has a different envelope.
// pins: R2
#[test]
fn a_host_sends_on_what_it_gets_in_parts() {
    let here = Arc::new(Node::new(node("here")));
    let weak = Arc::downgrade(&here);
    let in_parts = receiver_fn(move |envelope_| match envelope_.target.id() {
        1 => Ok(()),
        left => {
            let here = weak.upgrade().expect("it sends");
            here.send(envelope(&format!("{{a|{}}}", left - 1), left))
        }
    });
    here.add_host(host("a"), Arc::new(in_parts)).unwrap();
    here.send(envelope("{a|60}", 60)).unwrap();
}

/// Adds a host that sends each envelope back to its own node, up to `times` times. Returns the
/// count of its envelopes.
fn add_one_that_tries(here: &Arc<Node>, times: usize) -> Arc<AtomicUsize> {
    let asked = Arc::new(AtomicUsize::new(0));
    let (weak, count) = (Arc::downgrade(here), Arc::clone(&asked));
    let tries = receiver_fn(move |envelope| {
        let before = count.fetch_add(1, Ordering::Relaxed);
        assert!(before < 10_000, "it is asked without end");
        let here = weak.upgrade().expect("it sends");
        let first = here.send(envelope);
        (1..times).fold(first, |sent, _| {
            sent.or_else(|error| here.send(error.into_envelope()))
        })
    });
    here.add_host(host("tries"), Arc::new(tries)).unwrap();
    asked
}

/// Sends to a host behind itself that tries again: two tries on each of many levels would need
/// exponentially many sends, and so would many tries on each of a few levels.
// pins: R2
#[test]
fn a_host_behind_itself_that_tries_again_is_refused_soon() {
    for times in [2, 100] {
        let here = Arc::new(Node::new(node("here")));
        let asked = add_one_that_tries(&here, times);
        for _ in 0..10 {
            assert_refused(&*here, "{tries|1}", SendErrorKind::HostNotFound);
            let asked = asked.swap(0, Ordering::Relaxed);
            // The full limit holds again.
            assert!(asked >= 128, "{asked}");
        }
    }
}

/// Checks that a loop does not affect hosts outside of it.
// pins: R2
#[test]
fn one_that_sends_to_many_reaches_all_whatever_circles_there_are_beside_them() {
    let here = Arc::new(Node::new(node("here")));
    let itself = Arc::new(Arc::downgrade(&here));
    here.add_host(host("itself"), itself).unwrap();
    let sink = Recorder::new();
    here.add_host(host("a"), sink.clone()).unwrap();
    let weak = Arc::downgrade(&here);
    let to_many = receiver_fn(move |_| {
        let here = weak.upgrade().expect("it sends");
        for _ in 0..200 {
            assert_refused(&*here, "{itself|1}", SendErrorKind::HostNotFound);
            here.send(envelope("{a|1}", 1))?;
        }
        Ok(())
    });
    here.add_host(host("many"), Arc::new(to_many)).unwrap();
    here.send(envelope("{many|1}", 1)).unwrap();
    assert_eq!(sink.take().len(), 200);
}
