//! The monitor's sample of a worker's turn.

use crate::reports::long_steps::{LongStep, LongStepKind, NoticedStep};
use crate::runtime::shared::Shared;
use ganger_os::ThreadFiles;
use std::time::Duration;

/// A thread of the scheduler, as the monitor saw it at its last look.
#[derive(Default)]
pub(super) struct WorkerSample {
    /// The number of the worker's turns.
    pub(super) turns: u64,
    /// When the monitor first saw this number.
    pub(super) since: Duration,
    /// Whether it was asleep in its turn.
    was_asleep: bool,
    /// How long its thread had computed when the monitor first looked at the turn closely, if the
    /// system says.
    computed_before: Option<Option<Duration>>,
    /// Since when it computes, as far as the monitor knows. Time inside `blocking` does not count.
    computes_since: Duration,
    /// How often its steps had announced a block, and ceased to block.
    announcements: u64,
    /// The turn has been reported.
    pub(super) is_reported: bool,
    /// The system's files on its thread. They stay open while the monitor looks closely at the
    /// worker, since each opening costs as much as five looks.
    files: ThreadFiles,
}

impl WorkerSample {
    /// Begins another turn, which has not begun before now.
    pub(super) fn begin_turn(&mut self, turns: u64, announcements: u64, now: Duration) {
        (self.turns, self.announcements, self.is_reported) = (turns, announcements, false);
        self.begin(now);
    }

    /// Closes the files: workers without a turn, and replaced ones, are any number.
    pub(super) fn close_files(&mut self) {
        self.files = ThreadFiles::default();
    }

    /// Begins the sample of a turn that has not begun before now.
    pub(super) fn begin(&mut self, now: Duration) {
        (self.since, self.computes_since) = (now, now);
        (self.was_asleep, self.computed_before) = (false, None);
    }

    /// Returns whether the worker is still in the sampled turn, or has not begun another since.
    pub(super) fn is_current(&self, shared: &Shared, worker: usize) -> bool {
        shared.counters.of(Some(worker)).turns.get() == self.turns
    }

    /// Returns the fault of the turn, if any, and whether its step has announced it.
    pub(super) fn fault(
        &mut self,
        shared: &Shared,
        worker: usize,
        now: Duration,
    ) -> Option<(LongStepKind, bool)> {
        let slots = &shared.worker_slots;
        let was_asleep = self.was_asleep;
        let thread = slots.thread(worker);
        self.was_asleep = thread.and_then(|it| self.files.is_asleep(it)) == Some(true);
        let lasted = now.saturating_sub(self.since);
        let blocks = was_asleep && self.was_asleep && lasted >= shared.config.blocked_step;
        let is_announced = is_odd(slots.announcements(worker));
        if blocks || is_announced {
            return Some((LongStepKind::Blocked, is_announced));
        }
        let computes = self.computes(shared, worker, now);
        computes.then_some((LongStepKind::Computing, false))
    }

    /// Returns whether the turn has computed for long, outside of `blocking`.
    pub(super) fn computes(&mut self, shared: &Shared, worker: usize, now: Duration) -> bool {
        let announcements = shared.worker_slots.announcements(worker);
        if self.announcements != announcements {
            self.announcements = announcements;
            (self.computes_since, self.computed_before) = (now, None);
        }
        if is_odd(announcements) {
            return false;
        }
        // Not by the clock on the wall: where many threads share a processor all steps would take
        // long, and more threads would make them longer.
        let thread = shared.worker_slots.thread(worker);
        let computed = thread.and_then(|it| self.files.computed(it));
        let before = *self.computed_before.get_or_insert(computed);
        let computed = match (before, computed) {
            (Some(before), Some(now)) => now.saturating_sub(before),
            _ => now.saturating_sub(self.computes_since),
        };
        computed >= shared.config.long_step
    }

    /// Returns the step of the turn, with its fault, when the worker runs a process.
    pub(super) fn notice(
        &self,
        shared: &Shared,
        worker: usize,
        (kind, is_announced): (LongStepKind, bool),
        lasted: Duration,
    ) -> Option<NoticedStep> {
        let pid = shared.running_on(worker)?;
        let step = LongStep {
            pid,
            method: shared.census.registry.read(pid.id(), |task| task.method),
            worker,
            kind,
            is_announced,
            lasted,
            is_over: false,
            backtrace: None,
        };
        let turn = self.turns;
        Some(NoticedStep { turn, step })
    }
}

/// Returns whether the number is odd: see
/// [`WorkerSlots::announcements`](crate::runtime::worker_slots::WorkerSlots::announcements).
fn is_odd(announcements: u64) -> bool {
    !announcements.is_multiple_of(2)
}
