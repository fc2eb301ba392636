//! Tests of the tracing events. They have their own test program: other tests without a subscriber
//! would disable these events for the whole program.
#![cfg(not(ganger_loom))]

use ganger_proc_api::{HostName, Message, NodeName, SendErrorKind};
use ganger_relay::{ChannelHost, EnvelopeReceiver, Node, Router, receiver_fn};
use ganger_sync::atomic::{AtomicBool, Ordering};
use ganger_sync::sync::lock;
use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span};

fn host(name: &str) -> HostName {
    HostName::new(name).unwrap()
}

fn node(name: &str) -> NodeName {
    NodeName::new(name).unwrap()
}

fn sink() -> Arc<dyn EnvelopeReceiver> {
    Arc::new(receiver_fn(|_| Ok(())))
}

/// Collects events. With `reenters`, it uses the router from inside each event.
struct Collector {
    router: Arc<Router>,
    lines: Arc<Mutex<Vec<String>>>,
    reenters: Arc<AtomicBool>,
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("ganger")
    }

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        assert_eq!(metadata.target(), "ganger::relay");
        let mut line = Line(match *metadata.level() {
            Level::DEBUG => String::new(),
            level => level.to_string(),
        });
        event.record(&mut line);
        lock(&self.lines).push(line.0.trim_start().to_owned());

        // Ordering: Relaxed, because a single thread does it all.
        if self.reenters.load(Ordering::Relaxed) {
            use_all_shards(&self.router);
        }
    }

    fn new_span(&self, _span: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _span: &span::Id, _values: &span::Record<'_>) {}
    fn record_follows_from(&self, _span: &span::Id, _follows: &span::Id) {}
    fn enter(&self, _span: &span::Id) {}
    fn exit(&self, _span: &span::Id) {}
}

/// Adds and removes more hosts and peers than the maps have shards, and changes the fallback. The
/// subscriber does not get the resulting events: `tracing` never calls a subscriber inside itself.
fn use_all_shards(router: &Router) {
    for n in 0..300 {
        let name = format!("event-{n}");
        router.local().add_host(host(&name), sink()).unwrap();
        router.add_peer(node(&name), sink()).unwrap();
        router.local().remove_host(host(&name)).unwrap();
        router.remove_peer(node(&name)).unwrap();
    }
    match router.clear_fallback() {
        Some(fallback) => assert!(router.set_fallback(fallback).is_none()),
        None => assert!(router.clear_fallback().is_none()),
    }
}

/// Causes every event, and checks that exactly these events come.
fn check(router: &Router, told: &dyn Fn() -> Vec<String>) {
    let channels = Arc::new(ChannelHost::new(node("here"), host("box")));
    router
        .local()
        .add_host(host("box"), channels.clone())
        .unwrap();
    router.add_peer(node("there"), sink()).unwrap();
    router.set_fallback(sink());
    let (one, two) = (channels.open(), channels.open());
    assert_eq!(
        told(),
        [
            "message=host added node=here host=box",
            "message=peer added node=here peer=there",
            "message=internode fallback set node=here",
            "message=channel attached pid={here@box|1}",
            "message=channel attached pid={here@box|2}",
        ]
    );

    let send = |target: &str| router.send(Message::new("hello", ()).to(target.parse().unwrap()));
    for target in ["{box|1}", "{here@box|1}", "{there@a|1}", "{unknown@a|1}"] {
        send(target).unwrap();
    }
    assert!(told().is_empty(), "an envelope that is taken is no event");

    channels.detach(one.pid());
    drop((one, two));
    router.clear_fallback();
    router.remove_peer(node("there"));
    let refusal = |target| send(target).unwrap_err().kind;
    assert_eq!(refusal("{box|1}"), SendErrorKind::NotFound);
    assert_eq!(refusal("{there@a|1}"), SendErrorKind::NodeNotFound);
    router.local().remove_host(host("box"));
    assert_eq!(refusal("{box|1}"), SendErrorKind::HostNotFound);
    assert_eq!(
        told(),
        [
            "message=channel detached pid={here@box|1}",
            "message=channel detached pid={here@box|2}",
            "message=internode fallback cleared node=here",
            "message=peer removed node=here peer=there",
            "message=envelope refused pid={box|1} reason=no process has that PID",
            "message=envelope refused pid={there@a|1} reason=no route to the node",
            "message=host removed node=here host=box",
            "message=envelope refused pid={box|1} reason=no such host on the node",
        ]
    );

    let (local, itself) = (router.local(), host("itself"));
    local
        .add_host(itself, Arc::new(Arc::downgrade(local)))
        .unwrap();
    assert_eq!(refusal("{itself|1}"), SendErrorKind::HostNotFound);
    local.remove_host(itself);
    let told = told();
    let warnings = told.iter().filter(|line| line.starts_with("WARN"));
    assert_eq!(
        warnings.collect::<Vec<_>>(),
        ["WARN message=hosts pass an envelope in a circle node=here pid={itself|1}"]
    );
}

// pins: R2, R3, R5
#[test]
fn what_comes_and_goes_and_is_refused_is_told_under_no_lock() {
    let (done, wait) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let router = Arc::new(Router::new(Arc::new(Node::new(node("here")))));
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let reenters = Arc::new(AtomicBool::new(false));
        let collector = Collector {
            router: Arc::clone(&router),
            lines: Arc::clone(&lines),
            reenters: Arc::clone(&reenters),
        };
        let told = || std::mem::take(&mut *lock(&lines));
        tracing::subscriber::with_default(collector, || {
            check(&router, &told);
            // Set late: an event that first occurs inside another event is disabled for good.
            // Ordering: Relaxed, because a single thread does it all.
            reenters.store(true, Ordering::Relaxed);
            check(&router, &told);
        });
        done.send(()).unwrap();
    });
    let result = wait.recv_timeout(Duration::from_secs(20));
    assert_ne!(
        result,
        Err(mpsc::RecvTimeoutError::Timeout),
        "an event was told under a lock"
    );
    thread.join().unwrap();
}
