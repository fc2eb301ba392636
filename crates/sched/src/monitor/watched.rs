//! What the monitor knows of a worker's turn.

use super::count;
use crate::crew::{Relief, Untold};
use crate::reports::{Line, LongStep, LongStepKind};
use crate::shared::Shared;
use std::time::Duration;

/// A thread of the scheduler, as it was at the last look.
#[derive(Clone, Copy, Default)]
pub(super) struct Watched {
    /// The turns that it had begun.
    pub(super) turns: u64,
    /// When that was seen first.
    pub(super) since: Duration,
    /// Whether it was asleep in its turn.
    was_asleep: bool,
    /// How long its thread had computed when the turn was first looked at closely, if the system says.
    computed_before: Option<Option<Duration>>,
    /// Since when it computes, for all that is known: what it does while it is about to block does not count.
    computes_since: Duration,
    /// What its steps had announced then.
    announcements: u64,
    /// The turn has been reported.
    pub(super) is_reported: bool,
}

impl Watched {
    /// A turn that has not begun before now.
    pub(super) fn new(turns: u64, announcements: u64, now: Duration) -> Self {
        let mut watched = Self {
            turns,
            announcements,
            ..Self::default()
        };
        watched.begin(now);
        watched
    }

    /// The turn has not begun before now.
    pub(super) fn begin(&mut self, now: Duration) {
        (self.since, self.computes_since) = (now, now);
        (self.was_asleep, self.computed_before) = (false, None);
    }

    /// Whether the worker is still in that turn, or has not begun another since.
    pub(super) fn is_current(&self, shared: &Shared, worker: usize) -> bool {
        shared.counters.of(Some(worker)).turns.get() == self.turns
    }

    /// What is wrong with the turn, if something is, and whether its step has said so.
    pub(super) fn fault(
        &mut self,
        shared: &Shared,
        worker: usize,
        now: Duration,
    ) -> Option<(LongStepKind, bool)> {
        let crew = &shared.crew;
        let was_asleep = self.was_asleep;
        self.was_asleep = crew.is_asleep(worker) == Some(true);
        let lasted = now.saturating_sub(self.since);
        let blocks = was_asleep && self.was_asleep && lasted >= shared.config.blocked_step;
        let is_announced = is_odd(crew.announcements(worker));
        if blocks || is_announced {
            return Some((LongStepKind::Blocked, is_announced));
        }
        let computes = self.computes(shared, worker, now);
        computes.then_some((LongStepKind::Computing, false))
    }

    /// Whether it has computed for long, without a word.
    pub(super) fn computes(&mut self, shared: &Shared, worker: usize, now: Duration) -> bool {
        self.computed(shared, worker, now) >= shared.config.long_step
    }

    /// For how long it has computed without a word.
    fn computed(&mut self, shared: &Shared, worker: usize, now: Duration) -> Duration {
        let announcements = shared.crew.announcements(worker);
        if self.announcements != announcements {
            self.announcements = announcements;
            (self.computes_since, self.computed_before) = (now, None);
        }
        if is_odd(announcements) {
            return Duration::ZERO;
        }
        // Not by the clock on the wall: where many threads share a processor all steps would take long,
        // and more threads would make them longer.
        let computed = shared.crew.computed(worker);
        let before = *self.computed_before.get_or_insert(computed);
        match (before, computed) {
            (Some(before), Some(now)) => now.saturating_sub(before),
            _ => now.saturating_sub(self.computes_since),
        }
    }

    /// What there is to report of the turn, when a process runs.
    pub(super) fn relief(
        &self,
        shared: &Shared,
        worker: usize,
        (kind, is_announced): (LongStepKind, bool),
        lasted: Duration,
    ) -> Option<Relief> {
        let pid = shared.running_on(worker)?;
        let step = LongStep {
            pid,
            method: shared.registry.method(pid.id()),
            worker,
            kind,
            is_announced,
            lasted,
            is_over: false,
            backtrace: None,
        };
        Some(Relief {
            line: shared.reports.line(&step, shared.config.report_interval),
            turn: self.turns,
            step,
        })
    }

    /// Reports the turn of a worker whose place has been taken already, because it computes for long. Returns
    /// whether it was still in that turn.
    pub(super) fn report(&self, shared: &Shared, worker: usize, lasted: Duration) -> bool {
        let relief = self.relief(shared, worker, (LongStepKind::Computing, false), lasted);
        let is_in_turn = |relief: &Relief| shared.is_in_turn(worker, self.turns, relief.step.pid);
        let Some(relief) = relief.filter(is_in_turn) else {
            return false;
        };
        let Relief { step, turn, line } = relief.clone();
        let interval = shared.config.report_interval;
        shared.reports.add(step, turn, line, interval);
        if !is_in_turn(&relief) {
            // The worker may have said that it is over before it was known.
            shared.reports.end(worker);
        }
        count(shared, LongStepKind::Computing);
        if line != Line::Suppress {
            shared.crew.have_told(Untold::Step(relief));
            // Who sleeps since the last look may not have seen it.
            shared.idle.notify();
        }
        true
    }
}

/// See [`Crew::announcements`](crate::crew::Crew::announcements).
fn is_odd(announcements: u64) -> bool {
    !announcements.is_multiple_of(2)
}
