//! Tasks that send no messages.

use crate::whole::gate::Gate;
use crate::whole::turns::{Race, Stuck};
use tokio::task::yield_now;

/// Runs once.
pub(super) async fn hit(gate: &'static Gate) {
    gate.hit();
}

/// Continues this many times.
pub(super) async fn step(each: u64, gate: &'static Gate) {
    for _ in 0..each {
        yield_now().await;
    }
    gate.hit();
}

/// Blocks its thread in each turn.
pub(super) async fn block(stuck: &'static Stuck, gate: &'static Gate) {
    while stuck.turn() {
        yield_now().await;
    }
    gate.hit();
}

/// Runs a lap a turn.
pub(super) async fn race(race: &'static Race, gate: &'static Gate) {
    let mut laps = 0;
    while race.lap() {
        laps += 1;
        yield_now().await;
    }
    race.finish(laps);
    gate.hit();
}
