//! The values of all metrics of a scheduler at a moment.

use super::table::{self, Metric};
use super::types::{OTHER, Types};
use crate::alarms::Board;
use crate::observer::Observer;
use ganger_sched::internal::HandleInternals as _;
use ganger_sched::{Distributions, Handle, ProcessState, Stats, TimerStats};
use hdrhistogram::Histogram;
use std::collections::HashMap;
use std::time::Duration;

/// A value of a metric.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    /// A number of things.
    Number(u64),
    /// A time.
    Time(Duration),
    /// Durations in nanoseconds.
    Durations(Histogram<u64>),
}

/// The labels of a value.
pub(crate) type Labels = Vec<(&'static str, String)>;

/// A metric's value under its labels.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    pub(crate) labels: Labels,
    pub(crate) value: Value,
}

/// A metric with all of its values.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) metric: &'static Metric,
    pub(crate) series: Vec<Series>,
}

/// All metrics, in the order of the table.
pub(crate) struct Families(Vec<Family>);

/// The values of one scheduler, as they are added to the families.
struct Adding<'a> {
    families: &'a mut Families,
    labels: Labels,
}

/// A sum over all processes.
#[derive(Default)]
struct Sums {
    states: [u64; STATES.len()],
    types: HashMap<&'static str, u64>,
    waiting: u64,
    longest: u64,
}

const STATES: [(&str, ProcessState); 5] = [
    ("ready", ProcessState::Ready),
    ("running", ProcessState::Running),
    ("blocked", ProcessState::Blocked),
    ("idle", ProcessState::Idle),
    ("suspended", ProcessState::Suspended),
];

impl Families {
    pub(crate) fn new() -> Self {
        let family = |metric: &&'static Metric| Family {
            metric,
            series: Vec::new(),
        };
        Self(table::ALL.iter().map(family).collect())
    }

    /// Returns the metrics with values.
    pub(crate) fn each(&self) -> impl Iterator<Item = &Family> {
        self.0.iter().filter(|family| !family.series.is_empty())
    }

    /// Adds the values of a scheduler under that name. Looks at each process once, as fast as the
    /// observer allows.
    pub(crate) fn add(&mut self, observer: &Observer, name: String) {
        let handle = observer.handle();
        let mut labels = vec![("scheduler", name)];
        labels.extend(handle.node_name().map(|node| ("node", node.to_string())));
        let mut adding = Adding {
            families: self,
            labels,
        };
        let sums = Sums::of(observer);
        let distributions = handle.distributions();
        let types = handle.extension(|_| Types::default());
        types.admit(distributions.as_ref(), &sums.types);
        adding.add_stats(&handle.stats(), handle);
        adding.add_timers(handle.timers().stats());
        adding.add_sums(&sums, &types, distributions.is_some());
        adding.add_workers(handle);
        for (kind, raised, all) in Board::of(handle).counts() {
            adding.numbers(&table::ALARM_RAISED, &[(kind.name(), raised)]);
            adding.numbers(&table::ALARM_COUNT, &[(kind.name(), all)]);
        }
        if let Some(distributions) = distributions {
            adding.add_distributions(distributions, &types);
        }
        #[cfg(feature = "cluster")]
        adding.add_sessions(handle);
    }
}

impl Sums {
    fn of(observer: &Observer) -> Self {
        let mut sums = Self::default();
        observer.each(|process| {
            let state = process.state();
            let place = STATES.iter().position(|(_, it)| *it == state);
            if let Some(place) = place {
                sums.states[place] += 1;
            }
            *sums.types.entry(process.type_name()).or_default() += 1;
            let waiting = process.counts().map_or(0, |counts| counts.waiting);
            sums.waiting += waiting;
            sums.longest = sums.longest.max(waiting);
        });
        sums
    }
}

impl Adding<'_> {
    fn add(&mut self, metric: &'static Metric, labels: &[&str], value: Value) {
        debug_assert_eq!(metric.labels.len(), labels.len(), "{}", metric.name);
        let mut all = self.labels.clone();
        let own = metric.labels.iter().zip(labels);
        all.extend(own.map(|(name, value)| (*name, (*value).to_owned())));
        let mut families = self.families.0.iter_mut();
        if let Some(family) = families.find(|it| it.metric.name == metric.name) {
            family.series.push(Series { labels: all, value });
        }
    }

    fn number(&mut self, metric: &'static Metric, value: u64) {
        self.add(metric, &[], Value::Number(value));
    }

    fn numbers(&mut self, metric: &'static Metric, values: &[(&str, u64)]) {
        for &(label, value) in values {
            self.add(metric, &[label], Value::Number(value));
        }
    }

    #[cfg(feature = "cluster")]
    fn add_sessions(&mut self, handle: &Handle) {
        let Some(node) = ganger_cluster::Cluster::of(handle) else {
            return;
        };
        self.add_names(&node);
        for peer in node.peers() {
            let (name, session) = (peer.name.as_str(), &peer.session);
            let is_up = session.state == ganger_cluster::State::Up;
            self.numbers(&table::SESSION_UP, &[(name, u64::from(is_up))]);
            if let Some(time) = session.round_trip {
                self.add(&table::SESSION_ROUND_TRIP, &[name], Value::Time(time));
            }
            for (place, lane) in ["control", "data"].into_iter().enumerate() {
                let mut add = |metric, value| self.add(metric, &[name, lane], Value::Number(value));
                add(&table::SESSION_QUEUED, session.queued[place] as u64);
                let unacknowledged = session.unacknowledged[place] as u64;
                add(&table::SESSION_UNACKNOWLEDGED, unacknowledged);
                add(&table::SESSION_RESENT, session.resent[place]);
            }
            self.numbers(&table::SESSION_ENDED, &[(name, peer.ended)]);
            self.numbers(&table::SESSION_UNDELIVERED, &[(name, peer.undelivered)]);
            self.numbers(&table::SESSION_WAITING, &[(name, peer.waiting as u64)]);
            self.numbers(&table::SESSION_ASKED, &[(name, peer.asked as u64)]);
            self.numbers(&table::SESSION_WATCHING, &[(name, peer.watching as u64)]);
        }
    }

    #[cfg(feature = "cluster")]
    fn add_names(&mut self, node: &ganger_cluster::Cluster) {
        let (eventual, strong) = node.name_counts();
        let kinds = [("eventual", count(eventual)), ("strong", count(strong))];
        self.numbers(&table::NAME_COUNT, &kinds);
        if let Some(lease) = node.lease() {
            self.add(&table::LEASE_LEFT, &[], Value::Time(lease.left));
            let kinds = [("name", count(lease.names)), ("lock", count(lease.locks))];
            self.numbers(&table::LEASE_HELD, &kinds);
        }
        if let Some(store) = node.store_look() {
            self.number(&table::STORE_UP, u64::from(store.lost_for.is_none()));
            self.number(&table::STORE_WAITING, count(store.waiting));
        }
    }

    fn add_stats(&mut self, stats: &Stats, handle: &Handle) {
        let total = &stats.total;
        let up = Duration::from_nanos(handle.now().as_nanos());
        self.add(&table::UPTIME, &[], Value::Time(up));
        if let Some(limit) = handle.max_processes() {
            self.number(&table::PROCESS_LIMIT, count(limit));
        }
        self.number(&table::PROCESS_STARTED, total.started);
        let causes = [
            ("done", total.done),
            ("cancelled", total.cancelled),
            ("failed", total.failed),
            ("panicked", total.panicked),
            ("terminated", total.terminated),
            ("upgrade_failed", total.upgrades_failed),
        ];
        self.numbers(&table::PROCESS_ENDED, &causes);
        self.number(&table::PROCESS_FORCED, total.forced);
        self.number(&table::PROCESS_UPGRADED, total.upgrades);
        self.number(&table::WORKER_LIMIT, count(stats.workers));
        let (searching, asleep) = (count(stats.searching), count(stats.sleeping));
        let busy = count(stats.workers).saturating_sub(searching + asleep);
        let states = [("busy", busy), ("searching", searching), ("asleep", asleep)];
        self.numbers(&table::WORKER_COUNT, &states);
        self.number(&table::WORKER_SPARE, count(stats.spares));
        self.number(&table::WORKER_RELIEVED, count(stats.relieved));
        self.number(&table::WORKER_TURNS, total.turns);
        self.number(&table::WORKER_STEPS, total.steps);
        let picks = [
            ("local", total.local_picks),
            ("global", total.global_picks),
            ("urgent", total.urgent_picks),
            ("arrival", total.arrival_picks),
        ];
        self.numbers(&table::WORKER_PICKS, &picks);
        self.number(&table::WORKER_ROTATIONS, total.rotations);
        self.number(&table::WORKER_STEALS, total.steals);
        self.number(&table::WORKER_STOLEN, total.stolen);
        self.number(&table::WORKER_SLEEPS, total.sleeps);
        self.number(&table::QUEUE_GLOBAL, count(stats.global_queue));
        self.number(&table::QUEUE_READY, count(stats.ready));
        let longest = Value::Time(stats.longest_step);
        self.add(&table::STEP_LONGEST, &[], longest);
        self.number(&table::STEP_BLOCKED, total.blocked_steps);
        self.number(&table::STEP_LONG, total.long_steps);
        if let Some(events) = handle.events() {
            self.number(&table::MESSAGE_TAKEN, events);
        }
        self.number(&table::MESSAGE_UNDELIVERED, total.undelivered);
        self.number(&table::COMMAND_YIELDED, total.yields);
        self.number(&table::COMPLETION_STALE, total.stale_completions);
        self.number(&table::PANIC_CONTAINED, total.panics);
    }

    fn add_timers(&mut self, timers: TimerStats) {
        self.number(&table::TIMER_PENDING, count(timers.pending));
        self.number(&table::TIMER_ARMED, timers.armed);
        self.number(&table::TIMER_FIRED, timers.fired);
        self.number(&table::TIMER_CANCELLED, timers.cancelled);
        self.number(&table::TIMER_REFUSED, timers.refused);
    }

    fn add_sums(&mut self, sums: &Sums, types: &Types, is_counted: bool) {
        for ((name, _), value) in STATES.into_iter().zip(sums.states) {
            self.add(&table::PROCESS_COUNT, &[name], Value::Number(value));
        }
        let mut counts: HashMap<&str, u64> = HashMap::new();
        for (name, value) in &sums.types {
            *counts.entry(types.shown(name)).or_default() += value;
        }
        let others = types.has_others().then_some(OTHER);
        for name in types.all().into_iter().chain(others) {
            let value = counts.get(name).copied().unwrap_or_default();
            self.add(&table::TYPE_COUNT, &[name], Value::Number(value));
        }
        if is_counted {
            self.number(&table::MESSAGE_WAITING, sums.waiting);
            self.number(&table::MAILBOX_LONGEST, sums.longest);
        }
    }

    fn add_workers(&mut self, handle: &Handle) {
        for (worker, times) in handle.worker_times().into_iter().enumerate() {
            let worker = worker.to_string();
            let mut add = |metric, time| self.add(metric, &[&worker], Value::Time(time));
            add(&table::WORKER_BUSY, times.busy);
            add(&table::WORKER_SEARCHING, times.searching);
            add(&table::WORKER_ASLEEP, times.asleep);
        }
    }

    fn add_distributions(&mut self, all: Distributions, types: &Types) {
        self.add(&table::MESSAGE_WAIT, &[], Value::Durations(all.mail));
        self.add(&table::TIMER_LATENESS, &[], Value::Durations(all.timer));
        let mut sums: HashMap<&str, [Histogram<u64>; 2]> = HashMap::new();
        for (name, of) in all.by_type {
            let more = [of.ready, of.step];
            match sums.get_mut(types.shown(name)) {
                // Histograms of all types have the same precision and no bound.
                Some(sum) => sum.iter_mut().zip(more).for_each(|(it, more)| {
                    let _is_added = it.add(more);
                }),
                None => drop(sums.insert(types.shown(name), more)),
            }
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|(name, _)| *name);
        for (name, [ready, step]) in sums {
            self.add(&table::SCHEDULE_DURATION, &[name], Value::Durations(ready));
            self.add(&table::STEP_DURATION, &[name], Value::Durations(step));
        }
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
