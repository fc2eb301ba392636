//! The values of all alarms at a look.

use super::levels::Growth;
use crate::observer::Observer;
use ganger_proc_api::Pid;
use ganger_sched::{Distributions, Handle, WorkerTimes};
use std::collections::HashMap;
use std::time::Duration;

/// The shortest mailbox whose growth is followed.
const SHORTEST: u64 = 100;

/// The most mailboxes followed at a time.
const MAILBOXES: usize = 10_000;

/// The most types followed at a time.
const TYPES: usize = 10_000;

/// The state at the look before.
#[derive(Debug, Default)]
pub(super) struct Before {
    at: Duration,
    long_steps: u64,
    undelivered: u64,
    failed: u64,
    times: Vec<WorkerTimes>,
    distributions: Option<Distributions>,
    mailboxes: Growth<Pid>,
    types: Growth<&'static str>,
    /// Whether there was a look before.
    is_there: bool,
}

/// The values of a look; none where the scheduler neither counts nor measures them.
#[derive(Debug, Default)]
pub(super) struct Sample {
    pub(super) mailboxes: HashMap<Pid, u64>,
    pub(super) growths: HashMap<Pid, u64>,
    pub(super) types: HashMap<&'static str, u64>,
    /// Steps that kept processes waiting, and were noticed since the look before or are not over.
    pub(super) long_steps: u64,
    /// Of all workers together, in hundredths of their time.
    pub(super) busy: Option<u64>,
    /// In hundredths of the limit.
    pub(super) processes: Option<u64>,
    /// The latest timer since the look before, in milliseconds.
    pub(super) lateness: Option<u64>,
    /// A second.
    pub(super) undelivered: u64,
    /// Failures and panics a second.
    pub(super) failed: u64,
    /// The part of the lease's time that has passed, in hundredths.
    pub(super) lease: Option<u64>,
}

impl Sample {
    /// Looks at a scheduler, and goes through its processes at the observer's pace. The first look
    /// has no rates.
    pub(super) fn take(observer: &Observer, before: &mut Before) -> Self {
        let handle = observer.handle();
        let mut sample = Self::default();
        let mut mailboxes = HashMap::new();
        let mut types = HashMap::new();
        observer.each(|process| {
            let is_known = types.len() < TYPES || types.contains_key(process.type_name());
            if is_known {
                *types.entry(process.type_name()).or_default() += 1;
            }
            let waiting = process.counts().map_or(0, |counts| counts.waiting);
            if waiting >= SHORTEST && mailboxes.len() < MAILBOXES {
                mailboxes.insert(process.pid(), waiting);
            }
        });
        sample.growths = before.mailboxes.look(&mailboxes);
        sample.types = before.types.look(&types);
        sample.mailboxes = mailboxes;

        let (stats, now) = (
            handle.stats(),
            Duration::from_nanos(handle.now().as_nanos()),
        );
        let total = &stats.total;
        let since = now.saturating_sub(before.at);
        let long_steps = total.blocked_steps + total.long_steps;
        let failed = total.failed + total.panicked;
        let times = handle.worker_times();
        let distributions = handle.distributions();
        if before.is_there {
            let a_second = |new: u64, old: u64| {
                let count = u128::from(new.saturating_sub(old));
                let rate = count * 1_000_000_000 / since.as_nanos().max(1);
                u64::try_from(rate).unwrap_or(u64::MAX)
            };
            sample.undelivered = a_second(total.undelivered, before.undelivered);
            sample.failed = a_second(failed, before.failed);
            sample.long_steps = long_steps.saturating_sub(before.long_steps);
            sample.busy = busy(&times, &before.times);
            let both = distributions.as_ref().zip(before.distributions.as_ref());
            sample.lateness = both.map(|(new, old)| latest(new, old));
        }
        let running = handle.long_steps().into_iter().filter(|it| !it.is_over);
        sample.long_steps = sample.long_steps.max(running.count() as u64);
        sample.processes = handle.max_processes().map(|most| {
            let share = 100 * stats.live as u128 / (most.max(1) as u128);
            u64::try_from(share).unwrap_or(u64::MAX)
        });
        sample.lease = lease(handle);
        (before.at, before.is_there) = (now, true);
        (before.long_steps, before.failed) = (long_steps, failed);
        before.undelivered = total.undelivered;
        (before.times, before.distributions) = (times, distributions);
        sample
    }
}

/// Returns the part of the lease's time that has passed, in hundredths, where the scheduler is a
/// node with a lease.
#[cfg(feature = "cluster")]
fn lease(handle: &Handle) -> Option<u64> {
    let lease = ganger_cluster::Cluster::of(handle)?.lease()?;
    let passed = lease.whole.saturating_sub(lease.left);
    let share = (100 * passed.as_nanos()).checked_div(lease.whole.as_nanos())?;
    u64::try_from(share).ok()
}

#[cfg(not(feature = "cluster"))]
fn lease(_: &Handle) -> Option<u64> {
    None
}

/// Returns the share of all workers that was busy, in hundredths; none where no time has passed.
fn busy(new: &[WorkerTimes], old: &[WorkerTimes]) -> Option<u64> {
    let sum = |all: &[WorkerTimes]| {
        let sums = all
            .iter()
            .map(|it| (it.busy, it.busy + it.searching + it.asleep));
        sums.fold((Duration::ZERO, Duration::ZERO), |a, b| {
            (a.0 + b.0, a.1 + b.1)
        })
    };
    let ((busy, all), (old_busy, old_all)) = (sum(new), sum(old));
    let (busy, all) = (busy.saturating_sub(old_busy), all.saturating_sub(old_all));
    let share = (100 * busy.as_nanos()).checked_div(all.as_nanos())?;
    u64::try_from(share).ok()
}

/// Returns the latest of the new timers, in milliseconds.
fn latest(new: &Distributions, old: &Distributions) -> u64 {
    let recorded = new.timer.iter_recorded();
    let is_new = |value: u64, count: u64| count > old.timer.count_at(value);
    let values = recorded.filter_map(|it| {
        let value = it.value_iterated_to();
        is_new(value, it.count_at_value()).then_some(value)
    });
    values.max().unwrap_or(0) / 1_000_000
}
