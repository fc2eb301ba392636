//! The contexts of traces, between nodes that carry them, and with a node that does not.

use crate::far::{Nodes, PATIENCE, name};
use ganger_cluster::{Builder, TraceContext};
use ganger_link::Services;
use ganger_proc_api::{Envelope, Reply, actor_fn, process_fn};
use ganger_sched::Scheduler;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::sync::mpsc::{Receiver, Sender, channel};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Metadata, Span, Subscriber, dispatcher, info_span};

thread_local! {
    /// The number of the span that the thread is in.
    static PRESENT: Cell<u64> = const { Cell::new(0) };
}

/// A number whose context is too long.
const LONG: u64 = 1_000;

/// Contexts are numbers. Tells a test of the traces that go on.
struct Numbers(Sender<u64>);

impl TraceContext for Numbers {
    fn current(&self) -> Option<Vec<u8>> {
        match PRESENT.get() {
            0 => None,
            LONG => Some(vec![1; 600]),
            number => Some(vec![u8::try_from(number).unwrap()]),
        }
    }

    fn resume(&self, context: &[u8]) -> Span {
        let enters = Enters(context[0].into(), self.0.clone());
        dispatcher::with_default(&Dispatch::new(enters), || info_span!("far"))
    }
}

/// A subscriber of a single span.
struct Enters(u64, Sender<u64>);

impl Subscriber for Enters {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {
        PRESENT.set(self.0);
        let _gone = self.1.send(self.0);
    }

    fn exit(&self, _: &Id) {
        PRESENT.set(0);
    }
}

#[derive(Serialize, Deserialize)]
struct Ask(Reply<u64>);

/// Calls `f` inside of the span with this number.
fn inside<R>(number: u64, f: impl FnOnce() -> R) -> R {
    PRESENT.set(number);
    let result = f();
    PRESENT.set(0);
    result
}

/// Offers a kind and a function, which tell of the spans in which they are.
fn offers(builder: Builder, tell: &Sender<u64>) -> Builder {
    let tell = tell.clone();
    builder.kind("child.v1", move |spawner, (): ()| {
        tell.send(PRESENT.get())?;
        let child = process_fn(|_, _, out| {
            out.done(());
            Ok(())
        });
        Ok(spawner.submit(child, "main", ())?.pid())
    })
}

fn registers(scheduler: &Scheduler) {
    let present = |(): ()| Ok(PRESENT.get());
    Services::of(scheduler)
        .register("present", present)
        .unwrap();
}

// pins: B39
#[test]
fn the_trace_of_a_sender_goes_on_at_the_other_node() {
    let nodes = Nodes::new();
    let (tell, told) = channel();
    let next = |told: &Receiver<u64>| told.recv_timeout(PATIENCE).unwrap();
    let [(near, at_near), (far, at_far)] = [channel(), channel()];
    let types = |builder: Builder| builder.types(|types| _ = types.add::<Ask>("ask"));
    let set = |builder| types(builder).trace_context(Numbers(near));
    let (alpha, node) = nodes.join("alpha", set);
    let set = |builder| offers(types(builder), &tell).trace_context(Numbers(far));
    let (beta, _) = nodes.join("beta", set);
    registers(&beta);
    let answers = beta.spawn(actor_fn(|_, Ask(reply): Ask, _| {
        inside(9, || reply.complete(42));
        Ok(())
    }));
    let there = beta.absolute(answers.unwrap().pid());

    // A message.
    let sent = Envelope::new(None, there, "", 1_u64);
    inside(3, || alpha.send(sent)).unwrap();
    assert_eq!(next(&at_far), 3);
    // A question, and its answer.
    let address = alpha.address(there).unwrap().typed::<Ask>().unwrap();
    let asked = inside(4, || address.call(Ask).begin());
    assert_eq!(asked.wait_timeout(PATIENCE).unwrap(), 42);
    assert_eq!((next(&at_far), next(&at_near)), (4, 9));
    // A start, and a call.
    let start = || node.spawn_on(name("beta"), "child.v1", ()).call();
    let started = inside(5, || start().begin());
    started.wait_timeout(PATIENCE).unwrap();
    assert_eq!((next(&at_far), next(&told)), (5, 5));
    let call = || node.call_on::<(), u64>(name("beta"), "present", ());
    let called = inside(6, || call().begin());
    assert_eq!(called.wait_timeout(PATIENCE).unwrap(), 6);
    assert_eq!(next(&at_far), 6);
    // The answer comes of the call's span.
    assert_eq!(next(&at_near), 6);
    // Nothing of an ended span, nor of a span whose context is too long.
    for number in [0, LONG] {
        let called = inside(number, || call().begin());
        assert_eq!(called.wait_timeout(PATIENCE).unwrap(), 0);
    }
    assert!(at_far.try_recv().is_err() && at_near.try_recv().is_err());
}

// pins: B39
#[test]
fn a_node_without_traces_ignores_contexts() {
    let nodes = Nodes::new();
    let (tell, told) = channel();
    let (near, _at_near) = channel();
    let (_alpha, node) = nodes.join("alpha", |it| it.trace_context(Numbers(near)));
    let (beta, _) = nodes.join("beta", |it| offers(it, &tell));
    registers(&beta);
    let call = node.call_on::<(), u64>(name("beta"), "present", ());
    let called = inside(7, || call.begin());
    assert_eq!(called.wait_timeout(PATIENCE).unwrap(), 0);
    let start = node.spawn_on(name("beta"), "child.v1", ()).call();
    inside(8, || start.begin()).wait_timeout(PATIENCE).unwrap();
    assert_eq!(told.recv_timeout(PATIENCE), Ok(0));
}
