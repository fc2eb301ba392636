//! Sessions over brokers with restarts: nothing is lost, no session ends.

use crate::support::broker::{Broker, listen};
use crate::support::node::{Node, Side, play};
use ganger_cluster::{Lane, SendError, Settings};
use ganger_cluster_nats::Nats;
use std::time::{Duration, Instant};

/// Sessions outlast each failure here, on a busy machine too.
fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.dead = Duration::from_secs(600);
    settings
}

fn sides(url: &str) -> (Side, Side) {
    let engine = || Nats::new(url).beacon(Duration::from_secs(3600));
    let [a, b] = ["alpha", "beta"].map(|me| Node::start(me, engine()));
    let (at_a, at_b) = (a.me.clone(), b.me.clone());
    let mut a = Side::new(a, &at_b, &settings());
    let b = Side::new(b, &at_a, &settings());
    a.session.open(a.now());
    (a, b)
}

/// Sends the numbers up to `end`, in both lanes of both sides, as far as the queues take them.
fn say(side: &mut Side, next: &mut [u64; 2], end: u64) {
    let zeros = [0; 500];
    for lane in Lane::ALL {
        let number = &mut next[lane.index()];
        while *number < end {
            match side.say(lane, *number, &zeros) {
                Ok(()) => *number += 1,
                Err(SendError::Full | SendError::NoSession) => break,
                Err(other) => panic!("{other}"),
            }
        }
    }
}

/// Sends `count` messages in each lane and direction. After each part of them `fails` is called,
/// with the number of the part.
fn run(a: &mut Side, b: &mut Side, count: u64, parts: usize, mut fails: impl FnMut(usize)) {
    let (mut next_a, mut next_b) = ([0; 2], [0; 2]);
    let mut part = 0;
    play(a, b, |a, b| {
        say(a, &mut next_a, count);
        say(b, &mut next_b, count);
        let heard = [&a.heard, &b.heard].into_iter().flatten().map(Vec::len);
        let least = heard.min().unwrap() as u64;
        if part < parts && least > count * (part as u64 + 1) / (parts as u64 + 1) {
            fails(part);
            part += 1;
        }
        least == count && a.session.is_flushed() && b.session.is_flushed()
    });
    assert_eq!(part, parts);
    for side in [a, b] {
        assert_eq!(side.ends, []);
        for lane in &side.heard {
            assert!(lane.iter().copied().eq(0..count), "all, once, in order");
        }
    }
}

// Row of the failure matrix: engine down for less than `dead`.
// case: 30
#[test]
fn a_brokers_restart_loses_nothing() {
    let Some(mut broker) = Broker::start() else {
        return;
    };
    let (mut a, mut b) = sides(&broker.url());
    run(&mut a, &mut b, 20_000, 3, |_| {
        broker.kill();
        broker.restart();
    });
    for side in [&a, &b] {
        // The client may use a connection before it tells of the connection.
        let end = Instant::now() + Duration::from_secs(60);
        while side.node.engine.stats().reconnects == 0 {
            assert!(Instant::now() < end, "no reconnection is counted");
            std::thread::yield_now();
        }
    }
}

// Row of the failure matrix: engine down for less than `dead`.
// case: 30
#[test]
fn a_cluster_of_brokers_is_restarted_one_by_one_and_nothing_is_lost() {
    let routes = |routes: &[&Broker]| {
        let urls = routes.iter().filter_map(|broker| broker.route);
        let urls: Vec<_> = urls
            .map(|it| format!("\"nats://127.0.0.1:{it}\""))
            .collect();
        let listen = listen("-1");
        let urls = urls.join(", ");
        format!("cluster {{ name: test\n{listen}\nroutes: [{urls}] }}")
    };
    let Some(first) = Broker::with(&routes(&[])) else {
        return;
    };
    let second = Broker::with(&routes(&[&first])).unwrap();
    let third = Broker::with(&routes(&[&first, &second])).unwrap();
    let mut brokers = [first, second, third];
    let urls = brokers.each_ref().map(Broker::url).join(",");
    let (mut a, mut b) = sides(&urls);
    run(&mut a, &mut b, 10_000, 3, |part| {
        let broker = &mut brokers[part];
        broker.kill();
        broker.restart();
    });
}
