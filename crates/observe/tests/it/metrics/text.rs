//! `/metrics` of the endpoint.

use super::reader::{self, Family, Labels};
use super::{documented, worked};
use crate::endpoint::support::get;
use ganger_observe::{Endpoint, serve};
use ganger_sched::{Handle, Scheduler};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

fn scraped(endpoint: &Endpoint) -> BTreeMap<String, Family> {
    let answer = get(endpoint, "/metrics");
    assert_eq!(answer.status, 200, "{}", answer.body);
    let kind = answer.header("content-type");
    assert_eq!(kind, Some("text/plain; version=0.0.4; charset=utf-8"));
    reader::read(&answer.body)
}

fn labels(scheduler: &str, own: &[(&str, &str)]) -> Labels {
    let all = own.iter().copied().chain([("scheduler", scheduler)]);
    all.map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[expect(clippy::cast_precision_loss, reason = "counts of a test")]
fn float(count: u64) -> f64 {
    count as f64
}

/// Returns Prometheus's name of a metric, by its rules: see `docs/METRICS.md`.
fn prometheus(name: &str, kind: &str, families: &BTreeMap<String, Family>) -> Option<String> {
    let name = name.replace('.', "_");
    let total = if kind == "counter" { "_total" } else { "" };
    let names = ["_seconds", ""].map(|unit| format!("{name}{unit}{total}"));
    names.into_iter().find(|it| families.contains_key(it))
}

// pins: V9
#[test]
fn all_metrics_are_there_under_their_names_with_their_labels() {
    let scheduler = worked(Scheduler::builder().host("all")).unwrap();
    let endpoint = serve("127.0.0.1:0").scheduler(&scheduler).start().unwrap();
    let mut families = scraped(&endpoint);
    for (name, kind, mut own) in documented() {
        let found = prometheus(&name, &kind, &families);
        let found = found.unwrap_or_else(|| panic!("{name} is not in {:?}", families.keys()));
        let family = families.remove(&found).unwrap();
        assert_eq!(family.kind, kind, "{name}");
        assert!(family.help.ends_with('.'), "{name}");
        own.insert("scheduler".to_owned());
        if kind == "histogram" {
            assert!(!family.counts(&found).is_empty(), "{name}");
            own.insert("le".to_owned());
        }
        let labels = family.samples.keys().flat_map(|(_, labels)| labels.keys());
        assert_eq!(labels.cloned().collect::<BTreeSet<_>>(), own, "{name}");
    }
    assert!(families.is_empty(), "{:?}", families.keys());
}

// pins: V9
#[test]
fn values_are_those_of_the_scheduler() {
    let scheduler = worked(Scheduler::builder().host("equal")).unwrap();
    let endpoint = serve("127.0.0.1:0").scheduler(&scheduler).start().unwrap();
    let families = scraped(&endpoint);
    let get = |name: &str, own: &[(&str, &str)]| {
        let family = &families[name];
        let all: Vec<_> = own
            .iter()
            .copied()
            .chain([("scheduler", "equal")])
            .collect();
        family.get(name, &all)
    };
    let (stats, timers) = (scheduler.stats(), scheduler.timers().stats());
    let total = stats.total;
    assert_eq!((total.done, total.failed), (20, 20));
    for (name, value) in [
        ("process_started", total.started),
        ("process_forced", total.forced),
        ("worker_turns", total.turns),
        ("worker_steps", total.steps),
        ("worker_rotations", total.rotations),
        ("worker_steals", total.steals),
        ("worker_stolen", total.stolen),
        ("worker_sleeps", total.sleeps),
        ("step_blocked", total.blocked_steps),
        ("step_long", total.long_steps),
        ("message_undelivered", total.undelivered),
        ("command_yielded", total.yields),
        ("completion_stale", total.stale_completions),
        ("panic_contained", total.panics),
        ("timer_armed", timers.armed),
        ("timer_fired", timers.fired),
        ("timer_cancelled", timers.cancelled),
        ("timer_refused", timers.refused),
    ] {
        assert_eq!(
            get(&format!("ganger_{name}_total"), &[]),
            float(value),
            "{name}"
        );
    }
    for (cause, value) in [
        ("done", total.done),
        ("cancelled", total.cancelled),
        ("failed", total.failed),
        ("panicked", total.panicked),
        ("terminated", total.terminated),
        ("upgrade_failed", total.upgrades_failed),
    ] {
        let ended = get("ganger_process_ended_total", &[("cause", cause)]);
        assert_eq!(ended, float(value), "{cause}");
    }
    for (source, value) in [
        ("local", total.local_picks),
        ("global", total.global_picks),
        ("urgent", total.urgent_picks),
        ("arrival", total.arrival_picks),
    ] {
        let picks = get("ganger_worker_picks_total", &[("source", source)]);
        assert_eq!(picks, float(value), "{source}");
    }
    assert_eq!(get("ganger_process_limit", &[]), 1_000.0);
    assert_eq!(get("ganger_worker_limit", &[]), 2.0);
    assert_eq!(
        get("ganger_message_taken_total", &[]),
        float(scheduler.events().unwrap())
    );
    assert_eq!(get("ganger_queue_ready", &[]), 0.0);
    for (worker, times) in scheduler.worker_times().into_iter().enumerate() {
        let busy = get(
            "ganger_worker_busy_seconds_total",
            &[("worker", &worker.to_string())],
        );
        assert_eq!(busy, times.busy.as_secs_f64());
    }
    check_histograms(&scheduler, &families);
}

/// Compares all buckets with the distributions.
fn check_histograms(scheduler: &Handle, families: &BTreeMap<String, Family>) {
    let all = scheduler.distributions().unwrap();
    let below = |histogram: &dyn Fn(u64) -> u64, buckets: &[(f64, f64)]| {
        for &(bound, count) in buckets {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a bound"
            )]
            let below = if bound.is_finite() {
                (bound * 1e9).round() as u64
            } else {
                u64::MAX
            };
            assert_eq!(float(histogram(below)), count, "{bound}");
        }
    };
    for (name, of_all, types) in [
        (
            "ganger_message_wait_duration_seconds",
            Some(&all.mail),
            false,
        ),
        ("ganger_timer_lateness_seconds", Some(&all.timer), false),
        ("ganger_schedule_duration_seconds", None, true),
        ("ganger_step_duration_seconds", None, true),
    ] {
        let counts = families[name].counts(name);
        assert_eq!(counts.len(), if types { all.by_type.len() } else { 1 });
        for (labels, buckets) in counts {
            let histogram = of_all.unwrap_or_else(|| {
                let of = &all.by_type[&*labels["type"]];
                if name.contains("step") {
                    &of.step
                } else {
                    &of.ready
                }
            });
            assert_eq!(buckets.len(), 28);
            below(&|below| histogram.count_between(0, below - 1), &buckets);
        }
    }
    assert!(!all.step.is_empty() && !all.timer.is_empty() && !all.mail.is_empty());
}

// pins: V9
#[test]
fn schedulers_are_told_apart_and_labels_are_escaped() {
    let odd = "a\"b\\c";
    let build = |host: &str| Scheduler::builder().host(host).build().unwrap();
    let (one, two, other) = (build("twin"), build("twin"), build(odd));
    let other_node = Scheduler::builder().host("twin").node("n").build().unwrap();
    let endpoint = serve("127.0.0.1:0")
        .scheduler(&one)
        .scheduler(&two)
        .scheduler(&other);
    let endpoint = endpoint.scheduler(&other_node).start().unwrap();
    let families = scraped(&endpoint);
    let started = &families["ganger_process_started_total"];
    let seen: BTreeSet<_> = started
        .samples
        .keys()
        .map(|(_, labels)| labels.clone())
        .collect();
    let expected = [
        labels("twin#1", &[]),
        labels("twin#2", &[]),
        labels(odd, &[]),
        labels("twin", &[("node", "n")]),
    ];
    assert_eq!(seen, BTreeSet::from(expected));
    // The document leaves out the metrics of an observed scheduler, or of a limit.
    for absent in ["ganger_process_limit", "ganger_step_duration_seconds"] {
        assert!(!families.contains_key(absent), "{absent}");
    }
    get(&endpoint, "/metrics?x=1").refuses(400, "no parameters");
}

// pins: V9
#[test]
fn no_label_is_a_pid_and_live_processes_are_counted_by_state_and_type() {
    let scheduler = Scheduler::builder().host("live").build().unwrap();
    let endpoint = serve("127.0.0.1:0").scheduler(&scheduler).start().unwrap();
    let processes: Vec<_> = (0..100)
        .map(|_| scheduler.spawn(super::takes()).unwrap())
        .collect();
    let families = scraped(&endpoint);
    let name = "ganger_process_count";
    let states = families[name].values("state");
    assert_eq!(
        states,
        BTreeSet::from(["ready", "running", "blocked", "idle", "suspended"])
    );
    let count = |state| families[name].get(name, &[("scheduler", "live"), ("state", state)]);
    let all: f64 = states.iter().map(|it| count(it)).sum();
    assert_eq!(all, 100.0);
    let types = &families["ganger_process_type_count"];
    assert_eq!(types.samples.values().copied().collect::<Vec<_>>(), [100.0]);
    for process in &processes {
        let pid = process.pid().to_string();
        let values = families.values().flat_map(|it| it.samples.keys());
        let mut values = values.flat_map(|(_, labels)| labels.values());
        assert!(values.all(|value| !value.contains(&pid)), "{pid}");
    }
    scheduler.begin_stop(Duration::ZERO);
}
