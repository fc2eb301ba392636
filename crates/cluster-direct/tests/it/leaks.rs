//! Nothing of a node is left when it has ended: no thread, no descriptor.

use crate::support::{COOKIE, PATIENCE, until};
use ganger_cluster::{Cluster, Settings};
use ganger_cluster_direct::Direct;
use ganger_proc_api::{Envelope, actor_fn};
use ganger_sched::Scheduler;
use std::env;
use std::fs;
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Counts the threads and the descriptors of this program.
fn counts() -> [usize; 2] {
    ["task", "fd"].map(|of| fs::read_dir(format!("/proc/self/{of}")).unwrap().count())
}

fn node(name: &str, seeds: Option<String>) -> (Scheduler, Cluster, Direct) {
    let engine = Direct::listen("127.0.0.1:0").seeds(seeds).cookie(COOKIE);
    let scheduler = Scheduler::builder().workers(2).node(name).start().unwrap();
    let builder = Cluster::builder().engine(engine.clone());
    let cluster = builder.settings(Settings::default()).join(&scheduler);
    (scheduler, cluster.unwrap(), engine)
}

/// Starts two nodes, which meet, talk and end. If `crashes`, the second ends without a farewell.
fn round(crashes: bool) {
    let (near, _near, at_near) = node("near", None);
    let seed = at_near.local_addr().map(|it| it.to_string());
    let (far, _far, at_far) = node("far", seed);
    let (tell, told) = channel();
    let process = actor_fn(move |_, number: u64, _| Ok(tell.send(number)?));
    let process = far.spawn(process).unwrap();
    let pid = far.absolute(process.pid());
    near.send(Envelope::new(None, pid, "number", 7_u64))
        .unwrap();
    assert_eq!(told.recv_timeout(PATIENCE), Ok(7));
    drop(process);
    if crashes {
        ganger_cluster::Engine::stop(&at_far, Duration::ZERO);
    }
    for scheduler in [&near, &far] {
        scheduler.stop(Duration::from_secs(5)).unwrap();
    }
}

/// Runs the rounds in a program of its own: other tests have threads and descriptors.
#[test]
#[ignore = "the next test starts it"]
fn rounds() {
    round(false);
    round(true);
    let before = counts();
    for number in 0..10 {
        round(number % 2 == 0);
    }
    // A thread that ends is listed for a moment longer.
    until("threads and descriptors are as before", || {
        counts()
            .iter()
            .zip(before)
            .all(|(now, before)| *now <= before)
    });
}

// pins: H5
// case: 40
#[cfg(target_os = "linux")]
#[test]
fn a_node_leaves_no_thread_and_no_descriptor() {
    let mut program = Command::new(env::current_exe().unwrap());
    let args = ["--exact", "leaks::rounds", "--ignored", "--nocapture"];
    let ended = program.args(args).output().unwrap();
    assert!(
        ended.status.success(),
        "{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(said.contains("1 passed"), "{said}");
}
