//! Events between two looks, worth a file.

use crate::alarms::{Board, Kind};
use ganger_proc_api::Pid;
use ganger_sched::{Handle, Instant, LongStep, LongStepKind};
use std::collections::BTreeMap;
use std::time::Duration;

/// The causes with a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) long_step: Option<Duration>,
    pub(super) alarm: bool,
    pub(super) failure: bool,
}

/// The state at the look before.
#[derive(Debug, Default)]
pub(super) struct Before {
    steps: Vec<Followed>,
    /// How many alarms of each kind had been raised.
    alarms: BTreeMap<Kind, u64>,
    failed: u64,
}

/// A step among the scheduler's last long steps.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Followed {
    pid: Pid,
    worker: usize,
    kind: LongStepKind,
    is_over: bool,
    lasted: Duration,
    /// When a look has seen it first.
    seen: Instant,
    /// Whether it was beyond the limit at a look.
    is_told: bool,
}

impl Followed {
    fn new(step: &LongStep, seen: Instant) -> Self {
        Self {
            pid: step.pid,
            worker: step.worker,
            kind: step.kind,
            is_over: step.is_over,
            lasted: step.lasted,
            seen,
            is_told: false,
        }
    }

    /// Returns whether a later look may see this step as `new`.
    fn may_be(&self, new: &Self) -> bool {
        let of = |it: &Self| (it.pid, it.worker, it.kind);
        let is_later = new.lasted == self.lasted || (!self.is_over && new.is_over);
        of(self) == of(new) && is_later && new.is_over >= self.is_over
    }

    /// Returns the length of the step by now. The length of a running step is from its report.
    fn length(&self, now: Instant) -> Duration {
        let since = if self.is_over {
            Duration::ZERO
        } else {
            now - self.seen
        };
        self.lasted + since
    }
}

impl Before {
    /// Takes over earlier events. A running step may still become long enough.
    pub(super) fn now(handle: &Handle) -> Self {
        let mut before = Self::default();
        let all = Wanted {
            long_step: None,
            alarm: true,
            failure: true,
        };
        let _old = before.look(handle, all);
        for step in &mut before.steps {
            step.is_told = step.is_over;
        }
        before
    }

    /// Returns the wanted cause since the look before: the first of a step that is too long, an
    /// alarm, and a failure. O(1).
    pub(super) fn look(&mut self, handle: &Handle, wanted: Wanted) -> Option<String> {
        let now = handle.now();
        let steps = handle.long_steps();
        let steps = steps.iter().map(|it| Followed::new(it, now)).collect();
        let is_long = self.is_long(steps, wanted.long_step, now);
        let alarm = self.alarm(Board::of(handle).counts());
        let total = handle.stats().total;
        let failed = total.failed + total.panicked;
        let has_failed = failed > std::mem::replace(&mut self.failed, failed);

        let long_step = is_long.then(|| "long_step".to_owned());
        let alarm = alarm.filter(|_| wanted.alarm);
        let alarm = alarm.map(|kind| format!("alarm_{}", kind.name()));
        let failure = (has_failed && wanted.failure).then(|| "failure".to_owned());
        long_step.or(alarm).or(failure)
    }

    /// Takes the last steps over; whether one of them is beyond the limit for the first time.
    fn is_long(&mut self, mut new: Vec<Followed>, limit: Option<Duration>, now: Instant) -> bool {
        // The scheduler has dropped some of the oldest since, and added some.
        let old = &self.steps;
        let is_rest = |dropped: &usize| {
            let rest = &old[*dropped..];
            rest.len() <= new.len() && rest.iter().zip(&new).all(|(old, new)| old.may_be(new))
        };
        let dropped = (0..=old.len()).find(is_rest).unwrap_or(old.len());
        for (old, new) in old[dropped..].iter().zip(&mut new) {
            (new.seen, new.is_told) = (old.seen, old.is_told);
        }
        self.steps = new;
        let mut is_new = false;
        for step in self.steps.iter_mut().filter(|it| !it.is_told) {
            step.is_told = limit.is_some_and(|limit| step.length(now) >= limit);
            is_new |= step.is_told;
        }
        is_new
    }

    /// Returns the kind of an alarm raised since the look before, other than about the files.
    fn alarm(&mut self, counts: Vec<(Kind, u64, u64)>) -> Option<Kind> {
        let counts = counts.into_iter().map(|(kind, _, count)| (kind, count));
        let old = std::mem::replace(&mut self.alarms, counts.collect());
        let mut new = self.alarms.iter();
        let is_new = |(kind, count): &(&Kind, &u64)| {
            **kind != Kind::TraceFiles && **count > old.get(kind).copied().unwrap_or(0)
        };
        new.find(is_new).map(|(kind, _)| *kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ganger_proc_api::HostName;

    const LIMIT: Option<Duration> = Some(Duration::from_secs(1));

    fn step(worker: usize, millis: u64, is_over: bool, seen: u64) -> Followed {
        Followed {
            pid: Pid::new(HostName::new("test").unwrap(), 1),
            worker,
            kind: LongStepKind::Blocked,
            is_over,
            lasted: Duration::from_millis(millis),
            seen: at(seen),
            is_told: false,
        }
    }

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    // pins: V15
    #[test]
    fn a_step_is_told_once_when_it_is_beyond_the_limit() {
        let mut before = Before::default();
        let mut look = |now, steps: &[(usize, u64, bool)]| {
            let steps = steps.iter().map(|it| step(it.0, it.1, it.2, now));
            before.is_long(steps.collect(), LIMIT, at(now))
        };
        assert!(!look(0, &[]));
        // Noticed early, it goes on for longer.
        assert!(!look(5_000, &[(0, 2, false)]));
        assert!(!look(5_900, &[(0, 2, false)]));
        assert!(look(6_000, &[(0, 2, false)]));
        assert!(!look(7_000, &[(0, 2, false)]));
        assert!(!look(8_000, &[(0, 3_000, true)]));
        // Of the same worker and process, and short; and another one, too long already.
        assert!(!look(9_000, &[(0, 3_000, true), (0, 999, true)]));
        assert!(look(
            9_100,
            &[(0, 3_000, true), (0, 999, true), (0, 1_000, true)]
        ));
        // The oldest are dropped.
        assert!(!look(9_200, &[(0, 1_000, true), (0, 2, false)]));
        assert!(!look(9_300, &[(0, 2, false)]));
        assert!(!look(9_400, &[(0, 200, true)]));
        // All are dropped between two looks, and others are there, of the same length.
        assert!(!look(9_500, &[(1, 200, true)]));
        assert!(look(9_600, &[(0, 1_000, true), (1, 1_000, true)]));
    }

    // pins: V15
    #[test]
    fn an_alarm_is_told_once_and_that_about_the_files_never() {
        let mut before = Before::default();
        let mut look = |counts: &[(Kind, u64)]| {
            // The end of the alarm is no matter.
            let counts = counts.iter().map(|it| (it.0, 0, it.1));
            before.alarm(counts.collect())
        };
        assert_eq!(look(&[(Kind::Mailbox, 0), (Kind::LongStep, 0)]), None);
        let counts = [(Kind::Mailbox, 0), (Kind::LongStep, 1)];
        assert_eq!(look(&counts), Some(Kind::LongStep));
        assert_eq!(look(&counts), None);
        assert_eq!(look(&[counts[1], (Kind::TraceFiles, 1)]), None);
        let counts = [(Kind::LongStep, 2), (Kind::TraceFiles, 2)];
        assert_eq!(look(&counts), Some(Kind::LongStep));
    }
}
