//! Nodes of a cluster on machines of a simulation, over a twin. The programs are as on threads.

mod account;
#[cfg(feature = "conformance")]
mod conformance;
#[cfg(feature = "conformance")]
mod harness;
mod names;
#[cfg(feature = "conformance")]
mod owners;
mod play;
mod refusals;
#[cfg(feature = "conformance")]
mod strong;

use ganger_cluster::{Faults, Twin};
use ganger_sim::World;
use play::{ALL, Play, QUIET, sim};
use std::sync::Mutex;
use std::time::Duration;

fn start<'w, 'a>(world: &'w World<'a>) -> Play<'w, 'a> {
    let twin = Twin::new(0);
    twin.faults(troubled());
    twin.hints(world.choose(2) == 1);
    world.carrier(twin.clone());
    Play::start(world, move |_| twin.port())
}

fn troubled() -> Faults {
    let mut faults = Faults::default();
    faults.drop = [50, 100];
    faults.repeat = 50;
    faults.reorder = 50;
    faults.late = Duration::from_millis(600);
    faults.jitter = Duration::from_millis(20);
    faults
}

// pins: B1, B2, B3, B5, B13, B41
// case: 1, 4, 24, 25, 26, 27, 28, 29
#[test]
fn messages_and_notices_keep_their_promises_whatever_happens_to_machines() {
    let counts = Mutex::new([0; 3]);
    sim().check_worlds(60, |world| {
        let mut play = start(world);
        for _ in 0..4 + world.choose(20) {
            play.act(ALL);
        }
        play.end();
        let account = play.account.lock().unwrap();
        let [received, _, told] = account.counts();
        let own = [received, account.downs(), told];
        let mut counts = counts.lock().unwrap();
        counts
            .iter_mut()
            .zip(own)
            .for_each(|(all, own)| *all += own);
    });
    let counts = *counts.lock().unwrap();
    assert!(
        counts.iter().all(|it| *it > 0),
        "nothing happens: {counts:?}"
    );
}

// pins: B1, B2, B3
// case: 1, 4
#[test]
fn an_engine_that_loses_frames_loses_no_message_between_machines_that_stay() {
    sim().check_worlds(10, |world| {
        let mut play = start(world);
        for _ in 0..20 {
            play.act(QUIET);
        }
        play.end();
        let account = play.account.lock().unwrap();
        assert_eq!(account.downs(), 0, "a session ends");
        assert_eq!(account.counts()[1], 0, "messages are missing");
    });
}

#[test]
fn a_seed_repeats_a_cluster() {
    for seed in 0..3 {
        let run = || {
            sim().seed(seed).run_world(|world| {
                let mut play = start(world);
                for _ in 0..8 {
                    play.act(ALL);
                }
                play.end();
            })
        };
        let (first, second) = (run(), run());
        assert_eq!(first.decisions, second.decisions, "seed {seed}");
        assert_eq!(first.trace.to_string(), second.trace.to_string());
    }
}
