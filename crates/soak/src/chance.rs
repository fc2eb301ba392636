//! Chance from a seed, which repeats a run as far as threads can be repeated.

use crate::environment;
use fastrand::Rng;
use std::thread;

/// Returns the seed of `GANGER_STRESS_SEED`, or a random seed.
///
/// # Panics
/// If the variable is not a number.
#[must_use]
pub fn seed() -> u64 {
    environment::number(environment::SEED).unwrap_or_else(|| fastrand::u64(..))
}

/// Returns the seed of the next round.
#[must_use]
pub fn next_seed(seed: u64) -> u64 {
    Rng::with_seed(seed).u64(..)
}

/// Returns true in a random one of `times` calls; never, if `times` is 0.
pub fn one_in(random: &mut Rng, times: u32) -> bool {
    times > 0 && random.u32(0..times) == 0
}

/// Picks one of `choices`.
///
/// # Panics
/// If `choices` is empty.
pub fn pick<'a, T>(random: &mut Rng, choices: &'a [T]) -> &'a T {
    &choices[random.usize(0..choices.len())]
}

/// Lets other threads run, now and then: threads on a shared core meet nowhere else.
pub fn yield_at_random(random: &mut Rng, times: u32) {
    if one_in(random, times) {
        thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_always_and_in_between() {
        let mut random = Rng::with_seed(1);
        let mut happens = |times| (0..1_000).filter(|_| one_in(&mut random, times)).count();
        assert_eq!((happens(0), happens(1)), (0, 1_000));
        assert!((1..500).contains(&happens(10)));
    }

    #[test]
    fn every_choice_is_made_sometime() {
        let mut random = Rng::with_seed(1);
        let mut picks: Vec<_> = (0..100).map(|_| *pick(&mut random, &[1, 2, 3])).collect();
        picks.sort_unstable();
        picks.dedup();
        assert_eq!(picks, [1, 2, 3]);
    }

    #[test]
    fn seeds_lead_on_and_are_repeated() {
        let seeds = |first| std::iter::successors(Some(first), |seed| Some(next_seed(*seed)));
        let some: Vec<_> = seeds(1).take(100).collect();
        let mut different = some.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), some.len());
        assert!(seeds(some[50]).take(50).eq(some[50..].iter().copied()));
    }
}
