//! Sessions over the engine lose nothing while connections break.

use crate::support::{PATIENCE, engine, name};
use bytes::Bytes;
use ganger_chaos::{Proxy, Way};
use ganger_cluster::{
    Engine, EngineSink, Event, Halves, Identity, Incarnation, Lane, NodeId, Reader, Session,
    Settings,
};
use ganger_cluster_direct::Direct;
use ganger_proc_api::Instant;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{self, Duration};

/// The engine's calls, until the driver looks.
#[derive(Default)]
struct Inbox {
    told: Mutex<VecDeque<Told>>,
    changed: Condvar,
}

enum Told {
    Frame(Bytes),
    Appeared,
    Vanished,
    Writable,
}

impl Inbox {
    fn tell(&self, told: Told) {
        self.told.lock().unwrap().push_back(told);
        self.changed.notify_all();
    }

    /// Takes all that was told, after a wait of at most `time` for the first.
    fn take(&self, time: Duration) -> VecDeque<Told> {
        let told = self.told.lock().unwrap();
        let waited = self
            .changed
            .wait_timeout_while(told, time, |told| told.is_empty());
        std::mem::take(&mut *waited.unwrap().0)
    }
}

impl EngineSink for Inbox {
    fn frame(&self, _: &NodeId, frame: Bytes) {
        self.tell(Told::Frame(frame));
    }

    fn appeared(&self, _: &NodeId) {
        self.tell(Told::Appeared);
    }

    fn vanished(&self, _: &NodeId) {
        self.tell(Told::Vanished);
    }

    fn writable(&self, _: &NodeId) {
        self.tell(Told::Writable);
    }
}

/// A node with a session to a single peer, and its driver.
struct Driver {
    session: Session,
    inbox: Arc<Inbox>,
    engine: Direct,
    begin: time::Instant,
    received: Vec<u64>,
    ends: usize,
}

impl Driver {
    fn start(me: &str, peer: &str, incarnation: u16, engine: Direct) -> Self {
        let inbox = Arc::new(Inbox::default());
        engine.start(&name(me), inbox.clone()).unwrap();
        let halves = Halves::new(Incarnation::new(1_700_000_000_000, incarnation));
        let identity = Identity::new(name(me), "shop");
        let mut settings = Settings::default();
        // A busy machine is not a dead peer.
        (settings.dead, settings.vanished) = (PATIENCE, PATIENCE);
        Self {
            session: Session::new(identity, halves, name(peer), settings),
            inbox,
            engine,
            begin: time::Instant::now(),
            received: Vec::new(),
            ends: 0,
        }
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(0) + self.begin.elapsed()
    }

    fn send(&mut self, number: u64) -> bool {
        let now = self.now();
        let sent = self.session.send(Lane::Data, 1, now, |body| {
            body.varint(number);
            // Frames of some kilobytes, so that breaks are in their middle.
            body.bytes(&[7; 500]);
        });
        sent.is_ok()
    }

    /// Moves frames in, frames out, and events; waits until the next deadline at most.
    fn run(&mut self) {
        let now = self.now();
        let due = self
            .session
            .deadline()
            .map_or(Duration::ZERO, |at| at - now);
        for told in self.inbox.take(due.min(Duration::from_millis(5))) {
            let now = self.now();
            match told {
                Told::Frame(frame) => self.session.handle(&frame, now),
                Told::Appeared => self.session.appeared(now),
                Told::Vanished => self.session.vanished(now),
                Told::Writable => self.session.writable(),
            }
        }
        let now = self.now();
        while let Some(sent) = self.session.poll_frame(now) {
            let peer = self.session.peer().clone();
            if !self.engine.send(&peer, sent.lane, sent.frame.clone()) {
                self.session.put_back(&sent, now);
            }
        }
        while let Some(event) = self.session.poll_event() {
            match event {
                Event::Received {
                    session, messages, ..
                } => {
                    self.session.consumed(session, messages.cost());
                    let numbers = messages.map(|it| Reader::new(it.body).varint().unwrap());
                    self.received.extend(numbers);
                }
                Event::Ended { .. } => self.ends += 1,
                _ => {}
            }
        }
    }
}

/// Sends numbered messages both ways through the proxy. Calls `disturb` with the number received.
fn account(messages: u64, mut disturb: impl FnMut(u64, &Proxy)) {
    let mut beta = Driver::start("beta", "alpha", 2, engine());
    let proxy = Proxy::to(beta.engine.local_addr().unwrap());
    // Beta knows alpha's address from alpha, and would dial it past the proxy.
    let nowhere = proxy.address();
    let seeded = engine().seeds([nowhere.to_string()]).advertise(nowhere);
    let mut alpha = Driver::start("alpha", "beta", 1, seeded);
    alpha.session.open(alpha.now());
    beta.session.open(beta.now());
    let end = time::Instant::now() + 2 * PATIENCE;
    let mut sent = [0; 2];
    while [&alpha, &beta]
        .iter()
        .any(|it| (it.received.len() as u64) < messages)
    {
        assert!(
            time::Instant::now() < end,
            "{sent:?} sent, {} and {} received: {:?}",
            alpha.received.len(),
            beta.received.len(),
            [alpha.session.stats(), beta.session.stats()],
        );
        for (sent, node) in sent.iter_mut().zip([&mut alpha, &mut beta]) {
            for _ in 0..50 {
                if *sent < messages && node.send(*sent) {
                    *sent += 1;
                }
            }
            node.run();
        }
        disturb(beta.received.len() as u64, &proxy);
    }
    for node in [&alpha, &beta] {
        assert!(
            node.received.iter().copied().eq(0..messages),
            "in order and once"
        );
        assert_eq!(node.ends, 0, "no session ends for a break of a connection");
        node.engine.stop(Duration::ZERO);
    }
}

// pins: H1, H4
// case: 4, 29
#[test]
fn sessions_lose_nothing_while_connections_break() {
    let mut next = 500;
    let mut cuts = 0;
    account(5000, |received, proxy| {
        if received >= next {
            next += 500;
            cuts += 1;
            if cuts % 2 == 0 {
                proxy.cut();
            } else {
                proxy.cut_after(1234);
            }
        }
        if received == 5000 {
            assert!(proxy.broken() >= 5, "{}", proxy.broken());
        }
    });
}

/// Flips bits: each breaks the connection, and harms no message.
// pins: H1, H4
// case: 4
#[test]
fn sessions_lose_nothing_to_flipped_bits() {
    let mut next = 300;
    account(2000, |received, proxy| {
        if received >= next {
            next += 300;
            proxy.flip(Way::There);
        }
    });
}
