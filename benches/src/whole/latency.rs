//! Many latencies, and the few figures that describe them.

use super::contestant::failed;
use super::job::Error;
use super::sample::{BUCKETS, Sample};
use hdrhistogram::Histogram;
use std::time::Duration;

/// Many latencies, each to three digits.
#[derive(Debug)]
pub(super) struct Latencies {
    nanos: Histogram<u64>,
}

impl Latencies {
    /// Creates a histogram without latencies.
    pub(super) fn new() -> Result<Self, Error> {
        let nanos = Histogram::new(3).map_err(failed)?;
        Ok(Self { nanos })
    }

    pub(super) fn of(all: impl IntoIterator<Item = Duration>) -> Result<Self, Error> {
        let mut latencies = Self::new()?;
        all.into_iter().try_for_each(|it| latencies.record(it))?;
        Ok(latencies)
    }

    pub(super) fn record(&mut self, latency: Duration) -> Result<(), Error> {
        let nanos = u64::try_from(latency.as_nanos()).map_err(failed)?;
        self.nanos.record(nanos.max(1)).map_err(failed)
    }

    /// Returns the latency in nanoseconds that `percent` of all latencies do not exceed.
    pub(super) fn percentile(&self, percent: f64) -> f64 {
        self.nanos.value_at_percentile(percent) as f64
    }

    /// Returns the worst latency, in nanoseconds.
    pub(super) fn max(&self) -> f64 {
        self.nanos.max() as f64
    }

    /// Adds the latencies' figures to a sample whose unit is `unit` nanoseconds.
    pub(super) fn describe(&self, sample: &mut Sample, unit: f64) {
        sample.p50 = Some(self.percentile(50.0) / unit);
        sample.p99 = Some(self.percentile(99.0) / unit);
        sample.max = Some(self.max() / unit);
        sample.histogram = self.buckets();
    }

    /// Returns buckets whose widths grow with their values, without empty buckets: upper bounds in
    /// nanoseconds, each with its count.
    fn buckets(&self) -> Vec<(u64, u64)> {
        let least = self.nanos.min().max(1) as f64;
        let width = (self.max() / least).ln().max(1e-9) / (BUCKETS - 1) as f64;
        let mut buckets: Vec<(u64, u64)> = Vec::with_capacity(BUCKETS);
        let mut last = None;
        for step in self.nanos.iter_recorded() {
            let value = step.value_iterated_to();
            let place = ((value as f64 / least).ln() / width).clamp(0.0, (BUCKETS - 1) as f64);
            let place = place.floor();
            match buckets.last_mut() {
                Some(bucket) if last == Some(place) => {
                    *bucket = (value, bucket.1 + step.count_since_last_iteration());
                }
                _ => buckets.push((value, step.count_since_last_iteration())),
            }
            last = Some(place);
        }
        buckets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::whole::catalog::{Id, Peer};
    use crate::whole::job::{Job, Size};

    #[test]
    fn latencies_are_described_in_few_buckets_that_hold_them_all() {
        let mut latencies = Latencies::new().unwrap();
        for micros in 1..=10_000 {
            latencies.record(Duration::from_micros(micros)).unwrap();
        }
        let job = Job::new(Id::W10, Peer::Ganger, 2, Size::Full);
        let mut sample = Sample::new(&job, "p50", 0.0);
        latencies.describe(&mut sample, 1e3);
        let near = |value: Option<f64>, expected: f64| {
            let value = value.unwrap();
            assert!((value / expected - 1.0).abs() < 0.002, "{value}");
        };
        near(sample.p50, 5_000.0);
        near(sample.p99, 9_900.0);
        near(sample.max, 10_000.0);
        let total: u64 = sample.histogram.iter().map(|&(_, count)| count).sum();
        assert_eq!(total, 10_000);
        assert!(sample.histogram.len() > BUCKETS / 2);
        assert_eq!(Sample::parse(&sample.line()), Ok(sample));
    }
}
