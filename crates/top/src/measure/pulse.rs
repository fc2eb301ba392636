//! The head: a scheduler between two snapshots.

use ganger_observe::api::{Alarm, Distribution, LongStep, Scheduler};
use serde::Serialize;

/// A scheduler, and its rates since the snapshot before.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Pulse {
    pub(crate) number: u64,
    pub(crate) host: String,
    pub(crate) node: Option<String>,
    pub(crate) is_started: bool,
    pub(crate) is_stopping: bool,
    pub(crate) uptime_ns: u64,
    pub(crate) observes: String,
    pub(crate) live: u64,
    /// In all queues.
    pub(crate) ready_now: u64,
    /// In the global queue.
    pub(crate) queued: u64,
    pub(crate) workers: u64,
    pub(crate) spares: u64,
    pub(crate) relieved: u64,
    pub(crate) sleeping: u64,
    pub(crate) searching: u64,
    /// The busy share of each worker; empty without counts.
    pub(crate) busy: Vec<f64>,
    pub(crate) timers_pending: u64,
    /// None of the first snapshot.
    pub(crate) rates: Option<Rates>,
    pub(crate) ready: Option<Quantiles>,
    pub(crate) step: Option<Quantiles>,
    /// Since the start.
    pub(crate) long_step_count: u64,
    pub(crate) longest_step_ns: u64,
    #[serde(skip)]
    pub(crate) long_steps: Vec<LongStep>,
    #[serde(skip)]
    pub(crate) alarms: Vec<Alarm>,
    pub(crate) alarm_count: usize,
    pub(crate) severe_count: usize,
}

/// For each second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Rates {
    pub(crate) turns: f64,
    pub(crate) steps: f64,
    /// None without counts.
    pub(crate) messages: Option<f64>,
    pub(crate) timers: f64,
    pub(crate) letters: f64,
    pub(crate) started: f64,
    pub(crate) failed: f64,
}

/// Of the durations between two snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Quantiles {
    pub(crate) p50_ns: u64,
    pub(crate) p99_ns: u64,
}

impl Pulse {
    /// Measures a scheduler since the snapshot before, if any. A scheduler younger than its own
    /// snapshot before is a new scheduler.
    pub(crate) fn of(now: &Scheduler, before: Option<&Scheduler>) -> Self {
        let before = before.filter(|it| {
            (it.number, &it.host) == (now.number, &now.host) && it.uptime_ns < now.uptime_ns
        });
        let quantiles = |of: fn(&Scheduler) -> Option<&Distribution>| {
            let all = of(now)?;
            let since = before.and_then(of).map(|it| all.since(it));
            Quantiles::of(since.as_ref().unwrap_or(all))
        };
        Self {
            number: now.number,
            host: now.host.clone(),
            node: now.node.clone(),
            is_started: now.is_started,
            is_stopping: now.is_stopping,
            uptime_ns: now.uptime_ns,
            observes: now.observes.clone(),
            live: now.live,
            ready_now: now.ready,
            queued: now.global_queue,
            workers: now.threads.workers,
            spares: now.threads.spares,
            relieved: now.threads.relieved,
            sleeping: now.threads.sleeping,
            searching: now.threads.searching,
            busy: busy(now, before),
            timers_pending: now.timers.pending,
            rates: before.map(|before| Rates::of(now, before)),
            ready: quantiles(|it| it.distributions.as_ref().map(|it| &it.ready)),
            step: quantiles(|it| it.distributions.as_ref().map(|it| &it.step)),
            long_step_count: now.total.long_steps + now.total.blocked_steps,
            longest_step_ns: now.longest_step_ns,
            long_steps: now.long_steps.clone(),
            alarms: now.alarms.clone(),
            alarm_count: now.alarms.len(),
            severe_count: now.alarms.iter().filter(|it| it.is_severe).count(),
        }
    }
}

/// Returns the busy shares since the snapshot before, or since the start.
fn busy(now: &Scheduler, before: Option<&Scheduler>) -> Vec<f64> {
    let old_uptime = before.map_or(0, |it| it.uptime_ns);
    let time = now.uptime_ns.saturating_sub(old_uptime).max(1) as f64;
    let each = now.worker_times.iter().enumerate();
    let share = |(place, times): (usize, &ganger_observe::api::WorkerTimes)| {
        let old = before.and_then(|it| it.worker_times.get(place));
        let old = old.map_or(0, |it| it.busy_ns);
        (times.busy_ns.saturating_sub(old) as f64 / time).min(1.0)
    };
    each.map(share).collect()
}

impl Rates {
    fn of(now: &Scheduler, before: &Scheduler) -> Self {
        let seconds = (now.uptime_ns - before.uptime_ns) as f64 / 1e9;
        let rate = |of: fn(&Scheduler) -> u64| of(now).saturating_sub(of(before)) as f64 / seconds;
        Self {
            turns: rate(|it| it.total.turns),
            steps: rate(|it| it.total.steps),
            messages: (now.events.zip(before.events))
                .map(|(now, before)| now.saturating_sub(before) as f64 / seconds),
            timers: rate(|it| it.timers.fired),
            letters: rate(|it| it.total.undelivered + it.timers.refused),
            started: rate(|it| it.total.started),
            failed: rate(|it| it.total.failed + it.total.panicked),
        }
    }
}

impl Quantiles {
    /// Returns the quantiles; none, where nothing was measured.
    fn of(distribution: &Distribution) -> Option<Self> {
        let it = Self {
            p50_ns: distribution.quantile(0.5),
            p99_ns: distribution.quantile(0.99),
        };
        (!distribution.buckets.is_empty()).then_some(it)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{Demo, Source as _};
    use std::time::Duration;

    fn shop(seconds: u64) -> Scheduler {
        let demo = Demo::by(move || Duration::from_secs(seconds));
        demo.snapshot().unwrap().schedulers.remove(0)
    }

    #[test]
    fn rates_are_differences_of_two_snapshots() {
        let (before, mut now) = (shop(60), shop(60));
        now.uptime_ns += 2_000_000_000;
        now.total.steps += 5_000;
        now.total.panicked += 1;
        now.events = before.events.map(|it| it + 500);
        now.timers.refused += 4;
        now.worker_times[0].busy_ns += 1_000_000_000;
        let buckets = &mut now.distributions.as_mut().unwrap().step.buckets;
        buckets[0].1 += 98;
        buckets[2].1 += 2;
        let (low, high) = (buckets[0].0, buckets[2].0);
        let pulse = Pulse::of(&now, Some(&before));
        let rates = pulse.rates.unwrap();
        assert_eq!(
            (rates.steps, rates.failed, rates.letters),
            (2_500.0, 0.5, 2.0)
        );
        assert_eq!(rates.messages, Some(250.0));
        assert_eq!(pulse.busy, [0.5, 0.0, 0.0, 0.0]);
        let quantiles = pulse.step.unwrap();
        assert_eq!((quantiles.p50_ns, quantiles.p99_ns), (low, high));
        assert_eq!(pulse.ready, None, "nothing was measured in between");
    }

    #[test]
    fn a_first_snapshot_and_a_program_that_has_begun_anew_have_no_rates() {
        let first = Pulse::of(&shop(60), None);
        assert!(first.rates.is_none() && first.ready.is_some());
        assert!((first.busy[0] - 0.97).abs() < 0.01, "{:?}", first.busy);
        let restarted = Pulse::of(&shop(10), Some(&shop(60)));
        assert_eq!(restarted, Pulse::of(&shop(10), None));
    }
}
