//! What a user says of a supervisor and of its children.

use ganger_sched::Instant;
use std::time::Duration;

/// Which children are restarted when one fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Strategy {
    /// That child alone.
    OneForOne,
    /// All children.
    OneForAll,
    /// That child, and those that were started after it.
    RestForOne,
    /// That child alone. The children are started later, are many, are stopped all at once, and are
    /// forgotten when they have ended.
    Dynamic,
}

/// When a child is restarted.
///
/// A child that was asked to finish, and has ended as cancelled, is not restarted, whatever this
/// says. Neither is one that its supervisor has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Restart {
    /// Whenever it ends, also when it is done.
    #[default]
    Permanent,
    /// When it fails: it ends neither as done nor as cancelled.
    Transient,
    /// Never, not even when others of its group are.
    Temporary,
}

/// How long a child that is asked to finish has for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShutdownTimeout {
    /// It is cancelled, and terminated after that time.
    Within(Duration),
    /// It is cancelled, and has as long as it wants.
    Unlimited,
    /// It is terminated at once.
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
    /// It does not.
    #[default]
    Never,
    /// When one has.
    Any,
    /// When none is left.
    All,
}

/// How long a supervisor waits before it restarts a child, when that fails again and again.
///
/// The first wait is the initial one, and each further one is longer by the factor, up to the
/// longest. A child that has run for the stable time begins anew.
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
    /// A child that was started and has failed is restarted at once, and begins anew.
    is_of_starts: bool,
}

impl From<Duration> for BackOff {
    /// With that first wait, twice as long each time, 90 seconds at the most, a tenth more or less
    /// by chance, and stable after 5 seconds.
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
    /// Each wait is so many times as long as the one before. At least 1.
    #[must_use]
    pub fn factor(self, factor: f64) -> Self {
        let factor = if factor >= 1.0 { factor } else { 1.0 };
        Self { factor, ..self }
    }

    /// No wait is longer, but for the jitter.
    #[must_use]
    pub fn longest(self, longest: Duration) -> Self {
        Self { longest, ..self }
    }

    /// By which part each wait is longer or shorter by chance: from 0 to 1.
    #[must_use]
    pub fn jitter(self, jitter: f64) -> Self {
        let jitter = if jitter > 0.0 { jitter.min(1.0) } else { 0.0 };
        Self { jitter, ..self }
    }

    /// A child that has run for so long is stable: its next failure counts as the first one.
    #[must_use]
    pub fn stable_after(self, stable: Duration) -> Self {
        Self { stable, ..self }
    }

    /// The wait after so many failures before this one.
    #[must_use]
    pub fn without_jitter(&self, failures: u32) -> Duration {
        let times = self.factor.powf(f64::from(failures));
        self.longest.min(saturating(self.initial, times))
    }

    /// The waits are for starts that fail, and for nothing else.
    pub(crate) fn of_starts(self) -> Self {
        let is_of_starts = true;
        Self {
            is_of_starts,
            ..self
        }
    }

    /// The same, longer or shorter by chance. `chance` is from 0 to 1.
    pub(crate) fn wait(&self, failures: u32, chance: f64) -> Duration {
        let times = 1.0 + self.jitter * (2.0 * chance - 1.0);
        saturating(self.without_jitter(failures), times)
    }
}

/// How often a child has failed without having been stable, and since when it runs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Streak {
    failures: u32,
    /// `None` while it does not run.
    since: Option<Instant>,
}

impl Streak {
    pub(crate) fn started(&mut self, now: Instant) {
        self.since = Some(now);
    }

    /// It has failed, or could not be started. Returns how long to wait before the next start.
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
