//! Metrics for the `metrics` facade, and so for the exporters that the program chooses.
//!
//! The facade takes sums as they are, and each duration by itself. So the publisher remembers the
//! published distributions, and records the new durations.

use super::read::{Families, Labels, Series, Value};
use super::table::{self, Kind, Metric};
use crate::every::Every;
use crate::observer::Observer;
use ::metrics::{Label, Unit};
use ganger_sched::{Handle, WeakHandle};
use ganger_sync::sync::lock;
use hdrhistogram::Histogram;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fmt, io};

/// The metrics of a scheduler, for the recorder of the [`metrics`](::metrics) facade.
/// `docs/METRICS.md` lists them.
///
/// [`publish`] publishes once a period. A program whose exporter is asked publishes when that is:
///
/// ```
/// use ganger_observe::Metrics;
/// use ganger_sched::{Observe, Scheduler};
///
/// let scheduler = Scheduler::builder().observe(Observe::Histograms).start()?;
/// let metrics = Metrics::of(&scheduler);
/// // At each scrape, before the exporter renders:
/// metrics.publish();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Metrics {
    scheduler: WeakHandle,
    published: Mutex<Published>,
}

/// The values known to the recorder.
#[derive(Default)]
struct Published {
    is_described: bool,
    durations: HashMap<(&'static str, Labels), Histogram<u64>>,
}

impl Metrics {
    /// Returns the metrics of the scheduler. The value does not keep the scheduler running, nor its
    /// memory.
    #[must_use]
    pub fn of(scheduler: &Handle) -> Self {
        Self {
            scheduler: scheduler.downgrade(),
            published: Mutex::default(),
        }
    }

    /// Tells the recorder all values, by [`counter!`](::metrics::counter), `gauge!` and
    /// `histogram!`. Does nothing where the scheduler is gone.
    ///
    /// O(live processes), at a tenth of a core at most, and no worker waits for it. Blocks
    /// meanwhile.
    pub fn publish(&self) {
        if let Some(handle) = self.scheduler.upgrade() {
            self.publish_of(&handle);
        }
    }

    fn publish_of(&self, handle: &Handle) {
        let mut families = Families::new();
        let observer = Observer::of(handle);
        families.add(&observer, handle.host_name().to_string());
        let mut published = lock(&self.published);
        if !std::mem::replace(&mut published.is_described, true) {
            table::ALL.iter().for_each(|metric| describe(metric));
        }
        for family in families.each() {
            for series in &family.series {
                published.tell(family.metric, series);
            }
        }
    }
}

/// Returns whether the facade counts the metric: its counters are integers, and a sum of seconds is
/// a gauge there.
fn is_counter(metric: &Metric) -> bool {
    metric.kind == Kind::Counter && metric.unit != "s"
}

fn describe(metric: &Metric) {
    let (name, help) = (metric.name, metric.help);
    let unit = if metric.unit == "s" {
        Unit::Seconds
    } else {
        Unit::Count
    };
    match metric.kind {
        Kind::Histogram => ::metrics::describe_histogram!(name, unit, help),
        _ if is_counter(metric) => ::metrics::describe_counter!(name, unit, help),
        _ => ::metrics::describe_gauge!(name, unit, help),
    }
}

impl Published {
    #[expect(clippy::cast_precision_loss, reason = "the facade's gauges are so")]
    fn tell(&mut self, metric: &Metric, series: &Series) {
        let label = |(name, value): &(&'static str, String)| Label::new(*name, value.clone());
        let labels: Vec<_> = series.labels.iter().map(label).collect();
        let name = metric.name;
        match &series.value {
            Value::Number(number) if is_counter(metric) => {
                ::metrics::counter!(name, labels).absolute(*number);
            }
            Value::Number(number) => ::metrics::gauge!(name, labels).set(*number as f64),
            Value::Time(time) => ::metrics::gauge!(name, labels).set(time.as_secs_f64()),
            Value::Durations(now) => {
                let histogram = ::metrics::histogram!(name, labels);
                let key = (name, series.labels.clone());
                let before = self.durations.insert(key, now.clone());
                for value in now.iter_recorded() {
                    let at = value.value_iterated_to();
                    let old = before.as_ref().map_or(0, |it| it.count_at(at));
                    let new = value.count_at_value().saturating_sub(old);
                    let new = usize::try_from(new).unwrap_or(usize::MAX);
                    let seconds = now.median_equivalent(at) as f64 / 1e9;
                    if new > 0 {
                        histogram.record_many(seconds, new);
                    }
                }
            }
        }
    }
}

/// Publishes the metrics of a scheduler once a period, from now on, for the recorder of the
/// [`metrics`](::metrics) facade that the program has installed.
///
/// A thread of its own does so, which wakes once a period; hot paths never call the facade. It does
/// not keep the scheduler running.
///
/// ```
/// use ganger_sched::Scheduler;
/// use std::time::Duration;
///
/// // An exporter is installed before, for example one for Prometheus or StatsD.
/// let scheduler = Scheduler::start_default()?;
/// let publishing = ganger_observe::publish(&scheduler, Duration::from_secs(10))?;
/// // … the program …
/// drop(publishing); // Publishes a last time.
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// When the system refuses a thread.
pub fn publish(scheduler: &Handle, period: Duration) -> io::Result<Publishing> {
    let metrics = Arc::new(Metrics::of(scheduler));
    let of_thread = Arc::clone(&metrics);
    let look = move |handle: &Handle| of_thread.publish_of(handle);
    Ok(Publishing {
        every: Some(Every::start("ganger-metrics", scheduler, period, look)?),
        metrics,
    })
}

/// The publication of metrics, until it is dropped. The drop publishes a last time.
#[derive(Debug)]
#[must_use = "its drop ends the publication"]
pub struct Publishing {
    every: Option<Every>,
    metrics: Arc<Metrics>,
}

impl Drop for Publishing {
    fn drop(&mut self) {
        drop(self.every.take());
        self.metrics.publish();
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheduler = &self.scheduler;
        f.debug_struct("Metrics")
            .field("scheduler", scheduler)
            .finish_non_exhaustive()
    }
}
