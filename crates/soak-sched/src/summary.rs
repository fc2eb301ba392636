//! The result of a soak, for people and for programs.

use crate::memory::Growth;
use crate::round::Tally;
use serde::Serialize;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

/// How a soak ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It has not.
    #[default]
    Running,
    /// Everything added up until the time was over.
    Passed,
    /// As long as it was let.
    Interrupted,
    /// Something did not add up.
    Failed,
    /// Something did not go on.
    Hung,
}

/// The summary.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Summary {
    /// How it ended.
    pub outcome: Outcome,
    /// The error, if any.
    pub failure: Option<String>,
    /// The seed of the first round.
    pub seed: u64,
    /// The seed of the next round, or of the failed round.
    pub next_seed: u64,
    /// How long it ran, in seconds, and was to run.
    pub seconds: f64,
    /// How long it was to run.
    pub asked_seconds: f64,
    /// How many threads the machine runs at once.
    pub cores: usize,
    /// The longest time in which nothing moved, in milliseconds, as far as the watchdog saw.
    pub longest_standstill_ms: u64,
    /// The counts of all rounds.
    #[serde(flatten)]
    pub tally: Tally,
    /// Whether memory grows.
    pub memory: Growth,
}

impl Summary {
    /// Returns a line about the work so far.
    pub(crate) fn line(&self) -> String {
        let Tally {
            rounds,
            account,
            steps,
            ..
        } = &self.tally;
        let memory = self.memory.resident_mib.unwrap_or_default();
        format!(
            "{rounds} rounds, {} processes, {} parcels, {} commands, {} panics, {steps} steps, \
             {memory} MiB",
            account.started, account.parcels, account.asked, account.panics
        )
    }

    /// Writes the summary to a file.
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        fs::write(path, text)
    }

    pub(crate) fn set_time(&mut self, time: Duration) {
        self.seconds = (time.as_secs_f64() * 10.0).round() / 10.0;
    }
}
