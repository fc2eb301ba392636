//! The workloads of timers.

use super::{Ganger, Hashed, Sorted, Timers, Tokio};
use crate::contest::cpu::Clocks;
use crate::contest::{Contest, Run, nanoseconds};
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;

/// Returns the workloads with all peers, ready to run. `quick` makes them small: enough to see that
/// they work, too little to say how fast.
#[must_use]
pub fn contests(quick: bool) -> Vec<Contest> {
    let (rounds, crowd) = if quick {
        (1_000, 10_000)
    } else {
        (1 << 20, 1_000_000)
    };
    let mut contests = Vec::new();
    for pending in [0, crowd] {
        let name = format!("insert+cancel, {pending} pending");
        contests.push(contest(name, &Cancel { pending, rounds }));
    }
    for seconds in [1, 60] {
        let name = format!("{crowd} timers over {seconds} s");
        contests.push(contest(name, &Fire { crowd, seconds }));
    }
    contests.push(longest(crowd));
    contests
}

/// A workload for any timers.
trait Workload {
    const METRICS: &'static [&'static str];

    fn prepare<T: Timers>(&self) -> Run;
}

fn contest<W: Workload>(name: String, workload: &W) -> Contest {
    let entrants = vec![
        (Ganger::NAME, workload.prepare::<Ganger>()),
        (Tokio::NAME, workload.prepare::<Tokio>()),
        (Hashed::NAME, workload.prepare::<Hashed>()),
        (Sorted::NAME, workload.prepare::<Sorted>()),
    ];
    Contest::new(name, W::METRICS, entrants)
}

/// Returns `count` deadlines, evenly over a time that begins at `first`, in no order.
fn deadlines(count: u64, first: u64, span: u64) -> Vec<u64> {
    let of = |number: u64| first + number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % span;
    (0..count).map(of).collect()
}

/// Timers that are cancelled at once, with other timers that wait for a minute.
struct Cancel {
    pending: u64,
    rounds: u64,
}

impl Workload for Cancel {
    const METRICS: &'static [&'static str] = &["ns"];

    fn prepare<T: Timers>(&self) -> Run {
        let pending = deadlines(self.pending, 30 * SECOND, 60 * SECOND);
        let rounds = deadlines(self.rounds, SECOND, 30 * SECOND);
        Box::new(move || {
            let mut timers = T::new();
            timers.insert(&pending);
            let clocks = Clocks::start();
            timers.insert_and_cancel(&rounds);
            vec![nanoseconds(clocks.thread(), rounds.len() as u64)]
        })
    }
}

/// Timers that all fire. If time is the clock's, their first second is for their insertion.
struct Fire {
    crowd: u64,
    seconds: u64,
}

impl Workload for Fire {
    const METRICS: &'static [&'static str] = &["ns to insert", "ns to fire"];

    fn prepare<T: Timers>(&self) -> Run {
        let span = self.seconds * SECOND;
        let deadlines = deadlines(self.crowd, SECOND / 2, span);
        Box::new(move || {
            let crowd = deadlines.len() as u64;
            let mut timers = T::new();
            let clocks = Clocks::start();
            timers.insert(&deadlines);
            let insert = nanoseconds(clocks.thread(), crowd);
            let clocks = Clocks::start();
            let fired = timers.fire(SECOND / 2 + span + SECOND / 10);
            let fire = nanoseconds(clocks.thread(), crowd);
            let Some(fired) = fired else {
                return vec![insert, f64::NAN];
            };
            assert_eq!(fired, crowd);
            vec![insert, fire]
        })
    }
}

/// The longest call with all timers in a single slot and due at once.
fn longest(crowd: u64) -> Contest {
    let with = |most| -> Run {
        let deadlines = deadlines(crowd, 1 << 40, 1 << 30);
        Box::new(move || {
            let mut wheel = Ganger::new();
            wheel.insert(&deadlines);
            let mut longest = Duration::ZERO;
            let mut fired = 0;
            loop {
                let clocks = Clocks::start();
                let more = wheel.0.advance(1 << 41, most, |it| fired += it);
                longest = longest.max(clocks.thread());
                if !more {
                    break;
                }
            }
            assert_eq!(fired, crowd);
            vec![nanoseconds(longest, 1_000)]
        })
    };
    let name = format!("longest call, {crowd} timers of one slot due, most 1024");
    let entrants = vec![(Ganger::NAME, with(1_024))];
    Contest::new(name, &["us"], entrants).and("most without a bound", with(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_works_with_all_timers() {
        for contest in contests(true) {
            let outcome = contest.run(1);
            for row in &outcome.rows {
                for samples in &row.samples {
                    let is_sound = |&x: &f64| x >= 0.0 || x.is_nan() && row.name == Tokio::NAME;
                    assert!(samples.iter().all(is_sound), "{}", outcome.name);
                }
            }
        }
    }
}
