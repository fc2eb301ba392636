//! Pools, compared with their specification.

use crate::cases;
use ganger_model::{Job, PoolAct, PoolPlan, play_pool};
use ganger_supervise::{Overload, Routing};
use proptest::collection::vec;
use proptest::prelude::*;

fn plan() -> impl Strategy<Value = PoolPlan> {
    let routing = prop_oneof![
        2 => Just(Routing::Free),
        1 => Just(Routing::RoundRobin),
        1 => Just(Routing::Random),
        1 => Just(Routing::LeastLoaded),
    ];
    let overload = prop_oneof![
        Just(Overload::Wait),
        Just(Overload::RefuseNewest),
        Just(Overload::RefuseOldest),
    ];
    (
        1..4_usize,
        routing,
        0..4_usize,
        overload,
        any::<bool>(),
        0..3_u32,
    )
        .prop_map(
            |(workers, routing, most, overload, expires, retries)| PoolPlan {
                workers,
                routing,
                most,
                overload,
                expires,
                retries,
            },
        )
}

fn act() -> impl Strategy<Value = PoolAct> {
    let job = || {
        prop_oneof![
            4 => Just(Job::Works),
            1 => Just(Job::Fails),
            2 => (1..4_u32).prop_map(Job::Panics),
        ]
    };
    let key = proptest::option::weighted(0.2, 0..3_u8);
    prop_oneof![
        10 => (job(), key).prop_map(|(job, key)| PoolAct::Call(job, key)),
        3 => job().prop_map(PoolAct::Send),
        3 => (0..12_usize).prop_map(PoolAct::Leave),
        2 => Just(PoolAct::Wait),
        4 => Just(PoolAct::Suspend),
        2 => Just(PoolAct::Resume),
        1 => proptest::bool::weighted(0.2)
            .prop_map(|stops| if stops { PoolAct::Stop } else { PoolAct::Wait }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(300)))]

    // pins: W1, W2, W3, W4, W5
    #[test]
    fn each_job_has_the_one_answer(
        seed in any::<u64>(),
        plan in plan(),
        acts in vec(act(), 0..30),
    ) {
        play_pool(seed, &plan, &acts);
    }
}
