//! Three nodes over a twin with faults: the promises of sessions hold in
//! each case. Nodes send messages and monitor processes of each other, which end at any time.

mod account;
mod monitors;
mod world;

use world::{Plan, World};

/// How many seeds a run has, unless the environment says it.
const SEEDS: u64 = 500;

fn seeds() -> u64 {
    let seeds = std::env::var("GANGER_SEEDS").ok();
    seeds.and_then(|it| it.parse().ok()).unwrap_or(SEEDS)
}

// pins: B1, B2, B3, B4, B5
// case: 1, 4, 24, 25, 27, 28, 31
#[test]
fn messages_come_once_in_order_or_their_session_ends() {
    let mut all = account::Totals::default();
    for seed in 0..seeds() {
        all += World::run(seed, Plan::draw);
    }
    // Without losses, or without deliveries, the test would try little.
    println!("{all:?}");
    assert!(all.delivered > all.lost && all.lost > 0, "{all:?}");
    assert!(all.ends > seeds() && all.told_by_exit > 0, "{all:?}");
    assert!(all.told_by_end > 0 && all.resent > 0, "{all:?}");
}

// pins: B3
#[test]
fn without_faults_no_session_ends_and_no_message_is_lost() {
    let all = World::run(1, |_| Plan::calm());
    assert!(all.delivered > 1000, "{all:?}");
    assert_eq!((all.ends, all.lost, all.resent), (0, 0, 0), "{all:?}");
}
