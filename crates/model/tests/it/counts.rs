//! The counts of an observed scheduler, compared with a re-count, from seeds.

use crate::cases;
use ganger_model::{MOST, Plan, play_observed};
use ganger_sched::Observe;

/// Plays each plan twice, as all events must be the same with counts and without.
// pins: V5
#[test]
fn counts_are_those_of_a_re_count_and_change_nothing() {
    for seed in 0..cases(300).into() {
        println!("seed {seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        let bytes: Vec<u8> = (0..4 * rng.usize(..MOST)).map(|_| rng.u8(..)).collect();
        let plan = Plan::from_bytes(&bytes);
        let counted = play_observed(&plan, Observe::Histograms);
        let plain = play_observed(&plan, Observe::Off);
        assert_eq!(counted.report, plain.report, "seed {seed}");
    }
}
