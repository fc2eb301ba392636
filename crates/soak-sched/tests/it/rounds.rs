//! Rounds, and the end of a soak with a failing round.

use ganger_soak_sched::round::{self, Tally};
use ganger_soak_sched::summary::Outcome;
use ganger_soak_sched::{Options, Watch, quiet_panics, soak};
use std::path::PathBuf;
use std::sync::Arc;

fn options(seconds: f64, json: Option<PathBuf>) -> Options {
    Options {
        minutes: 1.0,
        seconds: Some(seconds),
        seed: Some(1),
        patience: 600.0,
        round_limit: 600.0,
        leak: 0,
        json,
    }
}

// pins: G1, G2, G8, P1, P2, P4, P6, P7, P8, P9, P10, P11, P12, R2, R4, D1, D2, D4
#[test]
fn everything_adds_up_in_the_first_rounds() {
    quiet_panics();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("summary.json");
    let watch = Arc::new(Watch::default());
    let mut rounds = 0;
    let summary = soak(&options(60.0, Some(path.clone())), &watch, |seed, watch| {
        rounds += 1;
        if rounds == 8 {
            // Not by the clock: the number of rounds in a time depends on the machine.
            watch.interrupt();
        }
        round::run(seed, watch)
    });
    let summary = summary.unwrap();
    assert_eq!(
        (summary.outcome, summary.tally.rounds),
        (Outcome::Interrupted, 8)
    );
    assert!(summary.tally.account.started > 100 && summary.tally.steps > 1_000);
    let written: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(written["outcome"], "interrupted");
    assert_eq!(written["account"]["started"], summary.tally.account.started);
    assert_eq!(written["seed"], 1);
}

#[test]
fn a_round_that_goes_wrong_is_told_with_its_seed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("summary.json");
    let watch = Arc::new(Watch::default());
    let mut seeds = Vec::new();
    let error = soak(&options(60.0, Some(path.clone())), &watch, |seed, _| {
        seeds.push(seed);
        match seeds.len() {
            3 => Err("lost = undelivered: 1, 0\n".to_owned()),
            _ => Ok(Tally::default()),
        }
    });
    let expected = format!(
        "lost = undelivered: 1, 0\nRepeat it first: cargo xtask soak sched --seed {}",
        seeds[2]
    );
    assert_eq!(error.unwrap_err(), expected);
    let written: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(written["outcome"], "failed");
    assert_eq!(written["next_seed"], seeds[2]);
    assert_eq!(written["failure"], "lost = undelivered: 1, 0\n");
}

#[test]
fn it_ends_when_its_time_is_over() {
    let watch = Arc::new(Watch::default());
    let round = |_, _: &Watch| Ok(Tally::default());
    let summary = soak(&options(0.2, None), &watch, round).unwrap();
    assert_eq!(summary.outcome, Outcome::Passed);
    assert!(summary.seconds >= 0.2);
    assert_eq!(summary.memory.grows, None);
}
