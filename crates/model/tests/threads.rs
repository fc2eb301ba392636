//! The scheduler with threads, beside its specification.

use ganger_model::{MOST, Plan, play_on_threads};
use std::collections::BTreeSet;

/// How much longer than usual the test is to run.
fn factor() -> u64 {
    std::env::var("GANGER_STRESS").map_or(1, |text| text.parse().unwrap())
}

// pins: P2, P4, P5, P6, P7, P9, P11, P12, G1, G8, R4, D4
#[test]
fn what_others_do_at_the_same_time_changes_nothing() {
    let from = std::env::var("GANGER_SEED").map_or(0, |text| text.parse().unwrap());
    let mut reached = BTreeSet::new();
    for seed in from..from + 300 * factor() {
        println!("repeat it: GANGER_SEED={seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        let plans: Vec<_> = (0..rng.usize(2..=4))
            .map(|_| {
                let bytes: Vec<u8> = (0..4 * rng.usize(8..MOST)).map(|_| rng.u8(..)).collect();
                Plan::from_bytes(&bytes)
            })
            .collect();
        reached.extend(play_on_threads(&plans, rng.usize(1..=4)));
    }
    // Else nobody would have sent beside others.
    for sent in ["Accepted", "NotFound"] {
        let sent = format!("a send among others (R2) {sent}");
        assert!(reached.contains(&sent), "{sent}");
    }
}
