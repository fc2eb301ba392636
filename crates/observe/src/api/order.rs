//! The orders of a list of processes, and its window.

use super::mistake::{QueryError, shown};
use std::str::FromStr;
use std::time::Duration;

/// The longest window.
const LONGEST: Duration = Duration::from_mins(1);

/// An order of processes; equal processes are in the order of their PIDs. In an
/// order for observed schedulers, the processes of other schedulers come last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum By {
    /// By the waiting messages and events, the most first.
    #[default]
    Mailbox,
    /// By the time since the last turn, the longest first. Processes without a turn come last.
    Quiet,
    /// By the PID.
    Pid,
    /// By steps, the most first. The scheduler must be observed.
    Steps,
    /// By the events that steps were given, the most first. The scheduler must be observed.
    Events,
    /// By the time that steps have taken, in nanoseconds, the most first. The scheduler must be
    /// observed.
    Busy,
    /// By how much more waits than at the begin of the window, the most first; without a window as
    /// by mailbox. The scheduler must be observed.
    Growth,
    /// By the time since the start, in nanoseconds, the longest first. The scheduler must be
    /// observed.
    Age,
}

const NAMES: [(By, &str); 8] = [
    (By::Mailbox, "mailbox"),
    (By::Quiet, "quiet"),
    (By::Pid, "pid"),
    (By::Steps, "steps"),
    (By::Events, "events"),
    (By::Busy, "busy"),
    (By::Growth, "growth"),
    (By::Age, "age"),
];

impl By {
    /// Returns the name of the order, as in a query.
    #[must_use]
    pub fn name(self) -> &'static str {
        let found = NAMES.iter().find(|it| it.0 == self);
        found.map_or("mailbox", |it| it.1)
    }

    /// Returns whether the order needs an observed scheduler.
    #[must_use]
    pub fn needs_counts(self) -> bool {
        !matches!(self, Self::Mailbox | Self::Quiet | Self::Pid)
    }

    /// Returns whether a window changes the order.
    #[must_use]
    pub fn has_window(self) -> bool {
        matches!(self, Self::Steps | Self::Events | Self::Busy | Self::Growth)
    }
}

impl FromStr for By {
    type Err = QueryError;

    fn from_str(text: &str) -> Result<Self, QueryError> {
        let found = NAMES.iter().find(|it| it.1 == text);
        found
            .map(|it| it.0)
            .ok_or_else(|| QueryError::By(shown(text)))
    }
}

/// Reads a time such as `500ms` or `5s`, from a millisecond to a minute.
pub(super) fn read_window(text: &str) -> Result<Duration, QueryError> {
    read_period(text).ok_or_else(|| QueryError::Window(shown(text)))
}

/// Reads a time as [`read_window`] does; returns none for another text.
pub(crate) fn read_period(text: &str) -> Option<Duration> {
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 1),
        None => (text.strip_suffix('s')?, 1_000),
    };
    let is_plain = number.bytes().all(|it| it.is_ascii_digit());
    let number: u64 = number.parse().ok().filter(|_| is_plain)?;
    let time = Duration::from_millis(number.checked_mul(unit)?);
    (!time.is_zero() && time <= LONGEST).then_some(time)
}

/// Writes a window in the form that is read.
pub(super) fn write_window(window: Duration) -> String {
    format!("{}ms", window.as_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    // pins: V11
    #[test]
    fn a_window_has_a_unit_and_bounds() {
        let millis = |text| read_window(text).map(|it| it.as_millis()).ok();
        assert_eq!(millis("1ms"), Some(1));
        assert_eq!((millis("500ms"), millis("5s")), (Some(500), Some(5_000)));
        assert_eq!(
            (millis("60s"), millis("60000ms")),
            (Some(60_000), Some(60_000))
        );
        let wrong = [
            "",
            "5",
            "s",
            "ms",
            "0s",
            "0ms",
            "61s",
            "60001ms",
            "-5s",
            "+5s",
            "5 s",
            "5m",
            "1.5s",
            "99999999999999999999s",
            "18446744073709551615s",
        ];
        for text in wrong {
            let error = read_window(text).unwrap_err();
            assert!(error.to_string().contains("500ms or 5s"), "{text}: {error}");
        }
    }

    #[test]
    fn each_order_has_a_name() {
        for (by, name) in NAMES {
            assert_eq!((by.name(), name.parse()), (name, Ok(by)));
            assert!(by.needs_counts() || !by.has_window());
        }
    }
}
