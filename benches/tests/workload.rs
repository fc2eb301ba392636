//! Runs the program of the workloads from the outside, each workload with each of its peers.

use ganger_benches::whole::catalog::{Id, Peer};
use ganger_benches::whole::job::{Job, MISSING, Size};
use ganger_benches::whole::list;
use ganger_benches::whole::sample::Sample;
use std::process::{Command, Output};
use std::sync::Mutex;
use std::thread;

fn run(args: &[String]) -> Output {
    let program = env!("CARGO_BIN_EXE_ganger-workload");
    Command::new(program).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Runs the workload with the peer at quick size, and checks the figures in the output.
fn check(id: Id, peer: Peer) {
    let job = Job::new(id, peer, 2, Size::Quick);
    let output = run(&job.args());
    let (said, errors) = (text(&output.stdout), text(&output.stderr));
    let status = output.status;
    if cfg!(not(target_os = "linux")) && status.code() == Some(MISSING.into()) {
        assert!(
            matches!(id, Id::W8 | Id::W10 | Id::W11),
            "{id} {peer}: {errors}"
        );
        assert!(errors.contains("needs Linux"), "{id} {peer}: {errors}");
        return;
    }
    assert!(status.success(), "{id} {peer}: {status}: {errors}");
    let samples: Vec<_> = said
        .lines()
        .map(|line| Sample::parse(line).unwrap_or_else(|error| panic!("{line}: {error}")))
        .collect();
    let variants = samples.iter().map(|sample| sample.variant.as_str());
    let expected = job.spec().metrics.iter().map(|metric| metric.variant);
    assert!(variants.eq(expected), "{id} {peer}: {said}");
    for sample in samples {
        assert_eq!((sample.workload, sample.peer), (id, peer), "{said}");
        assert!(sample.value > 0.0 && sample.value.is_finite(), "{said}");
        assert!(sample.n > 0 && sample.n <= job.elements(), "{said}");
    }
}

#[test]
fn every_pair_has_figures() {
    let pairs: Vec<_> = list().collect();
    let peers = [
        Peer::Ganger,
        Peer::Tokio,
        Peer::Ractor,
        Peer::Kameo,
        Peer::Xtra,
        Peer::Actix,
    ];
    for id in [Id::W1, Id::W8, Id::W9ask, Id::W13] {
        for peer in peers {
            assert!(pairs.contains(&(id, peer)), "{id} {peer}");
        }
    }
    assert!(!pairs.iter().any(|&(_, peer)| peer == Peer::Go));
    let left = Mutex::new(pairs.into_iter());
    // Four runs at a time, as many workloads sleep most of the time.
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some((id, peer)) = left.lock().unwrap().next() else {
                        return;
                    };
                    check(id, peer);
                }
            });
        }
    });
}

#[test]
fn counts_are_those_that_are_asked_for() {
    let mut job = Job::new(Id::W8, Peer::Ganger, 1, Size::Full);
    job.processes = Some(3_000);
    let output = run(&job.args());
    let samples: Vec<_> = text(&output.stdout).lines().map(Sample::parse).collect();
    assert!(!samples.is_empty() || cfg!(not(target_os = "linux")));
    for sample in samples {
        assert_eq!(sample.unwrap().n, 3_000);
    }
    let mut job = Job::new(Id::W6, Peer::Tokio, 2, Size::Full);
    (job.producers, job.rounds) = (Some(3), Some(1_000));
    let sample = Sample::parse(text(&run(&job.args()).stdout).trim()).unwrap();
    assert_eq!(sample.n, 999, "equal parts for each producer");
}

#[test]
fn what_a_peer_has_not_is_said_and_not_measured() {
    for (id, peer, reason) in [
        (Id::W9, Peer::Kameo, "no commands"),
        (Id::W4pid, Peer::Tokio, "no PIDs"),
        (Id::W1, Peer::Go, "not run by this program"),
        (Id::Deque, Peer::Ganger, "ganger-queues"),
    ] {
        let output = run(&Job::new(id, peer, 2, Size::Quick).args());
        assert_eq!(output.status.code(), Some(MISSING.into()), "{id} {peer}");
        let errors = text(&output.stderr);
        assert!(errors.contains(reason), "{errors}");
        assert_eq!((errors.lines().count(), output.stdout.len()), (1, 0));
    }
}

#[test]
fn what_can_not_be_run_is_said() {
    for (args, reason) in [
        (&[][..], "--workload <W>"),
        (&["--workload", "W1"], "--peer <PEER>"),
        (&["--workload", "W0", "--peer", "tokio"], "W4pid"),
    ] {
        let args: Vec<_> = args.iter().map(|&arg| arg.to_owned()).collect();
        let output = run(&args);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(reason), "{output:?}");
    }
}
