//! Three nodes as programs of their own over a broker, while proxies in front of the broker break
//! connections, and programs and the broker are stopped and killed: `cargo xtask soak chaos-nats`.
//!
//! Frames go without TLS, since they have checksums. The operations of a store have none, so a
//! store has TLS where bits flip.

#![cfg(unix)]

#[allow(dead_code, reason = "the other tests use more of it")]
#[path = "../it/support/broker.rs"]
mod broker;
#[path = "../../../../xtask/src/cluster_keys/issue.rs"]
mod issue;

use broker::Broker;
use ganger_chaos::{Front, Place, Setup, run, seconds, seed};
use ganger_cluster_nats::Nats;
use std::env;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Is one of the nodes, where the test below has started this program.
#[test]
#[ignore = "the other test starts it"]
fn node() {
    let engine = |place: &Place| Arc::new(nats(place));
    let store = |place: &Place| {
        let store = nats(place).tls_root(&place.extra).open_store();
        store.expect("the store opens").into()
    };
    ganger_chaos::node(engine, |_| None, store);
}

fn nats(place: &Place) -> Nats {
    // A node may start while the broker is away.
    Nats::new(format!("nats://{}", place.own)).connect_within(Duration::from_secs(120))
}

/// Returns the settings of a broker with a store, and with TLS for clients that like it.
fn settings(folder: &Path) -> String {
    let [pem, key] = ["node.pem", "node.key"].map(|file| folder.join(BROKER).join(file));
    let store = folder.join("store");
    format!(
        "jetstream {{ store_dir: {store:?} }}\ntls {{ cert_file: {pem:?}, key_file: {key:?} }}\n\
         allow_non_tls: true\n"
    )
}

/// The name in the broker's certificate.
const BROKER: &str = "127.0.0.1";

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

// pins: B1, B2, B3, B4, B33
// case: 4, 24, 25, 26, 27, 28, 29, 30, 37
#[test]
fn over_a_broker_nothing_is_lost_without_a_word() {
    let folder = tempfile::tempdir().unwrap();
    issue::issue(folder.path(), &[BROKER], [2000, 2200]).unwrap();
    let Some(broker) = Broker::with(&settings(folder.path())) else {
        return;
    };
    let root = folder.path().join(BROKER).join("ca.pem");
    let seed = seed();
    println!("over a broker, seed {seed}");
    let args = ["--exact", "node", "--ignored", "--nocapture"];
    let tally = run(Setup {
        program: env::current_exe().unwrap(),
        args: args.map(str::to_owned).into(),
        nodes: 3,
        front: Front::Broker(Box::new(Between(broker))),
        extra: root.display().to_string(),
        dead: Duration::from_secs(3),
        time: seconds(5),
        seed,
    });
    println!("over a broker, seed {seed}: {tally}");
    assert!(tally.received > 0 && tally.monitors > 0, "{tally}");
    // Each node has had each name and each lock.
    assert!(tally.owners >= 12, "{tally}");
}
