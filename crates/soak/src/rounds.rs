//! Rounds until the time is over.

use crate::{chance, environment};
use std::fmt::Debug;
use std::io::{self, IsTerminal, Write};
use std::ops::AddAssign;
use std::time::{Duration, Instant};

/// The plan of a round. A failure shows the whole plan.
pub trait Plan: Debug {
    /// Draws the whole plan from the seed.
    fn new(seed: u64) -> Self;
}

/// The counts of a round, or of a whole soak.
pub trait Tally: Default + AddAssign {
    /// Describes the work of `time` in a line.
    fn describe(&self, time: Duration) -> String;
}

/// Runs at least one round, and more until `GANGER_SOAK_SECONDS` have passed. Each second it prints
/// a line with the seed of the next round: a round that ends the process can be repeated from
/// there.
///
/// # Panics
/// If a round returns an error. The text has the error, the plan, and the seed of a soak
/// that repeats the round first.
pub fn run<P: Plan, T: Tally>(name: &str, round: impl FnMut(&P) -> Result<T, String>) {
    let seconds = environment::number(environment::SECONDS).unwrap_or(1);
    let start = Instant::now();
    let clock = || start.elapsed();
    run_for(name, seconds, chance::seed(), clock, show, round);
}

/// Runs rounds for `seconds`. The clock says how much time has passed since the beginning.
fn run_for<P: Plan, T: Tally>(
    name: &str,
    seconds: u64,
    first: u64,
    clock: impl Fn() -> Duration,
    mut show: impl FnMut(&str),
    mut round: impl FnMut(&P) -> Result<T, String>,
) {
    let time = Duration::from_secs(seconds);
    show(&format!("soak {name}: {seconds} s, seed {first}"));
    let (mut seed, mut shown) = (first, 0);
    let (mut sum, mut rounds) = (T::default(), 0_u64);
    loop {
        let plan = P::new(seed);
        match round(&plan) {
            Ok(tally) => sum += tally,
            Err(report) => panic!(
                "round {rounds} failed:\n{report}{plan:#?}\n\
                 Repeat it first: {}={seed}",
                environment::SEED
            ),
        }
        rounds += 1;
        seed = chance::next_seed(seed);
        let passed = clock();
        if passed >= time {
            break;
        }
        if passed.as_secs() > shown {
            shown = passed.as_secs();
            let sum = sum.describe(passed);
            show(&format!(
                "{shown:>5} s: {rounds} rounds, {sum}; next {seed}"
            ));
        }
    }
    let passed = clock();
    let (seconds, sum) = (passed.as_secs_f64(), sum.describe(passed));
    show(&format!(
        "soak {name}: passed in {seconds:.1} s, seed {first}: {rounds} rounds, {sum}"
    ));
}

/// Shows a line: on a terminal at once; elsewhere by the test harness, which shows it with
/// `--nocapture`.
fn show(line: &str) {
    let mut stdout = io::stdout();
    // A failed write is no reason to stop.
    if stdout.is_terminal() && writeln!(stdout, "{line}").is_ok() {
        return;
    }
    println!("{line}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[derive(Debug)]
    struct Seed(u64);

    impl Plan for Seed {
        fn new(seed: u64) -> Self {
            Self(seed)
        }
    }

    #[derive(Default)]
    struct Items(usize);

    impl AddAssign for Items {
        fn add_assign(&mut self, other: Self) {
            self.0 += other.0;
        }
    }

    impl Tally for Items {
        fn describe(&self, _time: Duration) -> String {
            format!("{} items", self.0)
        }
    }

    #[test]
    fn no_time_is_one_round() {
        let (mut seeds, mut lines) = (Vec::new(), Vec::new());
        let show = |line: &str| lines.push(line.to_owned());
        let clock = || Duration::from_millis(1_250);
        run_for("a", 0, 7, clock, show, |plan: &Seed| {
            seeds.push(plan.0);
            Ok(Items(3))
        });
        assert_eq!(seeds, [7]);
        let passed = "soak a: passed in 1.2 s, seed 7: 1 rounds, 3 items";
        assert_eq!(lines, ["soak a: 0 s, seed 7", passed]);
    }

    #[test]
    fn a_line_each_second_says_which_seed_is_next() {
        let (mut seeds, mut lines) = (Vec::new(), Vec::new());
        let show = |line: &str| lines.push(line.to_owned());
        let time = Cell::new(Duration::ZERO);
        run_for(
            "a",
            2,
            7,
            || time.get(),
            show,
            |plan: &Seed| {
                seeds.push(plan.0);
                time.update(|time| time + Duration::from_millis(400));
                Ok(Items(10))
            },
        );
        assert_eq!(seeds.len(), 5);
        assert!(
            seeds
                .windows(2)
                .all(|two| two[1] == chance::next_seed(two[0]))
        );
        let first = format!("    1 s: 3 rounds, 30 items; next {}", seeds[3]);
        let passed = "soak a: passed in 2.0 s, seed 7: 5 rounds, 50 items";
        assert_eq!(lines[1..], [&first, passed]);
    }

    #[test]
    fn a_failure_says_what_is_wrong_in_which_plan_and_how_to_repeat_it() {
        let mut rounds = 0;
        let round = |_: &Seed| {
            rounds += 1;
            match rounds {
                3 => Err("two are missing\n".to_owned()),
                _ => Ok(Items(1)),
            }
        };
        let soak = AssertUnwindSafe(|| run_for("a", 60, 7, || Duration::ZERO, |_| {}, round));
        let panic = catch_unwind(soak).unwrap_err();
        let seed = chance::next_seed(chance::next_seed(7));
        let expected = format!(
            "round 2 failed:\ntwo are missing\nSeed(\n    {seed},\n)\n\
             Repeat it first: GANGER_STRESS_SEED={seed}"
        );
        assert_eq!(crate::message(&*panic), expected);
    }
}
