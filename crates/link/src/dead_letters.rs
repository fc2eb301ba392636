//! Counts and reports dropped messages.

use ganger_sched::{DeadLetter, DeadLetters, DeadReason, Instant};
use ganger_sync::sync::{Mutex, lock};
use std::collections::BTreeMap;
use std::time::Duration;

/// Counts dead letters by their reasons, and reports some of them at the level WARN: the first, and
/// then at most one in each interval, with the number of unreported letters before it.
///
/// ```
/// use ganger_link::DeadLetterLog;
/// use ganger_proc_api::{BoxError, Message, process_fn};
/// use ganger_sched::{DeadReason, Scheduler};
/// use std::sync::Arc;
///
/// let log = Arc::new(DeadLetterLog::default());
/// let scheduler = Scheduler::builder().dead_letters(Arc::clone(&log) as _).build()?;
/// let process = scheduler.spawn(process_fn(|_, _, out| { out.done(()); Ok(()) }))?;
/// scheduler.terminate(process.pid())?;
/// process.send(Message::new("hello", ()))?;
/// scheduler.start()?;
/// process.wait();
/// assert_eq!(log.count(DeadReason::Ended), 1);
/// # Ok::<(), BoxError>(())
/// ```
#[derive(Debug)]
pub struct DeadLetterLog {
    interval: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    counts: BTreeMap<DeadReason, u64>,
    reported: Option<Instant>,
    unreported: u64,
}

impl Default for DeadLetterLog {
    /// Makes a log that reports once a second.
    fn default() -> Self {
        Self::new(Duration::from_secs(1))
    }
}

impl DeadLetterLog {
    /// Makes a log that reports once in `interval`.
    #[must_use]
    pub fn new(interval: Duration) -> Self {
        Self {
            interval,
            state: Mutex::default(),
        }
    }

    /// Returns the number of dead letters with this reason.
    #[must_use]
    pub fn count(&self, reason: DeadReason) -> u64 {
        let state = lock(&self.state);
        state.counts.get(&reason).copied().unwrap_or_default()
    }

    /// Counts a letter. Returns the number of unreported letters before, if this letter is due for
    /// a report.
    fn add(&self, letter: &DeadLetter) -> Option<u64> {
        let mut state = lock(&self.state);
        *state.counts.entry(letter.reason).or_default() += 1;
        let is_early = |last: Instant| letter.at < last.after(self.interval);
        if state.reported.is_some_and(is_early) {
            state.unreported += 1;
            return None;
        }
        state.reported = Some(letter.at);
        Some(std::mem::take(&mut state.unreported))
    }
}

impl DeadLetters for DeadLetterLog {
    fn dead_letter(&self, letter: &DeadLetter) {
        if let Some(unreported) = self.add(letter) {
            let source = letter.source.map(tracing::field::display);
            tracing::warn!(
                target: "ganger::link", reason = ?letter.reason, source,
                target_pid = %letter.target, topic = %letter.topic, unreported,
                "a message is dropped: no process takes it"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // pins: L8
    #[test]
    fn all_are_counted_and_one_is_reported_in_each_interval() {
        let log = DeadLetterLog::new(Duration::from_secs(1));
        let pid = "{main|7}".parse().unwrap();
        let letter = |reason, millis: u64| {
            let at = Instant::from_nanos(millis * 1_000_000);
            DeadLetter::new(reason, None, pid, "topic".into(), at)
        };
        let millis = [0, 1, 999, 1_000, 1_500, 2_100];
        let reports = millis.map(|it| log.add(&letter(DeadReason::Ended, it)));
        assert_eq!(reports, [Some(0), None, None, Some(2), None, Some(1)]);
        assert_eq!(log.add(&letter(DeadReason::LateFull, 2_101)), None);
        assert_eq!(log.count(DeadReason::Ended), 6);
        assert_eq!(log.count(DeadReason::LateFull), 1);
        assert_eq!(log.count(DeadReason::LateEnded), 0);
    }
}
