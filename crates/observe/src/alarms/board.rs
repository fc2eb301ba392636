//! The raised alarms of a scheduler, for all that show them.

use super::Kind;
use ganger_proc_api::Pid;
use ganger_sched::internal::HandleInternals as _;
use ganger_sched::{Address, Handle, Instant};
use ganger_sync::sync::lock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// An alarm.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Alarm {
    /// A number of the scheduler: an alarm has a new number each time.
    pub number: u64,
    /// The kind.
    pub kind: Kind,
    /// Whether the program should get no new work meanwhile: `/readyz` of the endpoint says so.
    pub is_severe: bool,
    /// The process, if the value belongs to a process.
    pub pid: Option<Pid>,
    /// A sentence for people.
    pub text: String,
    /// The value at the look of the raise, in the unit of the kind.
    pub value: u64,
    /// The limit of the raised alarm.
    pub limit: u64,
    /// When it was raised.
    pub since: Instant,
}

/// A change of an alarm, as a subscriber gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AlarmChange {
    /// The alarm is raised.
    Raised(Alarm),
    /// The alarm has ended.
    Ended(Alarm),
}

/// The scheduler's extension.
#[derive(Default)]
pub(crate) struct Board(Mutex<State>);

#[derive(Default)]
struct State {
    /// In the order of their numbers.
    raised: Vec<Alarm>,
    last: u64,
    /// How many of each kind have been raised so far.
    counts: BTreeMap<Kind, u64>,
}

impl Board {
    /// Returns the board of the scheduler.
    pub(crate) fn of(handle: &Handle) -> Arc<Self> {
        handle.extension(|_| Self::default())
    }

    /// Returns the raised alarms, the oldest first.
    pub(crate) fn raised(&self) -> Vec<Alarm> {
        lock(&self.0).raised.clone()
    }

    /// Counts the alarms of each kind: the raised alarms, and all alarms raised so far.
    pub(crate) fn counts(&self) -> Vec<(Kind, u64, u64)> {
        let state = lock(&self.0);
        let count = |(kind, count): (&Kind, &u64)| {
            let raised = state.raised.iter().filter(|it| it.kind == *kind);
            (*kind, raised.count() as u64, *count)
        };
        state.counts.iter().map(count).collect()
    }

    /// Adds the watched kinds.
    pub(crate) fn watch(&self, kinds: impl Iterator<Item = Kind>) {
        let mut state = lock(&self.0);
        for kind in kinds {
            state.counts.entry(kind).or_default();
        }
    }

    /// Raises an alarm, and returns it with its number.
    pub(crate) fn raise(&self, mut alarm: Alarm) -> Alarm {
        let mut state = lock(&self.0);
        state.last += 1;
        alarm.number = state.last;
        *state.counts.entry(alarm.kind).or_default() += 1;
        state.raised.push(alarm.clone());
        alarm
    }

    /// Ends the alarm with the number.
    pub(crate) fn end(&self, number: u64) -> Option<Alarm> {
        let mut state = lock(&self.0);
        let place = state.raised.iter().position(|it| it.number == number)?;
        Some(state.raised.remove(place))
    }
}

/// Tells the log and the subscribers of a change.
pub(crate) fn tell(subscribers: &[Address<AlarmChange>], change: &AlarmChange) {
    let (is_raised, alarm) = match change {
        AlarmChange::Raised(alarm) => (true, alarm),
        AlarmChange::Ended(alarm) => (false, alarm),
    };
    let (kind, text, value) = (alarm.kind.name(), &alarm.text, alarm.value);
    let number = alarm.number;
    match (is_raised, alarm.is_severe) {
        (true, true) => {
            tracing::error!(target: "ganger::observe", kind, number, value, "alarm: {text}");
        }
        (true, false) => {
            tracing::warn!(target: "ganger::observe", kind, number, value, "alarm: {text}");
        }
        (false, _) => tracing::info!(target: "ganger::observe", kind, number, "over: {text}"),
    }
    for subscriber in subscribers {
        // An ended subscriber, or a full mailbox, misses the change.
        let _is_told = subscriber.send(change.clone());
    }
}
