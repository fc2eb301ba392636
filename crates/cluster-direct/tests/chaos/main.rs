//! Three nodes as programs of their own, while proxies between them break connections, and programs
//! are stopped and killed: `cargo xtask soak chaos`.

#![cfg(unix)]

use ganger_chaos::{Front, Place, Setup, run, seconds, seed};
use ganger_cluster_direct::Direct;
use std::env;
use std::path::Path;
use std::time::Duration;

#[path = "../../../../xtask/src/cluster_keys/issue.rs"]
mod issue;

/// Runs a node, where a test of this file has started this program.
#[test]
#[ignore = "the other tests start it"]
fn node() {
    let store = |place: &Place| place.registrar().into();
    ganger_chaos::node(engine, Direct::local_addr, store);
}

fn engine(place: &Place) -> Direct {
    let seeds = place.seeds.iter().map(ToString::to_string);
    let engine = Direct::listen("127.0.0.1:0").seeds(seeds);
    let engine = engine.advertise(place.own);
    match &*place.extra {
        "" => engine.cookie("the cookie of the chaos"),
        keys => engine.keys(Path::new(keys).join(&place.name)),
    }
}

fn chaos(over: &str, extra: String) {
    let seed = seed();
    println!("{over}, seed {seed}");
    let args = ["--exact", "node", "--ignored", "--nocapture"];
    let tally = run(Setup {
        program: env::current_exe().unwrap(),
        args: args.map(str::to_owned).into(),
        nodes: 3,
        front: Front::Nodes,
        extra,
        dead: Duration::from_secs(3),
        time: seconds(5),
        seed,
    });
    println!("{over}, seed {seed}: {tally}");
    assert!(tally.received > 0 && tally.monitors > 0, "{tally}");
    // Each node has had each name and each lock.
    assert!(tally.owners >= 12, "{tally}");
}

// pins: B1, B2, B3, B4, B33, H1, H4
// case: 4, 24, 25, 26, 27, 28, 29, 37
#[test]
fn with_a_cookie_nothing_is_lost_without_a_word() {
    chaos("with a cookie", String::new());
}

// pins: B3, H1
#[test]
fn with_tls_nothing_is_lost_without_a_word() {
    let keys = tempfile::tempdir().unwrap();
    let names = ["node-0", "node-1", "node-2"];
    issue::issue(keys.path(), &names, [2020, 2100]).unwrap();
    let folder = keys.path().to_str().unwrap();
    chaos("with TLS", folder.to_owned());
}
