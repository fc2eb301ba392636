//! The scheduler in a simulation, compared with its specification.

use crate::cases;
use ganger_model::{MOST, Plan, play, play_bytes};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Returns the bytes of a plan with starts of processes at its begin.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let submit = (6..10_u8, any::<[u8; 3]>()).prop_map(|(op, [to, what, how])| [op, to, what, how]);
    let ops = (vec(submit, 0..4), vec(any::<[u8; 4]>(), 0..MOST));
    (any::<[u8; 4]>(), ops).prop_map(|(settings, (submits, ops))| {
        let records = [settings].into_iter().chain(submits).chain(ops);
        records.flatten().collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(2_000)))]

    // pins: P1, P2, P3, P4, P5, P6, P7, P8, P9, P10, P11, P12, P13, P14, P15
    // pins: G1, G2, G6, R2, R3, R4, D1, D2, D3, D4
    #[test]
    fn whatever_is_done_in_whatever_order_has_the_one_result(bytes in bytes()) {
        play_bytes(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(500)))]

    #[test]
    fn a_plan_is_the_same_again(bytes in bytes()) {
        let plan = Plan::from_bytes(&bytes);
        prop_assert_eq!(play(&plan).report, play(&plan).report);
    }
}

/// The different results in the specification.
const ALL: [&str; 50] = [
    "a send (R2, P13) Accepted",
    "a send (R2, P13) Closed",
    "a send (R2, P13) Full",
    "a send (R2, P13) NotFound",
    "a send (R2, P13) Stopping",
    "a send that may wait (R2, P13) Accepted",
    "a send that may wait (R2, P13) NotFound",
    "a send that may wait (R2, P13) Stopping",
    "a send that may wait (R2, P13) Waits",
    "a send that has waited (R2, P13) Accepted",
    "a send that has waited (R2, P13) Closed",
    "a send that has waited (R2, P13) Stopping",
    "a send that has waited (R2, P13) Waits",
    "a send far away (R2, R3) Accepted",
    "a send far away (R2, R3) Full",
    "a send far away (R2, R3) NoHost",
    "a send far away (R2, R3) NoNode",
    "what comes back later (R2, R3) Full",
    "what comes back later (R2, R3) NoHost",
    "what comes back later (R2, R3) NoNode",
    "a place comes or goes (R3) true",
    "a place comes or goes (R3) false",
    "a spare takes over",
    "a spare ends",
    "a cancel (P10) true",
    "a cancel (P10) false",
    "a termination (P9) true",
    "a termination (P9) false",
    "an upgrade (P11) Accepted",
    "an upgrade (P11) NotFound",
    "an upgrade (P11) UnknownFactory",
    "a submit (P1, P13, P14, D1) Started",
    "a submit (P1, P13, P14, D1) AlreadyExists",
    "a submit (P1, P13, P14, D1) LimitReached",
    "a submit (P1, P13, P14, D1) Stopping",
    "a submit (P1, P13, P14, D1) InitFailed",
    "a submit (P1, P13, P14, D1) InitPanicked",
    "a submit (P1, P13, P14, D1) StartRefused",
    "a submit (P1, P13, P14, D1) StartPanicked",
    "a monitor of who is there",
    "a monitor of nobody",
    "done",
    "cancelled",
    "failed",
    "panicked",
    "terminated",
    "heir failed",
    "heir panicked",
    "factory panicked",
    "factory unknown",
];

/// Checks whether the plans really reach the different cases of the specification.
#[test]
fn plans_reach_every_result_and_every_end() {
    let mut reached: BTreeSet<String> = BTreeSet::new();
    for seed in 0..3_000 {
        // A later plan may reach the missing results.
        if seed >= u64::from(cases(500)) && reached.len() >= ALL.len() {
            break;
        }
        let mut rng = fastrand::Rng::with_seed(seed);
        let bytes: Vec<u8> = (0..4 * rng.usize(..MOST)).map(|_| rng.u8(..)).collect();
        reached.extend(play(&Plan::from_bytes(&bytes)).reached);
    }
    assert_eq!(reached, ALL.into_iter().map(str::to_owned).collect());
}
