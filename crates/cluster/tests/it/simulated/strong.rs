//! Strong names and locks on machines of a simulation, over a twin.

use super::owners::{HALF, MACHINES, NAMES, Play, WHOLE};
use super::play::sim;
use ganger_cluster::Twin;
use ganger_sim::World;
use std::sync::Mutex;
use std::time::Duration;

fn start<'w, 'a>(world: &'w World<'a>) -> Play<'w, 'a> {
    let twin = Twin::new(0);
    world.carrier(twin.clone());
    Play::start(world, move |_| twin.port())
}

// pins: B33, B34
// case: 37
#[test]
fn a_strong_name_is_in_one_place_whatever_happens_to_machines_and_their_store() {
    let counts = Mutex::new([0; 6]);
    sim().check_worlds(20, |world| {
        let mut play = start(world);
        for _ in 0..10 + world.choose(20) {
            play.act();
        }
        play.end();
        let ledger = play.ledger.lock().unwrap();
        let lost = ledger.lost.len();
        let [locked, unlocked] = ledger.locks;
        let (granted, refused) = (ledger.granted, ledger.refused);
        let own = [granted, refused, ledger.used, lost, locked, unlocked];
        let mut counts = counts.lock().unwrap();
        counts
            .iter_mut()
            .zip(own)
            .for_each(|(all, own)| *all += own);
    });
    let counts = *counts.lock().unwrap();
    assert!(counts.iter().all(|it| *it > 0), "{counts:?}");
}

// pins: B34
// case: 37
#[test]
fn while_the_store_is_down_a_name_is_held_for_half_a_lease_and_then_by_nobody() {
    sim().check_worlds(10, |world| {
        let mut play = start(world);
        play.claim("alpha", NAMES[0]);
        world.run_until(Duration::from_secs(30), || {
            play.holders(NAMES[0]) == ["alpha"] || play.ledger.lock().unwrap().refused > 0
        });
        if play.holders(NAMES[0]).is_empty() {
            // Its answer was lost.
            return;
        }
        let since = world.now();
        MACHINES.iter().for_each(|at| play.store_down(at));
        play.claim("beta", NAMES[0]);
        let (mut longest, refused) = (Duration::ZERO, play.ledger.lock().unwrap().refused);
        while world.now() < since + WHOLE + HALF {
            play.run(100);
            match &*play.holders(NAMES[0]) {
                [] => {}
                ["alpha"] => longest = world.now() - since,
                other => panic!("{other:?} has the name of a store that is down"),
            }
        }
        assert!(longest < HALF, "the name was kept for {longest:?}");
        assert!(
            play.ledger.lock().unwrap().refused > refused,
            "a claim was not refused"
        );
        assert_eq!(
            play.ledger.lock().unwrap().lost.len(),
            1,
            "the owner was told"
        );
        MACHINES.iter().for_each(|at| play.store_up(at));
        play.end();
    });
}

#[test]
fn a_seed_repeats_names_and_their_store() {
    for seed in 0..2 {
        let run = || {
            sim().seed(seed).run_world(|world| {
                let mut play = start(world);
                (0..8).for_each(|_| play.act());
                play.end();
            })
        };
        let (first, second) = (run(), run());
        assert_eq!(first.decisions, second.decisions, "seed {seed}");
        assert_eq!(first.trace.to_string(), second.trace.to_string());
    }
}
