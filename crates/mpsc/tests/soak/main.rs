//! Rounds of random stress until the time is over, with an account of every item after each round.
//!
//! `GANGER_SOAK_SECONDS` sets the duration (default 1), `GANGER_STRESS_SEED` the first seed. A
//! failure prints the seed of its round; with this seed the round runs first, as far as threads can
//! be repeated. `cargo xtask soak mpsc` runs it optimised and shows a line each second.
#![cfg(not(ganger_loom))]
#![allow(missing_docs)]

mod round;

use ganger_soak::rounds;

#[test]
fn every_item_ends_exactly_once() {
    rounds::run("mpsc", round::run);
}
