//! Rounds of random stress until the time is over, with an account of every item after each.
//!
//! `GANGER_SOAK_SECONDS` says how long (default 1), `GANGER_STRESS_SEED` where to start. A failure
//! prints the seed of its round, which repeats this round first, as far as threads can be repeated.
//! `cargo xtask soak deque` runs it optimised and shows a line each second.
#![cfg(not(loom))]
#![allow(missing_docs)]

#[path = "support/soak/mod.rs"]
mod soak;
mod support;

use soak::plan::Plan;
use soak::tally::Tally;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};
use support::chance;

#[test]
fn every_item_ends_exactly_once() {
    let seconds = std::env::var("GANGER_SOAK_SECONDS").map_or(1, |s| s.parse().unwrap());
    let time = Duration::from_secs(seconds);
    let first = chance::seed();
    show(&format!("soak deque: {seconds} s, seed {first}"));
    let (mut seed, start, mut shown) = (first, Instant::now(), 0);
    let mut sum = Tally::default();
    loop {
        let plan = Plan::new(seed);
        match soak::run(&plan) {
            Ok(tally) => sum += tally,
            Err(report) => panic!(
                "round {} failed:\n{report}{plan:#?}\n\
                 Repeat it first: GANGER_STRESS_SEED={seed}",
                sum.rounds
            ),
        }
        seed = plan.next_seed();
        let passed = start.elapsed();
        if passed >= time {
            break;
        }
        if passed.as_secs() > shown {
            shown = passed.as_secs();
            show(&format!(
                "{shown:>5} s: {}; next {seed}",
                sum.describe(passed)
            ));
        }
    }
    let passed = start.elapsed();
    let (seconds, sum) = (passed.as_secs_f64(), sum.describe(passed));
    show(&format!(
        "soak deque: passed in {seconds:.1} s, seed {first}: {sum}"
    ));
}

/// On a terminal at once; elsewhere the test harness decides, which shows it with `--nocapture`.
fn show(line: &str) {
    let mut stdout = io::stdout();
    if stdout.is_terminal() {
        writeln!(stdout, "{line}").unwrap();
    } else {
        println!("{line}");
    }
}
