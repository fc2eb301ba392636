//! Metrics through the `metrics` facade, read back by a recorder of its own tools.

use super::{documented, worked};
use ganger_observe::{Metrics, publish};
use ganger_sched::Scheduler;
use metrics_util::MetricKind;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// The values by their names and labels.
type Values = BTreeMap<(String, Vec<(String, String)>), (MetricKind, DebugValue)>;

fn values(snapshotter: &Snapshotter) -> Values {
    let each = snapshotter.snapshot().into_vec().into_iter();
    let values = each.map(|(key, _, _, value)| {
        let labels = key.key().labels();
        let labels = labels.map(|it| (it.key().to_owned(), it.value().to_owned()));
        let name = (key.key().name().to_owned(), labels.collect());
        (name, (key.kind(), value))
    });
    values.collect()
}

/// Counts the new durations in all histograms of the name.
fn recorded(values: &Values, name: &str) -> usize {
    let of = values.iter().filter(|((it, _), _)| it == name);
    let lengths = of.map(|(_, (_, value))| match value {
        DebugValue::Histogram(new) => new.len(),
        other => panic!("{name} is {other:?}"),
    });
    lengths.sum()
}

// pins: V9
#[test]
fn a_recorder_has_each_value_and_each_duration_once() {
    let scheduler = worked(Scheduler::builder().host("facade").node("n")).unwrap();
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let metrics = Metrics::of(&scheduler);
    let publish = || metrics::with_local_recorder(&recorder, || metrics.publish());
    publish();
    let first = values(&snapshotter);
    let total = scheduler.stats().total;
    let label = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let common = [label("scheduler", "facade"), label("node", "n")];
    let get = |name: &str, own: &[(&str, &str)]| {
        let own = own.iter().map(|(name, value)| label(name, value));
        let labels = common.iter().cloned().chain(own).collect();
        &first[&(name.to_owned(), labels)].1
    };
    assert_eq!(
        get("ganger.worker.steps", &[]),
        &DebugValue::Counter(total.steps)
    );
    let failed = get("ganger.process.ended", &[("cause", "failed")]);
    assert_eq!(failed, &DebugValue::Counter(20));
    let limit = get("ganger.process.limit", &[]);
    assert_eq!(limit, &DebugValue::Gauge(1_000.0.into()));

    let all = scheduler.distributions().unwrap();
    let histograms = [
        ("ganger.step.duration", all.step.len()),
        ("ganger.schedule.duration", all.ready.len()),
        ("ganger.message.wait.duration", all.mail.len()),
        ("ganger.timer.lateness", all.timer.len()),
    ];
    for (name, length) in histograms {
        assert_eq!(recorded(&first, name) as u64, length, "{name}");
    }
    // The published metrics are the documented metrics, with their labels.
    let mut named = BTreeMap::<String, BTreeSet<String>>::new();
    for (name, labels) in first.keys() {
        let own = labels[2..].iter().map(|it| it.0.clone());
        named.entry(name.clone()).or_default().extend(own);
    }
    let expected = documented()
        .into_iter()
        .map(|(name, _, labels)| (name, labels));
    assert_eq!(named, expected.collect());

    publish();
    let second = values(&snapshotter);
    for (name, _) in histograms {
        assert_eq!(recorded(&second, name), 0, "{name} is recorded twice");
    }
    let steps = ("ganger.worker.steps".to_owned(), common.to_vec());
    assert_eq!(second[&steps].1, DebugValue::Counter(total.steps));
    drop(scheduler);
    publish();
}

/// Publishes to the program's recorder.
// pins: V9
#[test]
fn a_thread_publishes_at_once_and_a_last_time_and_ends_with_the_scheduler() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    recorder.install().unwrap();
    let scheduler = Scheduler::builder().host("thread").start().unwrap();
    let publishing = publish(&scheduler, Duration::from_secs(3_600)).unwrap();
    let started = || {
        let name = "ganger.process.started".to_owned();
        let labels = vec![("scheduler".to_owned(), "thread".to_owned())];
        let value = values(&snapshotter).remove(&(name, labels))?.1;
        Some(value)
    };
    let begin = Instant::now();
    while started().is_none() {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "nothing is published"
        );
        std::thread::yield_now();
    }
    assert_eq!(started(), Some(DebugValue::Counter(0)));
    let process = scheduler.spawn(super::takes()).unwrap();
    drop(publishing);
    assert_eq!(started(), Some(DebugValue::Counter(1)));
    drop(process);
    // The thread holds no handle, so the scheduler can go while it waits.
    let later = publish(&scheduler, Duration::from_secs(3_600)).unwrap();
    let weak = scheduler.downgrade();
    drop(scheduler);
    while weak.upgrade().is_some() {
        assert!(
            begin.elapsed() < Duration::from_secs(120),
            "the scheduler is kept"
        );
        std::thread::yield_now();
    }
    drop(later);
}
