//! The rules of supervisors and children.

use ganger_sched::Instant;
use std::time::Duration;

/// The children to restart after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Strategy {
    /// The failed child alone.
    OneForOne,
    /// All children.
    OneForAll,
    /// The failed child, and the children that were started after it.
    RestForOne,
    /// The failed child alone. Many children come and go at run time. The supervisor stops them all
    /// at once, and forgets each child after its end.
    Dynamic,
}

/// The ends after which a child is restarted.
///
/// A child that ends as cancelled after a request is never restarted, nor is a child that its
/// supervisor has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Restart {
    /// After each end, also when the child is done.
    #[default]
    Permanent,
    /// After a failure: an end neither as done nor as cancelled.
    Transient,
    /// Never, not even with its group.
    Temporary,
}

/// The time for a child to finish on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShutdownTimeout {
    /// The supervisor cancels the child, and terminates it after this time.
    Within(Duration),
    /// The supervisor cancels the child, and waits without a limit.
    Unlimited,
    /// The supervisor terminates the child at once.
    AtOnce,
}

impl Default for ShutdownTimeout {
    fn default() -> Self {
        Self::Within(Duration::from_secs(5))
    }
}

/// Whether a supervisor ends by itself when [significant](crate::ChildSpec::significant) children
/// have ended. The end of a child that its supervisor stops or restarts does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AutoShutdown {
    /// The supervisor does not end by itself.
    #[default]
    Never,
    /// After the first end of a significant child.
    Any,
    /// After the end of the last significant child.
    All,
}

/// The waits before the restarts of a child that fails repeatedly.
///
/// The first wait is the initial wait, and each further wait is longer by the factor, up to the
/// longest. After a run of the stable time the waits begin anew.
///
/// ```
/// use ganger_supervise::BackOff;
/// use std::time::Duration;
///
/// let back_off = BackOff::from(Duration::from_millis(100))
///     .factor(3.0)
///     .longest(Duration::from_secs(30))
///     .jitter(0.2)
///     .stable_after(Duration::from_secs(10));
/// let waits = [0, 1, 2, 50].map(|failures| back_off.without_jitter(failures).as_millis());
/// assert_eq!(waits, [100, 300, 900, 30_000]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BackOff {
    initial: Duration,
    factor: f64,
    longest: Duration,
    jitter: f64,
    stable: Duration,
    /// The waits are for failed starts alone: a child that has run is restarted at once.
    is_of_starts: bool,
}

impl From<Duration> for BackOff {
    /// Waits from this initial wait on, twice as long each time, up to 90 seconds, with 10 % of
    /// jitter, and a stable time of 5 seconds.
    fn from(initial: Duration) -> Self {
        Self {
            initial,
            factor: 2.0,
            longest: Duration::from_secs(90),
            jitter: 0.1,
            stable: Duration::from_secs(5),
            is_of_starts: false,
        }
    }
}

impl BackOff {
    /// Sets the factor between a wait and the next wait. At least 1.
    #[must_use]
    pub fn factor(self, factor: f64) -> Self {
        let factor = if factor >= 1.0 { factor } else { 1.0 };
        Self { factor, ..self }
    }

    /// Sets the longest wait, before the jitter.
    #[must_use]
    pub fn longest(self, longest: Duration) -> Self {
        Self { longest, ..self }
    }

    /// Sets the jitter of each wait, as a part of the wait: from 0 to 1.
    #[must_use]
    pub fn jitter(self, jitter: f64) -> Self {
        let jitter = if jitter > 0.0 { jitter.min(1.0) } else { 0.0 };
        Self { jitter, ..self }
    }

    /// Sets the stable time: after a run of this length the next failure counts as the first.
    #[must_use]
    pub fn stable_after(self, stable: Duration) -> Self {
        Self { stable, ..self }
    }

    /// Returns the wait after `failures` earlier failures.
    #[must_use]
    pub fn without_jitter(&self, failures: u32) -> Duration {
        let times = self.factor.powf(f64::from(failures));
        self.longest.min(saturating(self.initial, times))
    }

    /// Returns the same waits, for failed starts alone.
    pub(crate) fn of_starts(self) -> Self {
        let is_of_starts = true;
        Self {
            is_of_starts,
            ..self
        }
    }

    /// Returns the wait with its jitter. `chance` is from 0 to 1.
    pub(crate) fn wait(&self, failures: u32, chance: f64) -> Duration {
        let times = 1.0 + self.jitter * (2.0 * chance - 1.0);
        saturating(self.without_jitter(failures), times)
    }
}

/// The failures of a child since its last stable run, and the begin of its present run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Streak {
    failures: u32,
    /// `None` while the child does not run.
    since: Option<Instant>,
}

impl Streak {
    pub(crate) fn started(&mut self, now: Instant) {
        self.since = Some(now);
    }

    /// Counts a failure of the child, or of its start. Returns the wait before the next start.
    pub(crate) fn failed(
        &mut self,
        now: Instant,
        back_off: Option<BackOff>,
        chance: f64,
    ) -> Duration {
        let since = self.since.take();
        let Some(back_off) = back_off else {
            return Duration::ZERO;
        };
        if since.is_some_and(|since| now.since(since) >= back_off.stable) {
            self.failures = 0;
        }
        if since.is_some() && back_off.is_of_starts {
            self.failures = 0;
            return Duration::ZERO;
        }
        let wait = back_off.wait(self.failures, chance);
        self.failures = self.failures.saturating_add(1);
        wait
    }
}

fn saturating(time: Duration, times: f64) -> Duration {
    Duration::try_from_secs_f64(time.as_secs_f64() * times).unwrap_or(Duration::MAX)
}
