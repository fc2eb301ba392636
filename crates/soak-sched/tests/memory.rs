//! The soak fails when it loses memory. The allocator counts for the whole program, so no other
//! test runs in this program.

use ganger_soak_sched::account::Totals;
use ganger_soak_sched::round::Tally;
use ganger_soak_sched::{Options, Watch, quiet_panics, soak};
use std::sync::Arc;

/// Soaks by rounds of counts alone, which leak `bytes` for each thousand processes.
fn leaks(bytes: u64) -> Result<(), String> {
    const ROUNDS: u32 = 80;
    let watch = Arc::new(Watch::default());
    let mut rounds = 0;
    let round = |_, watch: &Watch| {
        rounds += 1;
        if rounds == ROUNDS {
            watch.interrupt();
        }
        let account = Totals {
            started: 2_000_000,
            ..Totals::default()
        };
        Ok(Tally {
            account,
            ..Tally::default()
        })
    };
    let leak = Options {
        leak: bytes,
        minutes: 1.0,
        seconds: Some(600.0),
        seed: Some(1),
        patience: 600.0,
        round_limit: 600.0,
        json: None,
    };
    let summary = soak(&leak, &watch, round)?;
    assert_eq!(summary.memory.grows, Some(false), "{:?}", summary.memory);
    Ok(())
}

#[test]
fn a_hundred_bytes_a_thousand_processes_make_it_fail() {
    quiet_panics();
    leaks(0).unwrap();
    let failure = leaks(100).unwrap_err();
    assert!(failure.contains("memory grows without an end"), "{failure}");
}
