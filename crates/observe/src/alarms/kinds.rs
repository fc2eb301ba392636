//! The kinds of alarms, and their default limits.

use super::levels::Rule;

/// A kind of alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A mailbox is long: messages and events in it. Needs `Observe::Counts`, as the next kind.
    Mailbox,
    /// A mailbox has grown without a fall: by how many.
    MailboxGrowth,
    /// Steps keep processes waiting: steps since the look before, or not over.
    LongStep,
    /// The workers are busy: hundredths of their time. Needs `Observe::Counts`.
    WorkersBusy,
    /// The processes near their limit: in hundredths. Severe. Needs `Builder::max_processes`.
    Processes,
    /// Timers are late: the latest since the look before, in milliseconds. Needs
    /// `Observe::Histograms`.
    TimersLate,
    /// Dead letters a second.
    DeadLetters,
    /// Failures and panics of processes a second: as of a child that restarts again and again.
    Failures,
    /// The count of live processes of a type has grown without a fall: by how many.
    TypeGrowth,
    /// A child has restarted again and again: its restarts at the last ten looks.
    Restarts,
    /// The lease of a node was not renewed in time: the share of its time that has passed, in
    /// hundredths. At 100 the node gives its strong names and locks up. Ends with a renewal, and
    /// with the lease. Needs the feature `cluster`.
    Lease,
    /// Processes wait for each other, and for threads, in a cycle: its waits. Severe. Looked for
    /// where [`Alarms::deadlocks`](crate::Alarms::deadlocks) says so.
    Deadlock,
    /// The trace files of [`Dumps`](crate::Dumps) that can't be written: how many. Raised and
    /// ended by them alone, without limits.
    TraceFiles,
    /// A value of the program's own, by its name.
    Custom(&'static str),
}

impl Kind {
    /// Returns the name in answers, events and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mailbox => "mailbox",
            Self::MailboxGrowth => "mailbox_growth",
            Self::LongStep => "long_step",
            Self::WorkersBusy => "workers_busy",
            Self::Processes => "processes",
            Self::TimersLate => "timers_late",
            Self::DeadLetters => "dead_letters",
            Self::Failures => "failures",
            Self::TypeGrowth => "type_growth",
            Self::Restarts => "restarts",
            Self::Lease => "lease",
            Self::Deadlock => "deadlock",
            Self::TraceFiles => "trace_files",
            Self::Custom(name) => name,
        }
    }
}

/// The kinds of each scheduler, with their default limits.
pub(super) const DEFAULTS: [(Kind, Rule); 11] = [
    (Kind::Mailbox, rule(10_000, 1_000, 1, 1)),
    (Kind::MailboxGrowth, rule(1_000, 500, 30, 1)),
    (Kind::LongStep, rule(1, 1, 1, 10)),
    (Kind::WorkersBusy, rule(95, 80, 10, 10)),
    (Kind::Processes, rule(90, 80, 1, 1)),
    (Kind::TimersLate, rule(100, 50, 1, 10)),
    (Kind::DeadLetters, rule(100, 10, 1, 10)),
    (Kind::Failures, rule(10, 1, 3, 10)),
    (Kind::TypeGrowth, rule(1_000, 500, 300, 1)),
    (Kind::Restarts, rule(3, 1, 1, 1)),
    (Kind::Lease, rule(50, 50, 1, 1)),
];

/// Of cycles of waits, which are looked for on demand.
pub(super) const DEADLOCKS: Rule = rule(1, 1, 2, 1);

pub(super) const fn rule(on: u64, off: u64, looks: u32, calm: u32) -> Rule {
    Rule {
        on,
        off,
        looks,
        calm,
    }
}
