//! Three nodes as programs of their own over a broker, while proxies in front of the broker break
//! connections, and programs and the broker are stopped and killed: `cargo xtask soak chaos-nats`.

#![cfg(unix)]

#[allow(dead_code, reason = "the other tests use more of it")]
#[path = "../it/support/broker.rs"]
mod broker;

use broker::Broker;
use ganger_chaos::{Front, Place, Setup, run, seconds, seed};
use ganger_cluster_nats::Nats;
use std::env;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Is one of the nodes, where the test below has started this program.
#[test]
#[ignore = "the other test starts it"]
fn node() {
    let engine = |place: &Place| {
        let engine = Nats::new(format!("nats://{}", place.own));
        // A node may start while the broker is away.
        Arc::new(engine.connect_within(Duration::from_secs(120)))
    };
    ganger_chaos::node(engine, |_| None);
}

/// A broker for a run.
struct Between(Broker);

impl ganger_chaos::Broker for Between {
    fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.0.port).into()
    }

    fn kill(&mut self) {
        self.0.kill();
    }

    fn restart(&mut self) {
        self.0.restart();
    }

    fn pause(&mut self, is_paused: bool) {
        self.0.signal(if is_paused { "STOP" } else { "CONT" });
    }
}

// pins: B1, B2, B3, B4
// case: 4, 24, 25, 26, 27, 28, 29, 30
#[test]
fn over_a_broker_nothing_is_lost_without_a_word() {
    let Some(broker) = Broker::start() else {
        return;
    };
    let seed = seed();
    println!("over a broker, seed {seed}");
    let args = ["--exact", "node", "--ignored", "--nocapture"];
    let tally = run(Setup {
        program: env::current_exe().unwrap(),
        args: args.map(str::to_owned).into(),
        nodes: 3,
        front: Front::Broker(Box::new(Between(broker))),
        extra: String::new(),
        dead: Duration::from_secs(3),
        time: seconds(5),
        seed,
    });
    println!("over a broker, seed {seed}: {tally}");
    assert!(tally.received > 0 && tally.monitors > 0, "{tally}");
}
