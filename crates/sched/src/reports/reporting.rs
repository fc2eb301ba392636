//! A scheduler's data for its reports.

use crate::reports::failures::Lines;
use crate::reports::long_steps::LongSteps;
use crate::reports::queue::Reports;
use ganger_os::Sampler;
use ganger_sync::atomic::AtomicBool;
use std::sync::Arc;

#[derive(Default)]
pub(crate) struct Reporting {
    pub(crate) long_steps: LongSteps,
    pub(crate) reports: Arc<Reports>,
    pub(crate) failure_lines: Lines,
    /// The sampler of threads, where reports have backtraces, or profiles are allowed.
    pub(crate) backtraces: Option<Box<dyn Sampler>>,
    /// A profile is being made.
    pub(crate) is_profiled: AtomicBool,
}
