//! How far it is, and how long it will still take.

use super::plan::Turn;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::Instant;

/// A bar on a terminal; elsewhere a line for each workload.
#[derive(Debug)]
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    start: Instant,
}

impl Progress {
    /// Creates the progress of this number of turns.
    pub(super) fn new(turns: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} · {eta} left");
            let bar = ProgressBar::new(turns as u64);
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        Self {
            bar,
            start: Instant::now(),
        }
    }

    /// Begins a turn.
    pub(super) fn begin(&self, turn: &Turn) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
            bar.set_message(format!("{} {}", turn.job.id, turn.job.peer));
        }
    }

    /// Something for people to read, above the bar.
    pub(super) fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }

    /// Removes the bar after the last turn.
    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        eprintln!("measured for {} s", self.start.elapsed().as_secs());
    }
}
