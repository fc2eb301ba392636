//! Schedulers as hosts of nodes: messages by PID from one to another.

use crate::support::*;
use ganger_proc_api::{
    Envelope, EnvelopeReceiver, Event, Message, NodeName, Pid, SendErrorKind, receiver_fn,
};
use ganger_relay::{ChannelHost, Node, Router};
use ganger_sched::{Scheduler, WeakHandle};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::Duration;

/// A node with a router, and schedulers on it under these names.
struct Place {
    node: Arc<Node>,
    router: Arc<Router>,
    schedulers: Vec<Scheduler>,
}

fn place(node_name: &str, hosts: &[&str]) -> Place {
    let node = Arc::new(Node::new(node_name.parse().unwrap()));
    let router = Arc::new(Router::new(Arc::clone(&node)));
    let schedulers = hosts
        .iter()
        .map(|host| {
            let scheduler = Scheduler::builder()
                .workers(1)
                .node(node_name)
                .host(*host)
                .shutdown_deadline(Duration::ZERO)
                .router(Arc::clone(&router) as _)
                .build()
                .unwrap();
            scheduler.start().unwrap();
            let receiver = Arc::new(scheduler.downgrade());
            node.add_host(scheduler.host_name(), receiver).unwrap();
            scheduler
        })
        .collect();
    Place {
        node,
        router,
        schedulers,
    }
}

/// Creates a process that sends its first message back to the sender, and ends.
fn echo() -> impl ganger_proc_api::Process {
    process(|ctx, events, out| {
        for event in events {
            if let Event::Message(message) = event {
                let sender = message.source.ok_or("from nobody")?;
                ctx.send(sender, "echo", message.payloads)?;
                out.done(());
            }
        }
        Ok(())
    })
}

/// Creates a process that sends a number to `target`, and ends with the answer.
fn asker(target: Pid) -> impl ganger_proc_api::Process {
    process(move |ctx, events, out| {
        match events.next() {
            None => ctx.send(target, "ask", 7_u64)?,
            Some(Event::Message(message)) => out.done(message.payloads.into_first()),
            Some(other) => panic!("{other:?}"),
        }
        Ok(())
    })
}

// pins: R3
#[test]
fn processes_of_two_schedulers_reach_each_other_by_pid() {
    let place = place("alpha", &["one", "two"]);
    let [one, two] = &place.schedulers[..] else {
        unreachable!()
    };
    let node: NodeName = "alpha".parse().unwrap();
    for with_node in [None, Some(node)] {
        let echo = two.submit(echo(), "main", ()).unwrap();
        let asker = asker(echo.pid().with_node(with_node));
        let asker = one.submit(asker, "main", ()).unwrap();
        assert_eq!(exit_number(asker), 7);
        assert!(exit(echo).is_done());
    }
}

// pins: R2, R3
#[test]
fn what_no_route_leads_to_comes_back_to_the_process() {
    let place = place("beta", &["one"]);
    let one = &place.schedulers[0];
    for (target, kind) in [
        ("{two|1}", SendErrorKind::HostNotFound),
        ("{beta@two|1}", SendErrorKind::HostNotFound),
        ("{gamma@one|1}", SendErrorKind::NodeNotFound),
        ("{beta@one|1}", SendErrorKind::NotFound),
    ] {
        let target: Pid = target.parse().unwrap();
        let (report, reports) = mpsc::channel();
        let sender = process(move |ctx, _, out| {
            report.send(ctx.send(target, "m", 7_u64)).unwrap();
            out.done(());
            Ok(())
        });
        drop(one.submit(sender, "main", ()).unwrap());
        let error = reports.recv().unwrap().unwrap_err();
        assert_eq!(error.kind, kind, "{target}");
        let envelope = error.into_envelope();
        assert_eq!(envelope.target, target);
        assert_eq!(envelope.message.payloads.into_first().as_u64(), Some(7));
    }
}

// pins: R3, R5
#[test]
fn peers_and_mailboxes_are_reached_from_steps() {
    let place = place("delta", &["one"]);
    let one = &place.schedulers[0];
    let mailbox = Arc::new(ChannelHost::new(
        "delta".parse().unwrap(),
        "box".parse().unwrap(),
    ));
    let receiver = Arc::clone(&mailbox) as _;
    place
        .node
        .add_host("box".parse().unwrap(), receiver)
        .unwrap();
    let inbox = mailbox.open();
    let (forward, forwarded) = mpsc::channel();
    let peer = receiver_fn(move |envelope: Envelope| {
        forward.send(envelope.target).unwrap();
        Ok(())
    });
    place
        .router
        .add_peer("epsilon".parse().unwrap(), Arc::new(peer))
        .unwrap();
    let (to_box, to_peer) = (inbox.pid(), "{epsilon@one|1}".parse::<Pid>().unwrap());
    let sender = process(move |ctx, _, out| {
        ctx.send(to_box, "hello", ())?;
        ctx.send(to_peer, "hello", ())?;
        out.done(());
        Ok(())
    });
    let sender = one.submit(sender, "main", ()).unwrap();
    let pid = sender.pid();
    assert!(exit(sender).is_done());
    assert_eq!(inbox.recv().unwrap().message.source, Some(pid));
    assert_eq!(forwarded.recv().unwrap(), to_peer);
}

// pins: R2
#[test]
fn a_host_outlives_its_scheduler_and_refuses() {
    let mut place = place("zeta", &["one"]);
    let one = place.schedulers.pop().unwrap();
    let echo = one.submit(echo(), "main", ()).unwrap();
    let address = echo.address().clone();
    drop(echo);
    let stopped = {
        drop(one);
        EnvelopeReceiver::send(&*place.node, Message::new("m", ()).to(address.pid()))
    };
    assert_eq!(stopped.unwrap_err().kind, SendErrorKind::Stopping);
    // The address is the last to keep the scheduler. Without it the host has none behind it.
    drop(address);
    let gone = EnvelopeReceiver::send(
        &*place.node,
        Message::new("m", ()).to("{one|1}".parse().unwrap()),
    );
    assert_eq!(gone.unwrap_err().kind, SendErrorKind::Stopping);
}

/// Checks the refusal, without which the scheduler would ask itself for ever.
// pins: R2
#[test]
fn a_scheduler_that_is_its_own_router_refuses_whom_it_does_not_know() {
    let own = Arc::new(OnceLock::<WeakHandle>::new());
    let again = Arc::clone(&own);
    let router = receiver_fn(move |envelope| {
        let handle = again.get().and_then(WeakHandle::upgrade);
        handle.expect("it is there").send(envelope)
    });
    let builder = Scheduler::builder().workers(1).host("a");
    let scheduler = builder.router(Arc::new(router)).build().unwrap();
    own.set(scheduler.downgrade()).unwrap();
    // Often enough to see that no round leaves anything to the next.
    for _ in 0..100 {
        for (target, kind) in [
            ("{b|7}", SendErrorKind::HostNotFound),
            ("{x@a|7}", SendErrorKind::NodeNotFound),
        ] {
            let envelope = Envelope::new(None, target.parse().unwrap(), "topic", 1_u64);
            let refused = scheduler.send(envelope).unwrap_err();
            assert_eq!(refused.kind, kind, "{target}");
            assert_eq!(refused.into_envelope().message.topic, "topic");
        }
    }
}
