//! Metrics as Prometheus' text, version 0.0.4 of the format.
//!
//! A histogram is the number of durations up to each bound: powers of two nanoseconds, on which
//! the bounds of the scheduler's own buckets lie. So no duration is in a wrong bucket, but for
//! those of exactly a bound. `# UNIT` is a comment there, and a statement in OpenMetrics.

use super::read::{Families, Family, Series, Value};
use super::table::{Kind, Metric};
use hdrhistogram::Histogram;
use std::fmt::Write as _;

/// The least and the greatest bound, as powers of two: 256 ns and 17 s.
const BOUNDS: std::ops::RangeInclusive<u32> = 8..=34;

/// The type of the document, for clients.
pub(crate) const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Returns the document.
pub(crate) fn text(families: &Families) -> String {
    let mut text = String::new();
    for family in families.each() {
        add_family(&mut text, family);
    }
    text
}

// A string takes all, here and below.
fn add_family(text: &mut String, family: &Family) {
    let metric = family.metric;
    let name = name(metric);
    let kind = match metric.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram => "histogram",
    };
    let _ = writeln!(text, "# HELP {name} {}", escaped(metric.help, false));
    let _ = writeln!(text, "# TYPE {name} {kind}");
    if metric.unit == "s" {
        let _ = writeln!(text, "# UNIT {name} seconds");
    }
    for series in &family.series {
        match &series.value {
            Value::Number(number) => add(text, &name, series, None, number),
            Value::Time(time) => add(text, &name, series, None, time.as_secs_f64()),
            Value::Durations(durations) => add_histogram(text, &name, series, durations),
        }
    }
}

/// Returns Prometheus's name of the metric.
fn name(metric: &Metric) -> String {
    let name = metric.name.replace('.', "_");
    let unit = if metric.unit == "s" { "_seconds" } else { "" };
    let is_counter = metric.kind == Kind::Counter;
    let total = if is_counter { "_total" } else { "" };
    format!("{name}{unit}{total}")
}

fn add_histogram(text: &mut String, name: &str, series: &Series, durations: &Histogram<u64>) {
    let bucket = format!("{name}_bucket");
    let mut recorded = durations.iter_recorded().peekable();
    let mut count = 0;
    for power in BOUNDS {
        let bound = 1_u64 << power;
        while let Some(value) = recorded.next_if(|it| it.value_iterated_to() < bound) {
            count += value.count_since_last_iteration();
        }
        let bound = seconds(bound).to_string();
        add(text, &bucket, series, Some(&bound), count);
    }
    add(text, &bucket, series, Some("+Inf"), durations.len());
    let sum = seconds(sum(durations));
    add(text, &format!("{name}_sum"), series, None, sum);
    add(
        text,
        &format!("{name}_count"),
        series,
        None,
        durations.len(),
    );
}

/// Adds a line.
fn add(text: &mut String, name: &str, series: &Series, bound: Option<&str>, value: impl ToString) {
    text.push_str(name);
    let labels = series.labels.iter().map(|(name, value)| (*name, &**value));
    for (place, (name, value)) in labels.chain(bound.map(|it| ("le", it))).enumerate() {
        let before = if place == 0 { '{' } else { ',' };
        let _ = write!(text, "{before}{name}=\"{}\"", escaped(value, true));
    }
    let _ = writeln!(text, "}} {}", value.to_string());
}

/// Returns the sum in nanoseconds, to the precision of the histogram.
fn sum(durations: &Histogram<u64>) -> u64 {
    let recorded = durations.iter_recorded();
    let sums = recorded.map(|it| {
        let middle = durations.median_equivalent(it.value_iterated_to());
        middle.saturating_mul(it.count_since_last_iteration())
    });
    sums.fold(0, u64::saturating_add)
}

#[expect(clippy::cast_precision_loss, reason = "a time to 15 digits")]
fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

/// Escapes a label's value, or a sentence, in which quotation marks stay.
fn escaped(text: &str, is_label: bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => escaped.push_str("\\\\"),
            '\n' => escaped.push_str("\\n"),
            '"' if is_label => escaped.push_str("\\\""),
            c => escaped.push(c),
        }
    }
    escaped
}
