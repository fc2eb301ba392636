//! Warnings about a process, as tokio-console has them.

use ganger_observe::api::{Process, State};
use serde::Serialize;

/// A turn of this length keeps its worker busy for too long.
const LONG_TURN: u64 = 1_000_000_000;

/// A wait of this length deserves a look.
const LONG_WAIT: u64 = 10_000_000_000;

/// The answers with a growing mailbox before a warning.
pub(super) const GROWTHS: usize = 5;

/// The least growth for a warning.
const GROWTH: u64 = 10;

/// The least turns of a share.
const TURNS: u64 = 50;

/// Commands with a chosen length.
const TIMERS: [&str; 4] = ["sleep", "after", "interval", "every"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Warning {
    /// Its turn does not end.
    NeverYields,
    /// Its mailbox grows from answer to answer.
    MailboxGrows,
    /// More than half of its turns began without a new event.
    WakesItself,
    /// A command is out for long.
    WaitsForLong,
}

impl Warning {
    /// Returns a letter for a narrow column.
    pub(crate) fn mark(self) -> char {
        match self {
            Self::NeverYields => 'Y',
            Self::MailboxGrows => 'M',
            Self::WakesItself => 'S',
            Self::WaitsForLong => 'W',
        }
    }

    /// Returns a sentence.
    pub(crate) fn sentence(self) -> &'static str {
        match self {
            Self::NeverYields => "never yields: its turn has lasted for more than a second",
            Self::MailboxGrows => "its mailbox grows: messages come faster than it takes them",
            Self::WakesItself => {
                "wakes itself: more than half of its turns begin without a new event"
            }
            Self::WaitsForLong => "waits for long: a command is out for more than ten seconds",
        }
    }
}

/// The work of a process since an earlier answer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lately {
    pub(super) turns: u64,
    pub(super) events: u64,
}

/// Returns the warnings of a process. `mailboxes` has its lengths in the last answers, the newest
/// last.
pub(super) fn of(process: &Process, lately: Lately, mailboxes: &[u64]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let quiet = process.quiet_ns.unwrap_or_default();
    if process.state == State::Running && quiet >= LONG_TURN {
        warnings.push(Warning::NeverYields);
    }
    if grows(mailboxes) {
        warnings.push(Warning::MailboxGrows);
    }
    let without_event = lately.turns.saturating_sub(lately.events);
    if lately.turns >= TURNS && without_event > lately.turns / 2 {
        warnings.push(Warning::WakesItself);
    }
    let is_timer = |name: &Option<String>| {
        let name = name.as_deref().unwrap_or_default();
        TIMERS.contains(&name)
    };
    let waits = process.waits.iter().filter(|it| !is_timer(&it.name));
    if waits.map(|it| it.since_ns).max() >= Some(LONG_WAIT) {
        warnings.push(Warning::WaitsForLong);
    }
    warnings
}

/// Returns whether a mailbox has grown from each of the last answers to the next.
fn grows(mailboxes: &[u64]) -> bool {
    let Some(from) = mailboxes.len().checked_sub(GROWTHS + 1) else {
        return false;
    };
    let last = &mailboxes[from..];
    last.is_sorted_by(|earlier, later| earlier < later) && last[GROWTHS] - last[0] >= GROWTH
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{Demo, Source as _};
    use ganger_observe::api::ProcessesQuery;
    use std::time::Duration;

    fn named(filter: &str) -> Process {
        let demo = Demo::by(|| Duration::from_mins(1));
        let mut query = ProcessesQuery::default();
        query.filter = filter.parse().unwrap();
        demo.processes(&query).unwrap().processes.remove(0)
    }

    fn quiet(process: &Process) -> Vec<Warning> {
        of(process, Lately::default(), &[])
    }

    #[test]
    fn each_trouble_has_its_warning() {
        assert_eq!(quiet(&named("report")), [Warning::NeverYields]);
        assert_eq!(quiet(&named("transfer")), [Warning::WaitsForLong]);
        assert!(quiet(&named("shelf")).is_empty(), "its wait is short");
        let clock = named("clock");
        assert!(clock.waits[0].since_ns > LONG_WAIT);
        assert!(quiet(&clock).is_empty(), "it sleeps");
    }

    #[test]
    fn a_mailbox_that_only_grows_is_told_from_one_that_is_full() {
        let idle = named("state:idle");
        let warned = |mailboxes: &[u64]| !of(&idle, Lately::default(), mailboxes).is_empty();
        assert!(warned(&[5, 1, 3, 5, 7, 9, 11]));
        assert!(!warned(&[1, 3, 5, 7, 9]), "too few answers");
        assert!(!warned(&[1, 3, 5, 5, 7, 19]), "it has stood still");
        assert!(!warned(&[1, 2, 3, 4, 5, 6]), "by too little");
        assert!(!warned(&[90; 6]));
    }

    #[test]
    fn a_process_that_wakes_itself_has_turns_without_events() {
        let idle = named("state:idle");
        let warned = |turns, events| !of(&idle, Lately { turns, events }, &[]).is_empty();
        assert!(warned(100, 49) && warned(50, 0));
        assert!(!warned(100, 50) && !warned(49, 0) && !warned(100, 900));
    }
}
