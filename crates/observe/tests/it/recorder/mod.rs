//! The recording of a scheduler, as an independent reader of its file sees it.

#[cfg(feature = "serve")]
mod one;
mod overflow;
mod real;
mod simulated;

use crate::trace::perfetto;
use crate::trace::shown::{Shown, Slice, shown};
use ganger_observe::Observer;
use ganger_observe::trace::Trace;
use ganger_sched::Handle;
use std::time::Duration;

/// Longer than any test.
const HOUR: Duration = Duration::from_secs(3600);

/// Returns the trace of the whole recording.
fn trace(scheduler: &Handle) -> Trace {
    Observer::of(scheduler).trace(HOUR).unwrap()
}

/// Returns the file of the trace, as the reader shows it. The reader checks the form: slices nest,
/// flows have two ends, time does not go back, texts are there.
fn seen(scheduler: &Handle) -> Shown {
    shown(&perfetto(&trace(scheduler)))
}

fn argument<'a>(it: &'a Slice, key: &str) -> &'a str {
    it.arguments.get(key).map_or("", |value| value)
}

/// Returns the instants of a category.
fn instants<'a>(shown: &'a Shown, category: &str) -> Vec<&'a Slice> {
    let all = shown.instants.iter();
    all.filter(|it| it.category == category).collect()
}

/// Returns the slices of a category.
fn slices<'a>(shown: &'a Shown, category: &str) -> Vec<&'a Slice> {
    let all = shown.slices.iter();
    all.filter(|it| it.category == category).collect()
}
