//! When a question is asked again.

use ganger_proc_api::{CommandError, ExitCause, SendError, SendErrorKind};
use ganger_sched::CallRefused;
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// How often a question is asked, and with which pauses: see
/// [`at_least_once`](crate::RetryExt::at_least_once).
///
/// The pauses double, from 50 ms to 5 s. Each pause is shorter by a random part, at most half:
/// askers that have failed together do not come back together. (Exponential back-off with "equal
/// jitter": M. Brooker, *Exponential Backoff And Jitter*, AWS Architecture Blog, 2015.)
#[derive(Clone, Copy)]
#[must_use = "nothing is asked until `at_least_once`"]
pub struct Retry {
    pub(crate) times: u32,
    pub(crate) within: Option<Duration>,
    each: Option<Duration>,
    first: Duration,
    longest: Duration,
    also: fn(&CommandError) -> bool,
}

impl Retry {
    /// Asks at most so many times in all. Zero counts as 1.
    pub const fn times(times: u32) -> Self {
        Self {
            times,
            within: None,
            each: None,
            first: Duration::from_millis(50),
            longest: Duration::from_secs(5),
            also: |_| false,
        }
    }

    /// Gives up at the latest after this time, with the last error. Unless [`each`](Self::each)
    /// says otherwise, each attempt has its share of the time: `within` divided by `times`.
    pub const fn within(self, time: Duration) -> Self {
        let within = Some(time);
        Self { within, ..self }
    }

    /// Waits at most so long for each answer. Without `each` and [`within`](Self::within) an
    /// attempt waits without a limit: for the answer, the end of the process, or the end of the
    /// connection.
    pub const fn each(self, time: Duration) -> Self {
        let each = Some(time);
        Self { each, ..self }
    }

    /// Sets the first pause, and the longest.
    pub const fn pauses(self, first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            ..self
        }
    }

    /// Asks again also after the errors for which `also` is true: for instance after the end of a
    /// process, when `question` looks its name up anew.
    pub const fn also_after(self, also: fn(&CommandError) -> bool) -> Self {
        Self { also, ..self }
    }

    /// Returns the time that an attempt waits for its answer.
    pub(crate) fn attempt(&self) -> Option<Duration> {
        self.each.or_else(|| Some(self.within? / self.times.max(1)))
    }

    /// Returns whether another attempt may get an answer.
    pub(crate) fn is_worthwhile(&self, error: &CommandError) -> bool {
        let is_transient = match error {
            CommandError::Timeout | CommandError::Ended(ExitCause::NoConnection) => true,
            CommandError::Failed(error) => is_refused_for_now(&**error),
            _ => false,
        };
        is_transient || (self.also)(error)
    }

    /// Returns the pause after so many failures, where `chance` is from 0 to 1.
    pub(crate) fn pause(&self, failures: u32, chance: f64) -> Duration {
        let doubled = 1_u32.checked_shl(failures.saturating_sub(1));
        let whole = doubled.and_then(|times| self.first.checked_mul(times));
        let whole = whole.map_or(self.longest, |it| it.min(self.longest));
        whole - (whole / 2).mul_f64(chance.clamp(0.0, 1.0))
    }
}

impl fmt::Debug for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry")
            .field("times", &self.times)
            .field("within", &self.within)
            .field("each", &self.each)
            .field("pauses", &(self.first..=self.longest))
            .finish_non_exhaustive()
    }
}

/// Returns whether this error, or an error in its sources, is a refusal that may pass.
fn is_refused_for_now(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let refused = error.downcast_ref().map(|it: &CallRefused| &it.kind);
        let unsent = || error.downcast_ref().map(|it: &SendError| &it.kind);
        let kind = refused
            .or_else(unsent)
            .or_else(|| error.downcast_ref::<SendErrorKind>());
        if let Some(kind) = kind {
            return matches!(kind, SendErrorKind::Full | SendErrorKind::NoConnection);
        }
        next = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    // pins: C6
    #[test]
    fn pauses_double_up_to_the_longest_and_have_chance_in_them() {
        let (first, longest) = (Duration::from_millis(100), Duration::from_secs(1));
        let retry = Retry::times(9).pauses(first, longest);
        let whole = [1, 2, 3, 4, 5, 40].map(|failures| retry.pause(failures, 0.0).as_millis());
        assert_eq!(whole, [100, 200, 400, 800, 1000, 1000]);
        assert_eq!(retry.pause(3, 0.5), Duration::from_millis(300));
        assert_eq!(retry.pause(3, 1.0), Duration::from_millis(200));
    }

    // pins: C6
    #[test]
    fn an_attempt_has_its_share_of_the_time_unless_told_otherwise() {
        let second = Duration::from_secs(1);
        assert_eq!(Retry::times(5).attempt(), None);
        assert_eq!(Retry::times(5).within(second).attempt(), Some(second / 5));
        assert_eq!(Retry::times(0).within(second).attempt(), Some(second));
        let each = Retry::times(5).within(second).each(second);
        assert_eq!(each.attempt(), Some(second));
    }

    // pins: C6
    #[test]
    fn transient_errors_are_asked_again_and_others_are_not() {
        let retry = Retry::times(2);
        let refused = |kind: SendErrorKind| CommandError::Failed(kind.into());
        for again in [
            CommandError::Timeout,
            CommandError::Ended(ExitCause::NoConnection),
            refused(SendErrorKind::Full),
            refused(SendErrorKind::NoConnection),
        ] {
            assert!(retry.is_worthwhile(&again), "{again:?}");
        }
        for never in [
            CommandError::Dropped,
            CommandError::Ended(ExitCause::NotFound),
            refused(SendErrorKind::NotFound),
            CommandError::Failed("its own".into()),
        ] {
            assert!(!retry.is_worthwhile(&never), "{never:?}");
            let always = retry.also_after(|_| true);
            assert!(always.is_worthwhile(&never));
        }
    }
}
