//! The measured durations of a scheduler, in the form of the API.

use super::nanos;
use crate::api::{Distribution, Distributions, OfType, WorkerTimes};
use hdrhistogram::Histogram;
use std::cmp::Reverse;

/// The number of types with a distribution of their own: the busiest.
const TYPES: usize = 64;

/// The name of the rest.
const OTHER: &str = "other";

pub(super) fn worker_times(times: ganger_sched::WorkerTimes) -> WorkerTimes {
    WorkerTimes {
        busy_ns: nanos(times.busy),
        searching_ns: nanos(times.searching),
        asleep_ns: nanos(times.asleep),
    }
}

/// Returns the distributions of a scheduler. O(types × buckets).
pub(super) fn distributions(all: &ganger_sched::Distributions) -> Distributions {
    Distributions {
        ready: distribution(&all.ready),
        step: distribution(&all.step),
        mail: distribution(&all.mail),
        timer: distribution(&all.timer),
        types: types(all),
    }
}

/// Returns the types with the most measured steps, in the order of their names, and the rest as one
/// type.
///
/// A worker measures every 64th step of any length: so types with many steps are measured often.
fn types(all: &ganger_sched::Distributions) -> Vec<OfType> {
    let mut types: Vec<_> = all.by_type.iter().collect();
    types.sort_unstable_by_key(|&(name, it)| (Reverse(it.step.len() + it.ready.len()), *name));
    let (busiest, rest) = types.split_at(TYPES.min(types.len()));
    let mut shown: Vec<_> = busiest.iter().map(|(name, it)| of_type(name, it)).collect();
    shown.sort_unstable_by(|a, b| a.type_name.cmp(&b.type_name));
    if let Some((&(_, first), more)) = rest.split_first() {
        let mut other = first.clone();
        for (_, it) in more {
            append(&mut other.ready, &it.ready);
            append(&mut other.step, &it.step);
        }
        shown.push(of_type(OTHER, &other));
    }
    shown
}

/// Appends a histogram to another. Both take values of any size.
fn append(to: &mut Histogram<u64>, more: &Histogram<u64>) {
    if let Err(error) = to.add(more) {
        unreachable!("a histogram of any range takes another one: {error}")
    }
}

fn of_type(name: &str, it: &ganger_sched::OfType) -> OfType {
    OfType {
        type_name: name.to_owned(),
        ready: distribution(&it.ready),
        step: distribution(&it.step),
    }
}

fn distribution(histogram: &Histogram<u64>) -> Distribution {
    let mut sum = 0_u64;
    let buckets = histogram.iter_recorded().map(|bucket| {
        let (bound, durations) = (bucket.value_iterated_to(), bucket.count_at_value());
        let middle = histogram.median_equivalent(bound);
        sum = sum.saturating_add(middle.saturating_mul(durations));
        (bound, durations)
    });
    let buckets = buckets.collect();
    Distribution {
        count: histogram.len(),
        sum_ns: sum,
        max_ns: histogram.max(),
        buckets,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ganger_proc_api::actor_fn;
    use ganger_sched::{Observe, Scheduler};

    fn some() -> ganger_sched::Distributions {
        let scheduler = Scheduler::builder().observe(Observe::Histograms).build();
        scheduler.unwrap().distributions().unwrap()
    }

    // pins: V10
    #[test]
    fn buckets_are_apart_and_have_all_durations() {
        let mut all = some();
        let durations = [0, 1, 1, 99, 300, 5_000, 5_010, 1 << 40];
        for it in durations {
            all.step.record(it).unwrap();
        }
        let shown = distributions(&all).step;
        assert_eq!(shown.count, durations.len() as u64);
        assert_eq!(
            shown.buckets.iter().map(|it| it.1).sum::<u64>(),
            shown.count
        );
        assert!(shown.buckets.is_sorted_by(|a, b| a.0 < b.0 && b.1 > 0));
        // Each duration is in the first bucket whose bound is not below it, exact to two digits.
        for it in durations {
            let bound = shown
                .buckets
                .iter()
                .find(|bucket| bucket.0 >= it)
                .unwrap()
                .0;
            assert!(bound - it <= it / 64, "{it} in {bound}");
        }
        let sum: u64 = durations.iter().sum();
        assert!(shown.sum_ns.abs_diff(sum) <= sum / 64, "{}", shown.sum_ns);
        assert!(shown.max_ns >= 1 << 40 && shown.max_ns <= (1 << 40) + (1 << 34));
        assert_eq!(distributions(&some()).step, Distribution::default());
    }

    // pins: V10
    #[test]
    fn the_busiest_types_are_shown_and_the_rest_as_one() {
        let mut all = some();
        for number in 0..100_u64 {
            let name: &'static str = Box::leak(format!("t{number:02}").into_boxed_str());
            let of = all.by_type.entry(name).or_default();
            of.step.record_n(5, number + 1).unwrap();
        }
        let shown = distributions(&all).types;
        let names = shown.iter().map(|it| &*it.type_name);
        let expected: Vec<_> = (36..100).map(|number| format!("t{number:02}")).collect();
        assert!(names.eq(expected.iter().map(|it| &**it).chain([OTHER])));
        assert_eq!(shown[64].step.count, (1..=36).sum::<u64>());
        assert_eq!(shown[0].step.count, 37);
    }

    // pins: V10
    #[test]
    fn a_worker_that_has_slept_says_so() {
        let scheduler = Scheduler::builder().observe(Observe::Counts).workers(1);
        let scheduler = scheduler.start().unwrap();
        let actor = scheduler.spawn(actor_fn(|_, (): (), out| {
            out.done(());
            Ok(())
        }));
        let actor = actor.unwrap();
        actor.send(()).unwrap();
        actor.wait();
        let times = scheduler.worker_times()[0];
        let shown = worker_times(times);
        assert!(shown.busy_ns > 0);
        assert_eq!(shown.asleep_ns, nanos(times.asleep));
        assert_eq!(shown.searching_ns, nanos(times.searching));
    }
}
