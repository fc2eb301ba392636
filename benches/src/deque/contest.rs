//! The deques that run each workload.

use super::{Crossbeam, Deque, Ganger, St3};
use crate::contest::{Contest, Run};

/// The deques of every contest; Ganger's is the first.
pub const DEQUES: [&str; 3] = [Ganger::NAME, Crossbeam::NAME, St3::NAME];

/// A workload of deques.
pub trait Workload {
    /// Returns its name in the tables, with its size.
    fn name(&self) -> String;

    /// Returns its metrics, with units. Of every figure, less is better.
    fn metrics(&self) -> &'static [&'static str];

    /// Does the unmeasured part.
    fn prepare<D: Deque>(&self) -> Run;
}

/// The workload with all deques.
#[must_use]
pub fn contest(workload: &impl Workload) -> Contest {
    let entrants = vec![
        (Ganger::NAME, workload.prepare::<Ganger>()),
        (Crossbeam::NAME, workload.prepare::<Crossbeam>()),
        (St3::NAME, workload.prepare::<St3>()),
    ];
    Contest::new(workload.name(), workload.metrics(), entrants)
}
