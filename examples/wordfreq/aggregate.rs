//! The process that adds the files up.
//!
//! It waits idle for reports. When it knows the number of reports, and has them all, it finishes
//! with the [`Summary`]. A cancel event does not make it finish: the files that are cancelled at
//! the same time still have their reports to send.

use super::chunks::Chunk;
use super::console::{Console, Shown};
use super::gate::Slot;
use super::table::Table;
use ganger::{BoxError, Context, Event, Events, Message, Process, StepOutput, StepResult, Symbol};
use std::path::Path;
use std::sync::Arc;

/// The topic of a file's [`Report`].
pub(crate) const REPORT: Symbol = Symbol::new("report");

/// The topic of the message with the number of reports.
pub(crate) const FINISH: Symbol = Symbol::new("finish");

/// The report of a file's process, sent once.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) outcome: Outcome,
    /// Given back when the report has been dealt with.
    pub(crate) slot: Slot,
    /// Given back then as well: so the tables that wait to be merged are at most as many as the
    /// chunks.
    pub(crate) chunk: Option<Chunk>,
}

/// The outcome of a file.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Its words, all of them unless the run was interrupted.
    Counted { table: Table, bytes: u64 },
    /// A binary file.
    Binary,
    /// The read of the file failed.
    Failed { path: Arc<Path>, error: String },
    /// The run was interrupted before any of the file was counted.
    Unread,
}

/// The sum of the counts.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// The text files.
    pub(crate) files: u64,
    /// The binary files.
    pub(crate) skipped: u64,
    /// The unreadable files.
    pub(crate) failed: u64,
    /// The bytes of the text files.
    pub(crate) bytes: u64,
    /// Their words.
    pub(crate) table: Table,
}

/// Merges reports.
pub(crate) struct Aggregator {
    summary: Summary,
    received: u64,
    expected: Option<u64>,
    console: Arc<Console>,
}

impl Aggregator {
    /// Makes an aggregator with empty counts.
    pub(crate) fn new(console: Arc<Console>) -> Self {
        Self {
            summary: Summary::default(),
            received: 0,
            expected: None,
            console,
        }
    }

    fn take(&mut self, message: Message) -> Result<(), BoxError> {
        let payload = message.payloads.into_first();
        if message.topic == FINISH {
            self.expected = Some(payload.as_u64().ok_or("`finish` needs a number")?);
            return Ok(());
        }
        let report = payload.downcast::<Report>();
        let report = report.map_err(|_| "`report` needs a report")?;
        self.received += 1;
        self.console.file_done();
        self.add(report.outcome);
        drop((report.chunk, report.slot));
        Ok(())
    }

    fn add(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Counted { table, bytes } => {
                self.summary.files += 1;
                self.summary.bytes += bytes;
                self.summary.table.merge(table);
            }
            Outcome::Binary => self.summary.skipped += 1,
            Outcome::Failed { path, error } => {
                self.summary.failed += 1;
                let path = Shown(&path);
                self.console
                    .line(format_args!("can't read {path}: {error}"));
            }
            Outcome::Unread => {}
        }
    }
}

impl Process for Aggregator {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        // The reports of cancelled files are still to come.
        out.defer_cancel();
        for event in events {
            if let Event::Message(message) = event {
                self.take(message)?;
            }
        }
        if self.expected == Some(self.received) {
            out.done(std::mem::take(&mut self.summary));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::gate::Gate;
    use super::*;
    use ganger::{CancelReason, Outcome as StepOutcome, Payload};
    use std::collections::VecDeque;

    fn is_done_after(aggregator: &mut Aggregator, event: Event) -> bool {
        let mut queue = VecDeque::from([event]);
        let mut out = StepOutput::new();
        let mut events = Events::new(&mut queue);
        let context = Context::detached("{test|1}".parse().unwrap());
        aggregator.step(&context, &mut events, &mut out).unwrap();
        matches!(out.outcome(), StepOutcome::Done(_))
    }

    #[test]
    fn all_reports_are_awaited_whenever_the_end_is_announced() {
        for announced_after in 0..=3 {
            let gate = Gate::new(3);
            let mut aggregator = Aggregator::new(Arc::new(Console::new()));
            let report = || {
                let report = Report {
                    outcome: Outcome::Binary,
                    slot: gate.enter().unwrap(),
                    chunk: None,
                };
                Event::Message(Message::new(REPORT, Payload::any(report)))
            };
            let cancel = Event::Cancel(CancelReason::Shutdown);
            assert!(!is_done_after(&mut aggregator, cancel));
            for received in 0..=3 {
                if received == announced_after {
                    let finish = Event::Message(Message::new(FINISH, 3_u64));
                    assert_eq!(is_done_after(&mut aggregator, finish), received == 3);
                }
                if received < 3 {
                    let complete = received == 2 && announced_after < 3;
                    assert_eq!(is_done_after(&mut aggregator, report()), complete);
                }
            }
            gate.wait_until_empty().unwrap();
        }
    }
}
