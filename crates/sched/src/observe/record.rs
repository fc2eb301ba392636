//! The counts of a process.
//!
//! The owner of the run token writes all but `behind`, which senders add to, and `mail`, which a
//! sender sets where nothing is noted. No value depends on another, so all accesses are relaxed: a
//! reader sees each value as it was at a moment of its own.
//!
//! **The length of the mailbox** is `waiting`, the items out of the mailbox that wait for a step,
//! and the items in the mailbox: `behind`, the count of all items put there, less `drained`, the
//! count of all taken out. A sender adds to `behind` after the push. So the difference may be below
//! zero for a moment, and a reader takes it for zero.
//!
//! **The time in the mailbox** is measured for one event at a time. Its sender notes the moment,
//! and the number of items before it. Each step subtracts its events. A step with more events than
//! are left is given the event itself.

use super::SAMPLE;
use super::labels::Label;
use ganger_sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// The bits of a note with the number of events before the noted one; the moment is above them.
const AHEAD: u32 = 24;

/// Moments in these notes are in units of 2 to the power of this in nanoseconds.
const UNIT: u32 = 7;

#[derive(Default)]
pub(crate) struct Record {
    started: AtomicU64,
    turns: AtomicU64,
    steps: AtomicU64,
    events: AtomicU64,
    /// Nanoseconds; an estimate.
    busy: AtomicU64,
    /// Nanoseconds, of the measured steps.
    longest: AtomicU64,
    /// When the process was made ready, if noted.
    ready: AtomicU64,
    /// When an event was put into the mailbox, and how many were before it, if noted.
    mail: AtomicU64,
    /// The number that a reader keeps of the process until its next look.
    mark: AtomicU64,
    behind: AtomicU32,
    drained: AtomicU32,
    waiting: AtomicU32,
    label: AtomicU16,
    /// The phase of the next measured turn among [`SAMPLE`].
    phase: AtomicU8,
}

/// The counts of a process since its start. An upgraded process has its predecessors' counts, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessCounts {
    /// Finished turns. A process taken from a queue has one, or more when it is far behind with its
    /// events. Exact.
    pub turns: u64,
    /// Steps begun. Exact.
    pub steps: u64,
    /// New events given to steps: messages, control messages, completions, notices. Exact.
    pub events: u64,
    /// The time of its steps, with their yields to handlers that answer at once. An estimate: every
    /// 64th step of a worker is measured, and counts for all.
    pub busy: Duration,
    /// The longest of the measured steps. [`Handle::long_steps`] lists the steps that kept
    /// processes waiting for long.
    ///
    /// [`Handle::long_steps`]: crate::Handle::long_steps
    pub longest: Duration,
    /// The length of its mailbox, with a limit or without: messages, completions, items between
    /// steps, and events left by steps, of which at most 1,048,575 are counted. Exact except for
    /// items being sent at the moment.
    pub waiting: u64,
    /// How long ago the process was started.
    pub age: Duration,
}

impl Record {
    fn get(word: &AtomicU64) -> u64 {
        // Ordering: Relaxed, here and in all other accesses: see the module.
        word.load(Ordering::Relaxed)
    }

    /// Adds to a word, for the owner of the run token, which alone writes it.
    #[inline(always)]
    fn add(word: &AtomicU64, more: u64) {
        // Ordering: Relaxed: see the module.
        word.store(word.load(Ordering::Relaxed) + more, Ordering::Relaxed);
    }

    /// Hands the record to a new process with this id.
    pub(super) fn begin(&self, id: u64, label: Label, now: u64) {
        let zeros = [
            &self.turns,
            &self.steps,
            &self.events,
            &self.busy,
            &self.longest,
            &self.ready,
            &self.mail,
            &self.mark,
        ];
        // Ordering: Relaxed: no other thread knows of the process; see the module.
        for word in zeros {
            word.store(0, Ordering::Relaxed);
        }
        // Ordering: Relaxed: no other thread knows of the process.
        for word in [&self.behind, &self.drained, &self.waiting] {
            word.store(0, Ordering::Relaxed);
        }
        // Ordering: Relaxed: no other thread knows of the process.
        self.started.store(now, Ordering::Relaxed);
        // Neighbours have other phases: Fibonacci hashing (Knuth, The Art of Computer Programming
        // 3, section 6.4).
        let phase = id.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56;
        // Ordering: Relaxed: no other thread knows of the process.
        self.phase.store(phase as u8, Ordering::Relaxed);
        self.set_label(label);
    }

    pub(super) fn label(&self) -> Label {
        // Ordering: Relaxed: see the module.
        Label(self.label.load(Ordering::Relaxed))
    }

    pub(super) fn set_label(&self, label: Label) {
        // Ordering: Relaxed: see the module.
        self.label.store(label.0, Ordering::Relaxed);
    }

    /// Returns whether the wait before the next turn is measured. For the owner of the run token.
    fn is_sampled(&self) -> bool {
        // Ordering: Relaxed: see the module.
        let phase = u64::from(self.phase.load(Ordering::Relaxed));
        (Self::get(&self.turns) + phase).is_multiple_of(SAMPLE.into())
    }

    /// Notes that the process is ready, or is about to be, with the moment if this wait is
    /// measured. Returns whether it is. For the owner of the run token.
    pub(super) fn note_ready(&self, now: impl FnOnce() -> u64) -> bool {
        let is_sampled = self.is_sampled();
        let at = if is_sampled { now() } else { 0 };
        // Ordering: Relaxed: see the module.
        self.ready.store(at, Ordering::Relaxed);
        is_sampled
    }

    /// Notes the moment of an event with `ahead` others before it, if none is noted.
    #[cold]
    pub(super) fn note_mail(&self, ahead: u32, now: u64) {
        if ahead >> AHEAD == 0 {
            let word = (now >> UNIT).max(1) << AHEAD | u64::from(ahead);
            // Ordering: Relaxed: see the module.
            let _is_noted =
                (self.mail).compare_exchange(0, word, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Returns whether a wait is noted.
    #[inline(always)]
    pub(super) fn has_waits(&self) -> bool {
        Self::get(&self.ready) | Self::get(&self.mail) != 0
    }

    /// Takes the note of when the process was made ready, if noted.
    pub(super) fn take_ready(&self) -> Option<u64> {
        let since = Self::get(&self.ready);
        // Ordering: Relaxed: see the module.
        self.ready.store(0, Ordering::Relaxed);
        (since != 0).then_some(since)
    }

    /// Returns how long the noted event has waited, if it is among the next `events`.
    pub(super) fn take_mail(&self, events: usize, now: u64) -> Option<u64> {
        let word = Self::get(&self.mail);
        if word == 0 {
            return None;
        }
        let ahead = word & ((1 << AHEAD) - 1);
        let left = ahead.checked_sub(events as u64);
        // Ordering: Relaxed: see the module. No sender writes while a note is there.
        self.mail.store(
            left.map_or(0, |left| word - ahead + left),
            Ordering::Relaxed,
        );
        let since = word >> AHEAD << UNIT;
        left.is_none().then(|| now.saturating_sub(since))
    }

    /// Counts items put to the front by a sender that owns the run token.
    #[inline(always)]
    pub(super) fn put_first(&self, items: usize) {
        // Ordering: Relaxed: see the module.
        self.waiting.store(round(items), Ordering::Relaxed);
    }

    /// Counts items put into the mailbox by a sender. Returns how many are before them if their
    /// moment should be noted.
    #[inline(always)]
    pub(super) fn put_behind(&self, items: usize) -> Option<u32> {
        // Ordering: Relaxed: see the module.
        let before = self.behind.fetch_add(round(items), Ordering::Relaxed);
        let after = before.wrapping_add(round(items));
        (before / SAMPLE != after / SAMPLE).then(|| self.ahead(before))
    }

    #[cold]
    fn ahead(&self, before: u32) -> u32 {
        // Ordering: Relaxed: see the module.
        let drained = self.drained.load(Ordering::Relaxed);
        let waiting = self.waiting.load(Ordering::Relaxed);
        in_mailbox(before, drained).saturating_add(waiting)
    }

    /// Counts items taken out of the mailbox by the owner of the run token.
    #[inline(always)]
    pub(super) fn receive(&self, items: usize) {
        // Ordering: Relaxed: see the module.
        let drained = self.drained.load(Ordering::Relaxed);
        self.drained
            .store(drained.wrapping_add(round(items)), Ordering::Relaxed);
    }

    /// Begins a step with `events` new events, which leaves `waiting` for later.
    #[inline(always)]
    pub(super) fn step(&self, events: usize, waiting: usize) {
        Self::add(&self.steps, 1);
        Self::add(&self.events, events as u64);
        // Ordering: Relaxed: see the module.
        self.waiting.store(round(waiting), Ordering::Relaxed);
    }

    /// Ends a turn, which leaves `waiting` for the next.
    #[inline(always)]
    pub(super) fn end_turn(&self, waiting: usize) {
        Self::add(&self.turns, 1);
        // Ordering: Relaxed: see the module.
        self.waiting.store(round(waiting), Ordering::Relaxed);
    }

    /// Adds a measured step of `length` nanoseconds, which counts for `steps` steps.
    pub(super) fn spend(&self, length: u64, steps: u32) {
        Self::add(&self.busy, length.saturating_mul(steps.into()));
        // Ordering: Relaxed: see the module.
        let longest = length.max(Self::get(&self.longest));
        self.longest.store(longest, Ordering::Relaxed);
    }

    /// Returns the number kept of this process by the only reader with marks; 0 of a new process.
    pub(super) fn mark(&self) -> u64 {
        Self::get(&self.mark)
    }

    pub(super) fn set_mark(&self, mark: u64) {
        // Ordering: Relaxed: see the module.
        self.mark.store(mark, Ordering::Relaxed);
    }

    /// Returns the counts for a reader.
    pub(super) fn counts(&self, now: u64) -> ProcessCounts {
        // Ordering: Relaxed: see the module. The count of items taken out is read first, so items
        // put in meanwhile count as waiting. A processor may swap the loads: `in_mailbox` then
        // takes a difference below zero for zero.
        let drained = self.drained.load(Ordering::Relaxed);
        let behind = self.behind.load(Ordering::Relaxed);
        let waiting = self.waiting.load(Ordering::Relaxed);
        let time = |word| Duration::from_nanos(Self::get(word));
        ProcessCounts {
            turns: Self::get(&self.turns),
            steps: Self::get(&self.steps),
            events: Self::get(&self.events),
            busy: time(&self.busy),
            longest: time(&self.longest),
            waiting: u64::from(in_mailbox(behind, drained)) + u64::from(waiting),
            age: Duration::from_nanos(now.saturating_sub(Self::get(&self.started))),
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the counts go round")]
#[inline(always)]
fn round(items: usize) -> u32 {
    items as u32
}

/// Returns the number of items in the mailbox. The counts go round.
fn in_mailbox(behind: u32, drained: u32) -> u32 {
    let difference = behind.wrapping_sub(drained);
    if difference > u32::MAX / 2 {
        0
    } else {
        difference
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    // pins: V4
    #[test]
    fn a_record_takes_no_more_than_it_may() {
        // With the count of an allocator whose sizes are 16 bytes apart.
        assert!(size_of::<Record>() + 8 <= 96);
    }

    // pins: V5
    #[test]
    fn what_waits_is_what_was_put_there_and_not_taken() {
        let record = Record::default();
        record.begin(1, Label::NONE, 5);
        let waiting = || record.counts(7).waiting;
        record.put_first(1);
        assert_eq!(waiting(), 1);
        record.put_behind(3);
        assert_eq!(waiting(), 4);
        record.receive(3);
        record.step(2, 2);
        assert_eq!(waiting(), 2);
        // The owner takes it before its sender has counted it.
        record.receive(1);
        assert_eq!(waiting(), 2);
        record.put_behind(1);
        record.end_turn(0);
        let counts = record.counts(1_005);
        assert_eq!((counts.waiting, counts.turns, counts.steps), (0, 1, 1));
        assert_eq!((counts.events, counts.age.as_nanos()), (2, 1_000));
        // The counts go round.
        for word in [&record.behind, &record.drained] {
            // Ordering: Relaxed: the test has one thread.
            word.store(u32::MAX, Ordering::Relaxed);
        }
        record.put_behind(5);
        assert_eq!(waiting(), 5);
        record.receive(5);
        assert_eq!(waiting(), 0);
    }

    #[test]
    fn an_event_is_followed_through_the_mailbox() {
        let record = Record::default();
        record.begin(1, Label::NONE, 5);
        assert!(!record.has_waits());
        record.note_mail(5, 1_280);
        // A second event is not noted meanwhile.
        record.note_mail(0, 1_280_000);
        assert!(record.has_waits());
        assert_eq!(record.take_mail(2, 2_000), None);
        assert_eq!(record.take_mail(3, 3_000), None);
        assert_eq!(record.take_mail(1, 4_280), Some(3_000));
        assert!(!record.has_waits());
        assert_eq!(record.take_mail(1, 5_000), None);
        // Too many are before it.
        record.note_mail(1 << AHEAD, 1_280);
        assert!(!record.has_waits());
        let is_noted = record.note_ready(|| 9);
        assert_eq!(record.take_ready(), is_noted.then_some(9));
        assert_eq!(record.take_ready(), None);
    }

    #[test]
    fn one_turn_of_64_is_measured_and_neighbours_have_others() {
        let phases = |id| {
            let record = Record::default();
            record.begin(id, Label::NONE, 1);
            let mut sampled = Vec::new();
            for turn in 0..128 {
                if record.note_ready(|| 5) {
                    assert_eq!(record.take_ready(), Some(5));
                    sampled.push(turn);
                } else {
                    assert_eq!(record.take_ready(), None);
                }
                record.end_turn(0);
            }
            sampled
        };
        let first: Vec<_> = (1..=64_u64).map(|id| phases(id << 32)).collect();
        assert!(first.iter().all(|it| it.len() == 2 && it[1] - it[0] == 64));
        let distinct: std::collections::HashSet<_> = first.iter().map(|it| it[0]).collect();
        assert!(distinct.len() > 32, "{distinct:?}");
    }

    #[test]
    fn events_are_noted_one_in_64() {
        let record = Record::default();
        let noted = (0..640).filter(|_| record.put_behind(1).is_some()).count();
        assert_eq!(noted, 10);
        assert_eq!(record.put_behind(64), Some(640));
    }
}
