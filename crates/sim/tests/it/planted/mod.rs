//! The size of a failed run after it has been made simpler.
//!
//! The test measures failed runs of at least [`LONG`] moves, from the first seeds that give
//! [`RUNS`] of them; `GANGER_SEEDS` sets another number of runs. The failed run and the
//! simpler run are counted in moves, as the report gives them. The average over the runs of each
//! program is at most a fifth.

mod programs;

use ganger_sim::{FailedRun, Faults, Rt, Sim};
use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The fewest moves of a run that is worth it.
const LONG: u64 = 250;

const RUNS: usize = 4;

/// Returns the moves of the failing run and of the simpler run, from the report.
fn moves(failed: &FailedRun) -> (u64, u64) {
    let text = failed.to_string();
    let (_, numbers) = text.split_once("fails like this, of ").unwrap();
    let (numbers, _) = numbers.split_once(':').unwrap();
    let (left, before) = numbers.split_once(" moves instead of ").unwrap();
    (before.parse().unwrap(), left.parse().unwrap())
}

/// Checks the simpler runs: at most a fifth of the moves is left, on average, and they fail like
/// the long runs.
fn shrinks(program: fn(&Rt<'_>), why: &str) {
    let runs = env::var("GANGER_SEEDS").ok().and_then(|it| it.parse().ok());
    let (runs, mut shares, mut seed) = (runs.unwrap_or(RUNS), Vec::new(), 0);
    while shares.len() < runs {
        let sim = Sim::new(seed).faults(Faults::some());
        let failed = sim.try_seeds(10_000, program).unwrap_err();
        seed = failed.seed + 1;
        let (before, left) = moves(&failed);
        assert!(failed.to_string().contains(why), "{failed}");
        if before >= LONG {
            println!("seed {}: {before} moves, {left} are left", failed.seed);
            shares.push(left as f64 / before as f64);
            let again = || drop(sim.replay(&failed.decisions, program));
            let panic = catch_unwind(AssertUnwindSafe(again)).unwrap_err();
            let again = panic.downcast_ref::<String>().unwrap();
            assert!(again.contains(why), "{again}");
        }
    }
    let average = shares.iter().sum::<f64>() / shares.len() as f64;
    assert!(average <= 0.2, "{average:.2} is left of {shares:.2?}");
}

#[test]
fn an_update_that_is_lost_is_found_and_shrinks_to_a_fifth() {
    shrinks(programs::lost_update, "a raise is lost");
}

#[test]
fn a_reply_that_is_lost_is_found_and_shrinks_to_a_fifth() {
    shrinks(programs::lost_reply, "there is no answer");
}

#[test]
fn a_circle_of_locks_is_found_and_shrinks_to_a_fifth() {
    shrinks(
        programs::lock_order,
        "has not ended, and nothing moves any more",
    );
}

#[test]
fn a_shutdown_in_the_wrong_order_is_found_and_shrinks_to_a_fifth() {
    shrinks(programs::shutdown, "lines are lost");
}

#[test]
fn an_eviction_between_two_messages_is_found_and_shrinks_to_a_fifth() {
    shrinks(programs::eviction, "a purchase is lost");
}

#[test]
fn a_room_with_two_guests_is_found_and_shrinks_to_a_fifth() {
    shrinks(programs::two_in_a_room, "two guests in one room");
}
