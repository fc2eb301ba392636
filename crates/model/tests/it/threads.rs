//! The scheduler with threads, compared with its specification.

use ganger_model::{MOST, Plan, play_on_threads};
use std::collections::BTreeSet;

/// The first byte of a record with submits by several threads at once.
const CROWD: u8 = 252;

/// Returns the factor of a longer run of the test.
fn factor() -> u64 {
    std::env::var("GANGER_STRESS").map_or(1, |text| text.parse().unwrap())
}

// pins: P1, P2, P3, P4, P5, P6, P7, P9, P11, P12, P13, P14, P15, G1, G8, R2, R4, D4
#[test]
fn what_others_do_at_the_same_time_changes_nothing() {
    let from = std::env::var("GANGER_SEED").map_or(0, |text| text.parse().unwrap());
    let mut reached = BTreeSet::new();
    for seed in from..from + 200 * factor() {
        println!("repeat it: GANGER_SEED={seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        let count = rng.usize(1..=4);
        let mut plans: Vec<_> = (0..count)
            .map(|_| {
                let mut bytes: Vec<u8> = (0..4 * rng.usize(8..MOST)).map(|_| rng.u8(..)).collect();
                // A plan with a limit of processes makes crowds more often, and so meets the limit.
                if count == 1 {
                    bytes
                        .iter_mut()
                        .skip(4)
                        .step_by(64)
                        .for_each(|op| *op = CROWD);
                }
                Plan::from_bytes(&bytes)
            })
            .collect();
        // Without a limit, senders can get far behind.
        if rng.bool() {
            plans[0].mailbox = None;
        }
        reached.extend(play_on_threads(&plans, rng.usize(1..=4)));
    }
    // The plans really send, submit and wait together with other threads.
    for what in [
        "a send among others (R2) Accepted",
        "a send among others (R2) Full",
        "a send among others (R2) NotFound",
        "a send that blocks (R2, P13) Accepted",
        "a send that blocks (R2, P13) Closed",
        "a send that blocks (R2, P13) NotFound",
        "who has waited for room (R2, P13) Accepted",
        "who has waited for room (R2, P13) Closed",
        "a send that has waited (R2, P13) Accepted",
        "a send that has waited (R2, P13) Closed",
        "a send that has waited (R2, P13) Waits",
        "a submit among others (P1, P13, P14) Started",
        "a submit among others (P1, P13, P14) AlreadyExists",
        "a submit among others (P1, P13, P14) LimitReached",
        "a submit among others (P1, P13, P14) InitFailed",
        "a submit among others (P1, P13, P14) InitPanicked",
        "a submit among others (P1, P13, P14) StartRefused",
        "a submit among others (P1, P13, P14) StartPanicked",
        "several ask for one PID, and one gets it",
        "several ask for the last places, and some get them",
    ] {
        assert!(reached.contains(what), "{what}");
    }
}
