//! Jobs that wait for the time of their next try.

use crate::pool::entry::{LineOf, Queued};
use ganger_sched::Instant;
use std::collections::{BTreeMap, BTreeSet};

/// O(log n) for each.
pub(super) struct Delayed<J, A> {
    /// The jobs by number, with the lines in which they wait afterwards.
    jobs: BTreeMap<u64, (Instant, LineOf, Queued<J, A>)>,
    due: BTreeSet<(Instant, u64)>,
}

impl<J, A> Delayed<J, A> {
    pub(super) fn new() -> Self {
        Self {
            jobs: BTreeMap::new(),
            due: BTreeSet::new(),
        }
    }

    pub(super) fn insert(&mut self, due: Instant, of: LineOf, entry: Queued<J, A>) {
        self.due.insert((due, entry.number));
        self.jobs.insert(entry.number, (due, of, entry));
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<Queued<J, A>> {
        let (due, _, entry) = self.jobs.remove(&number)?;
        self.due.remove(&(due, number));
        Some(entry)
    }

    /// Returns the due time of the first job.
    pub(super) fn next(&self) -> Instant {
        self.due.first().map_or(Instant::NEVER, |it| it.0)
    }

    /// Takes the first job out, if it is due.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<(LineOf, Queued<J, A>)> {
        let &(due, number) = self.due.first().filter(|it| it.0 <= now)?;
        self.due.remove(&(due, number));
        let (_, of, entry) = self.jobs.remove(&number)?;
        Some((of, entry))
    }
}
