//! Standard error: a progress bar, and lines that do not tear it.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const TEMPLATE: &str = "{spinner} {files} files  [{bar:30}] \
    {decimal_bytes} of {decimal_total_bytes}  {decimal_bytes_per_sec}  {elapsed}";

/// Standard error. Every method may be called from any thread.
#[derive(Debug)]
pub(crate) struct Console {
    bar: ProgressBar,
    /// The finished files. Workers add, and the thread that draws the bar reads.
    files: Arc<AtomicU64>,
}

impl Console {
    /// Creates a console, with a progress bar if standard error is a terminal.
    pub(crate) fn new() -> Self {
        let files = Arc::new(AtomicU64::new(0));
        let target = match io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        let shown = Arc::clone(&files);
        let style = ProgressStyle::with_template(TEMPLATE)
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .with_key(
                "files",
                move |_: &ProgressState, out: &mut dyn fmt::Write| {
                    // Ordering: a number to show; it publishes nothing.
                    let _ = write!(out, "{}", shown.load(Ordering::Relaxed));
                },
            )
            .progress_chars("=> ");
        bar.set_style(style);
        if !bar.is_hidden() {
            bar.enable_steady_tick(Duration::from_millis(100));
        }
        Self { bar, files }
    }

    /// Returns whether the progress bar is visible.
    pub(crate) fn has_progress(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// Adds bytes to the bytes to be counted.
    pub(crate) fn expect(&self, bytes: u64) {
        if self.has_progress() {
            self.bar.inc_length(bytes);
        }
    }

    /// Takes bytes off the bytes to be counted.
    pub(crate) fn advance(&self, bytes: u64) {
        if self.has_progress() {
            self.bar.inc(bytes);
        }
    }

    /// Counts a file that has been dealt with.
    pub(crate) fn file_done(&self) {
        // Ordering: a number to show; it publishes nothing.
        self.files.fetch_add(1, Ordering::Relaxed);
    }

    /// Prints a line, above the progress bar.
    pub(crate) fn line(&self, text: fmt::Arguments<'_>) {
        self.bar.suspend(|| say(text));
    }

    /// Takes the progress bar away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Prints a line of this program to standard error; a failure has nowhere to be reported.
pub(crate) fn say(text: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "wordfreq: {text}");
}

/// A path on a single line, with its control characters escaped.
pub(crate) struct Shown<'a>(pub(crate) &'a Path);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.to_string_lossy().chars() {
            match character.is_control() {
                true => write!(f, "{}", character.escape_default())?,
                false => f.write_char(character)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_shown_on_one_line() {
        assert_eq!(Shown(Path::new("a b/ż.txt")).to_string(), "a b/ż.txt");
        assert_eq!(Shown(Path::new("a\nb\u{1b}[")).to_string(), "a\\nb\\u{1b}[");
    }
}
