//! Looks at schedulers: makes the answers of the API from their handles. No worker of an observed
//! scheduler waits for a look.

mod alarms;
mod children;
pub(super) mod graphs;
mod list;
mod measured;
#[cfg(feature = "cluster")]
mod nodes;
mod one;

pub(super) use list::{List, Live, Seen};
pub(super) use one::single;

use super::observed::Shown;
use crate::api::{
    Letter, Letters, LongStep, Nodes, Scheduler, SchedulerLetters, Snapshot, Threads, Timers,
    VERSION,
};
use crate::letters::{self, KeptLetter};
use crate::metrics::{self, Families};
use crate::observer::Observer;
use ganger_sched::{DeadReason, LongStepKind};
use measured::{distributions, worker_times};
use std::time::Duration;

pub(super) fn snapshot(schedulers: &[Shown], sequence: u64, actions: &[String]) -> Snapshot {
    Snapshot {
        version: VERSION,
        sequence,
        schedulers: schedulers.iter().map(scheduler).collect(),
        actions: actions.to_vec(),
    }
}

fn scheduler(shown: &Shown) -> Scheduler {
    let handle = &shown.handle;
    let (stats, timers) = (handle.stats(), handle.timers().stats());
    Scheduler {
        number: shown.number,
        host: handle.host_name().to_string(),
        node: handle.node_name().map(|it| it.to_string()),
        is_started: handle.is_started(),
        is_stopping: handle.is_stopping(),
        time_to_stop_ns: handle.time_to_stop().map(nanos),
        uptime_ns: handle.now().as_nanos(),
        live: count(stats.live),
        global_queue: count(stats.global_queue),
        ready: count(stats.ready),
        events: handle.events(),
        threads: Threads {
            workers: count(stats.workers),
            spares: count(stats.spares),
            relieved: count(stats.relieved),
            sleeping: count(stats.sleeping),
            searching: count(stats.searching),
        },
        total: stats.total.into(),
        workers: handle.worker_stats().into_iter().map(Into::into).collect(),
        timers: Timers {
            pending: count(timers.pending),
            armed: timers.armed,
            fired: timers.fired,
            cancelled: timers.cancelled,
            refused: timers.refused,
        },
        longest_step_ns: nanos(stats.longest_step),
        long_steps: handle.long_steps().into_iter().map(long_step).collect(),
        observes: format!("{:?}", handle.observes()).to_lowercase(),
        worker_times: handle
            .worker_times()
            .into_iter()
            .map(worker_times)
            .collect(),
        distributions: handle.distributions().map(|it| distributions(&it)),
        alarms: alarms::raised(handle),
    }
}

/// Returns all metrics of all schedulers. O(processes).
pub(super) fn metrics(schedulers: &[Shown]) -> String {
    let mut families = Families::new();
    for Shown { number, handle } in schedulers {
        let (host, node) = (handle.host_name(), handle.node_name());
        let is_twin = |it: &&Shown| (it.handle.host_name(), it.handle.node_name()) == (host, node);
        let name = match schedulers.iter().filter(is_twin).count() {
            1 => host.to_string(),
            // Two series with the same labels would be one.
            _ => format!("{host}#{number}"),
        };
        families.add(&Observer::of(handle).in_haste(), name);
    }
    metrics::text(&families)
}

fn long_step(step: ganger_sched::LongStep) -> LongStep {
    LongStep {
        pid: step.pid.to_string(),
        method: step.method.map(|it| it.to_string()),
        worker: count(step.worker),
        is_blocked: step.kind == LongStepKind::Blocked,
        is_announced: step.is_announced,
        is_over: step.is_over,
        lasted_ns: nanos(step.lasted),
        backtrace: step.backtrace.map(|it| it.to_string()),
    }
}

/// Returns the nodes of the schedulers.
pub(super) fn nodes(schedulers: &[Shown]) -> Nodes {
    #[cfg(feature = "cluster")]
    let nodes = schedulers.iter().filter_map(nodes::node).collect();
    #[cfg(not(feature = "cluster"))]
    let nodes = {
        let _unseen = schedulers;
        Vec::new()
    };
    Nodes {
        version: VERSION,
        nodes,
    }
}

pub(super) fn letters(schedulers: &[Shown]) -> Letters {
    let of = |shown: &Shown| SchedulerLetters {
        scheduler: shown.number,
        host: shown.handle.host_name().to_string(),
        undelivered: shown.handle.stats().total.undelivered,
        refused: shown.handle.timers().stats().refused,
        last: letters::last(&shown.handle).map(|it| it.iter().map(letter).collect()),
    };
    Letters {
        version: VERSION,
        schedulers: schedulers.iter().map(of).collect(),
    }
}

fn letter(kept: &KeptLetter) -> Letter {
    let KeptLetter {
        letter,
        type_name,
        text,
    } = kept;
    let reason = match letter.reason {
        DeadReason::Ended => "ended",
        DeadReason::LateEnded => "late_ended",
        DeadReason::LateFull => "late_full",
        _ => "late_refused",
    };
    Letter {
        reason: reason.to_owned(),
        source: letter.source.map(|it| it.to_string()),
        target: letter.target.to_string(),
        topic: letter.topic.to_string(),
        at_ns: letter.at.as_nanos(),
        message: type_name.map(str::to_owned),
        text: text.clone(),
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ganger_sched::{Scheduler, WorkerStats};
    use std::collections::BTreeSet;

    // pins: V1
    #[test]
    fn all_counts_of_a_worker_are_shown() {
        let text = format!("{:?}", WorkerStats::default());
        let words = text.split(|c: char| !(c.is_ascii_lowercase() || c == '_'));
        let counted: BTreeSet<_> = words.filter(|it| it.len() > 1).collect();
        let shown = serde_json::to_value(crate::api::Counts::default()).unwrap();
        let shown = shown.as_object().unwrap().keys();
        let shown: BTreeSet<_> = shown.map(|it| &**it).collect();
        // The rest of the type's name.
        assert_eq!(&counted - &shown, BTreeSet::from(["orker", "tats"]));
        assert_eq!(&shown - &counted, BTreeSet::new());
    }

    // pins: V1
    #[test]
    fn a_snapshot_is_read_as_it_was_written() {
        let scheduler = Scheduler::start_default().unwrap();
        let handle = scheduler.handle();
        let actions = ["cancel".to_owned()];
        let snapshot = snapshot(&[Shown { number: 1, handle }], 7, &actions);
        let json = serde_json::to_vec(&snapshot).unwrap();
        assert_eq!(crate::api::from_json::<Snapshot>(&json).unwrap(), snapshot);
    }
}
