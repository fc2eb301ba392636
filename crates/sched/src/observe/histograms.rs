//! How durations are distributed.

use ganger_sync::TryLock;
use hdrhistogram::Histogram;
use std::collections::HashMap;
use std::fmt;

/// Significant decimal digits of a distribution.
const DIGITS: u8 = 2;

/// The digits of a type's distributions.
const DIGITS_OF_TYPE: u8 = 1;

/// The most types with a distribution of their own, at a worker.
const TYPES: usize = 256;

/// The name of all further types.
const OTHERS: &str = "other types";

/// How durations are distributed, in nanoseconds, since the scheduler was built.
///
/// Durations are sampled: every 64th step of a worker, every 64th wait of a process. A value is
/// exact to two digits.
#[derive(Clone)]
#[non_exhaustive]
pub struct Distributions {
    /// From the moment at which a process is ready to the begin of its step.
    pub ready: Histogram<u64>,
    /// From the begin of a step to the begin of the next step of the process, or the end of its
    /// turn: with its yields to handlers that answer at once.
    pub step: Histogram<u64>,
    /// From the moment at which an event is in the mailbox to the begin of its step.
    pub mail: Histogram<u64>,
    /// The lateness of the earliest among timers fired together.
    pub timer: Histogram<u64>,
    /// `ready` and `step` by the names of the processes' types. The values are exact to a single
    /// digit.
    pub by_type: HashMap<&'static str, OfType>,
}

/// The distributions of a type of processes.
#[derive(Clone)]
#[non_exhaustive]
pub struct OfType {
    /// As [`Distributions::ready`].
    pub ready: Histogram<u64>,
    /// As [`Distributions::step`].
    pub step: Histogram<u64>,
}

/// Makes a histogram with this many digits, and of any range.
fn empty(digits: u8) -> Histogram<u64> {
    Histogram::new(digits).unwrap_or_else(|error| unreachable!("the digits are few: {error}"))
}

/// Records a value. A histogram of any range has a place for each value.
fn record(histogram: &mut Histogram<u64>, nanos: u64) {
    let _is_recorded = histogram.record(nanos);
}

fn append(to: &mut Histogram<u64>, more: &Histogram<u64>) {
    if let Err(error) = to.add(more) {
        unreachable!("a histogram of any range takes another one: {error}")
    }
}

impl Default for Distributions {
    fn default() -> Self {
        Self {
            ready: empty(DIGITS),
            step: empty(DIGITS),
            mail: empty(DIGITS),
            timer: empty(DIGITS),
            by_type: HashMap::new(),
        }
    }
}

impl Default for OfType {
    fn default() -> Self {
        Self {
            ready: empty(DIGITS_OF_TYPE),
            step: empty(DIGITS_OF_TYPE),
        }
    }
}

impl fmt::Debug for Distributions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Distributions")
            .field("ready", &self.ready.len())
            .field("step", &self.step.len())
            .field("mail", &self.mail.len())
            .field("timer", &self.timer.len())
            .field("by_type", &self.by_type)
            .finish()
    }
}

impl fmt::Debug for OfType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OfType")
            .field("ready", &self.ready.len())
            .field("step", &self.step.len())
            .finish()
    }
}

impl Distributions {
    pub(super) fn add_ready(&mut self, nanos: u64, of: &'static str) {
        record(&mut self.ready, nanos);
        record(&mut self.of(of).ready, nanos);
    }

    pub(super) fn add_step(&mut self, nanos: u64, of: &'static str) {
        record(&mut self.step, nanos);
        record(&mut self.of(of).step, nanos);
    }

    pub(super) fn add_mail(&mut self, nanos: u64) {
        record(&mut self.mail, nanos);
    }

    pub(super) fn add_timer(&mut self, nanos: u64) {
        record(&mut self.timer, nanos);
    }

    fn of(&mut self, name: &'static str) -> &mut OfType {
        let others = usize::from(self.by_type.contains_key(OTHERS));
        let is_known = self.by_type.len() - others < TYPES || self.by_type.contains_key(name);
        self.by_type
            .entry(if is_known { name } else { OTHERS })
            .or_default()
    }

    fn append(&mut self, more: &Self) {
        append(&mut self.ready, &more.ready);
        append(&mut self.step, &more.step);
        append(&mut self.mail, &more.mail);
        append(&mut self.timer, &more.timer);
        for (name, more) in &more.by_type {
            let of = self.of(name);
            append(&mut of.ready, &more.ready);
            append(&mut of.step, &more.step);
        }
    }
}

/// A worker's measures not yet taken by a reader.
#[derive(Default)]
pub(super) struct Samples(TryLock<Option<Box<Distributions>>>);

impl Samples {
    /// Adds a sample, by the worker. Drops the sample if a reader is there at this moment.
    pub(super) fn add(&self, add: impl FnOnce(&mut Distributions)) {
        let _is_added = self.0.try_with(|it| add(it.get_or_insert_default()));
    }

    /// Moves the samples, for a reader. Leaves samples that the worker is about to add.
    pub(super) fn move_to(&self, sum: &mut Distributions) {
        if let Ok(Some(more)) = self.0.try_with(Option::take) {
            sum.append(&more);
        }
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_readers_take_adds_up() {
        let (samples, mut sum) = (Samples::default(), Distributions::default());
        samples.move_to(&mut sum);
        for round in 1..=3_u64 {
            samples.add(|it| it.add_step(1_000 * round, "a"));
            samples.add(|it| it.add_ready(7, "b"));
            samples.add(|it| it.add_mail(1 << 40));
            samples.add(|it| it.add_timer(0));
            samples.move_to(&mut sum);
            assert_eq!(sum.step.len(), round);
        }
        assert_eq!((sum.step.max(), sum.by_type["a"].step.len()), (3_007, 3));
        assert_eq!((sum.by_type["b"].ready.len(), sum.timer.len()), (3, 3));
        assert!(sum.mail.min() > 1 << 39);
    }

    #[test]
    fn a_worker_tells_so_many_types_apart() {
        let mut all = Distributions::default();
        for number in 0..2 * TYPES {
            let name: &'static str = Box::leak(number.to_string().into_boxed_str());
            all.add_step(1, name);
        }
        assert_eq!(all.by_type.len(), TYPES + 1);
        assert_eq!(all.by_type[OTHERS].step.len(), TYPES as u64);
        let mut sum = Distributions::default();
        sum.append(&all);
        // Their order differs, and with it the first types.
        assert_eq!(sum.by_type.len(), TYPES + 1);
        let all: u64 = sum.by_type.values().map(|it| it.step.len()).sum();
        assert_eq!(all, 2 * TYPES as u64);
    }
}
