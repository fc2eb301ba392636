//! Chance that a seed repeats, as far as threads can be repeated.

use std::thread;

/// The seed that `GANGER_STRESS_SEED` asks for, or any.
pub(crate) fn seed() -> u64 {
    std::env::var("GANGER_STRESS_SEED").map_or_else(|_| fastrand::u64(..), |s| s.parse().unwrap())
}

/// Whether something that happens once in `times` happens now; never, if that is 0.
pub(crate) fn one_in(random: &mut fastrand::Rng, times: u32) -> bool {
    times > 0 && random.u32(0..times) == 0
}

/// Lets the others run, now and then: threads that share a core meet nowhere else.
pub(crate) fn yield_at_random(random: &mut fastrand::Rng, times: u32) {
    if one_in(random, times) {
        thread::yield_now();
    }
}
