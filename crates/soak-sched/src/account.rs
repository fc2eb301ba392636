//! The account of a scheduler's life: every item that went in has come out, to the last message.
//!
//! The workloads count their acts and their events; the scheduler counts for itself. When no
//! process is alive, both must agree, in the equations of [`Account::settle`]. An error that shows
//! at once, such as a step after a close, is noted as a fault. A panic would not do: the scheduler
//! on trial would contain it.
//!
//! | written by | fields |
//! |---|---|
//! | the processes | `inits`, `closes`, `handled`, `asked`, `answered`, `panics`, `replacements` |
//! | constructors and destructors | `made`, `dropped`, `parcels`, `parcels_dropped`, `lost` |
//! | senders | `accepted`, `returned` |
//! | the handlers | `commands`, `extra_answers`, `panics` |
//! | the hooks | `started`, `refused_starts`, the exits |

use ganger::time::TimerStats;
use ganger::{ExitReason, WorkerStats};
use serde::Serialize;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The limit of kept faults.
const MOST_FAULTS: usize = 20;

/// A count to which many threads add.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Increases the count.
    pub fn bump(&self) {
        self.add(1);
    }

    /// Adds `count`.
    pub fn add(&self, count: u64) {
        // Ordering: Release pairs with the Acquire in `get`: a reader that sees a process ended, or
        // a parcel gone, sees all earlier counts.
        self.0.fetch_add(count, Ordering::Release);
    }

    /// Returns how many there have been.
    #[must_use]
    pub fn get(&self) -> u64 {
        // Ordering: Acquire pairs with the Release in `add`.
        self.0.load(Ordering::Acquire)
    }
}

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// The counts of a scheduler's life.
        #[derive(Debug, Default)]
        pub struct Account {
            $($(#[$doc])* pub $name: Count,)+
            faults: Mutex<Vec<String>>,
        }

        /// The counts of a scheduler, or of many together.
        #[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
        pub struct Totals { $($(#[$doc])* pub $name: u64,)+ }

        impl Account {
            /// Returns the counts so far.
            #[must_use]
            pub fn totals(&self) -> Totals {
                Totals { $($name: self.$name.get(),)+ }
            }
        }

        impl Totals {
            /// Returns the sum of all: it grows with every event.
            #[must_use]
            pub fn sum(&self) -> u64 {
                0 $(+ self.$name)+
            }
        }

        impl std::ops::AddAssign for Totals {
            fn add_assign(&mut self, other: Self) {
                $(self.$name += other.$name;)+
            }
        }
    };
}

counts! {
    /// Processes made, as values.
    made,
    /// Processes dropped, as values.
    dropped,
    /// Calls of `init` with the result `Ok`.
    inits,
    /// Calls of `close`.
    closes,
    /// Refused processes; their submitters got an error.
    refused,
    /// Processes that passed the start hook.
    started,
    /// Processes refused by the start hook.
    refused_starts,
    /// Exits, by their reasons.
    done,
    /// Processes that ended by an unhandled cancellation.
    cancelled,
    /// An error of a step.
    failed,
    /// A panic of a step.
    panicked,
    /// Terminations, with the forced terminations.
    terminated,
    /// Upgrades that failed.
    upgrades_failed,
    /// New processes in the places of old processes.
    replacements,
    /// Parcels made.
    parcels,
    /// Parcels dropped.
    parcels_dropped,
    /// Parcels taken by a send.
    accepted,
    /// Parcels given back by a send, and not sent again.
    returned,
    /// Parcels taken by a step, or by a mailbox outside.
    handled,
    /// Parcels dropped unseen, after a send had taken them.
    lost,
    /// Commands yielded by steps.
    asked,
    /// Commands given to handlers.
    commands,
    /// Commands without a handler.
    unknown_commands,
    /// Timers set by steps; timers are yields as well.
    timers,
    /// Completions taken by steps.
    answered,
    /// Completions of yields whose handlers had reported a failure.
    extra_answers,
    /// Panics on purpose.
    panics,
    /// Accepted cancellations.
    cancels,
    /// Accepted terminations.
    terminates,
    /// Accepted upgrades.
    upgrades,
    /// Steps that blocked their threads, or computed for long, on purpose.
    long_steps,
}

impl Account {
    /// Notes an error.
    pub fn fault(&self, what: impl Into<String>) {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        if faults.len() < MOST_FAULTS {
            faults.push(what.into());
        }
    }

    /// Returns the number of parcels on their way.
    #[must_use]
    pub fn on_their_way(&self) -> u64 {
        // The dropped parcels first: a parcel made in between makes the result too large by 1, not
        // too small.
        let dropped = self.parcels_dropped.get();
        self.parcels.get() - dropped
    }

    /// Returns the number of ended processes.
    #[must_use]
    pub fn exits(&self) -> u64 {
        let exits = [
            &self.done,
            &self.cancelled,
            &self.failed,
            &self.panicked,
            &self.terminated,
            &self.upgrades_failed,
        ];
        exits.into_iter().map(Count::get).sum()
    }

    /// Counts the end of a process.
    pub fn exit(&self, reason: &ExitReason) {
        match reason {
            ExitReason::Done(_) => self.done.bump(),
            ExitReason::Cancelled(_) => self.cancelled.bump(),
            ExitReason::Failed(_) => self.failed.bump(),
            ExitReason::Panicked(_) => self.panicked.bump(),
            ExitReason::Terminated => self.terminated.bump(),
            ExitReason::UpgradeFailed(_) => self.upgrades_failed.bump(),
            other => self.fault(format!("an exit reason that nobody knows: {other}")),
        }
    }

    /// Returns whether the completion of each yield is counted. A timer counts as fired when a
    /// worker takes it out, and the worker completes it afterwards, perhaps when its process has
    /// ended: until then the account can't hold.
    #[must_use]
    pub fn has_all_answers(&self, stats: &WorkerStats, timers: &TimerStats) -> bool {
        let own = self.totals();
        // More answers than questions are a double answer, which `settle` reports.
        own.asked + own.extra_answers <= own.answers(stats, timers)
    }

    /// Checks all equations. At this point no process is alive, no completer is left, all answers
    /// are there, and no thread sends.
    ///
    /// # Errors
    /// The equations that do not hold, a line each.
    pub fn settle(&self, stats: &WorkerStats, timers: &TimerStats) -> Result<(), String> {
        let own = self.totals();
        let exits = own.done
            + own.cancelled
            + own.failed
            + own.panicked
            + own.terminated
            + own.upgrades_failed;
        let equations = [
            ("processes made = dropped", own.made, own.dropped),
            ("inits = closes", own.inits, own.closes),
            ("starts = exits", own.started, exits),
            ("starts = the scheduler's", own.started, stats.started),
            ("done = the scheduler's", own.done, stats.done),
            (
                "cancelled = the scheduler's",
                own.cancelled,
                stats.cancelled,
            ),
            ("failed = the scheduler's", own.failed, stats.failed),
            ("panicked = the scheduler's", own.panicked, stats.panicked),
            (
                "terminated = the scheduler's",
                own.terminated,
                stats.terminated,
            ),
            (
                "failed upgrades = the scheduler's",
                own.upgrades_failed,
                stats.upgrades_failed,
            ),
            (
                "replacements = the scheduler's upgrades",
                own.replacements,
                stats.upgrades,
            ),
            (
                "inits = starts + refused starts + replacements",
                own.inits,
                own.started + own.refused_starts + own.replacements,
            ),
            ("parcels made = dropped", own.parcels, own.parcels_dropped),
            (
                "parcels = accepted + returned",
                own.parcels,
                own.accepted + own.returned,
            ),
            (
                "accepted = handled + undelivered by the scheduler's count",
                own.accepted,
                own.handled + stats.undelivered,
            ),
            ("lost = undelivered", own.lost, stats.undelivered),
            ("yields = the scheduler's", own.asked, stats.yields),
            (
                "yields = commands handled + unknown + timers",
                own.asked,
                own.commands + own.unknown_commands + own.timers,
            ),
            (
                "timers armed = fired + cancelled",
                timers.armed,
                timers.fired + timers.cancelled,
            ),
            ("timers that wait = none", timers.pending as u64, 0),
            (
                "yields + extra answers = answers + stale + cancelled timers, as counted",
                own.asked + own.extra_answers,
                own.answers(stats, timers),
            ),
            ("panics = the scheduler's", own.panics, stats.panics),
        ];
        let mut report = String::new();
        for (what, left, right) in equations.iter().filter(|(_, left, right)| left != right) {
            writeln!(report, "{what}: {left}, {right}").expect("a string takes everything");
        }
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        for fault in faults.iter() {
            writeln!(report, "{fault}").expect("a string takes everything");
        }
        if report.is_empty() {
            Ok(())
        } else {
            Err(format!("{report}{own:?}\n{stats:?}\n"))
        }
    }
}

impl Totals {
    /// Returns the number of completions that steps took, that came too late, or whose timer was
    /// taken away.
    fn answers(&self, stats: &WorkerStats, timers: &TimerStats) -> u64 {
        self.answered + stats.stale_completions + timers.cancelled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates the account of two processes, the second a replacement, that have exchanged some
    /// parcels.
    fn account() -> (Account, WorkerStats) {
        let account = Account::default();
        for (count, value) in [
            (&account.made, 4),
            (&account.dropped, 4),
            (&account.inits, 3),
            (&account.closes, 3),
            (&account.started, 2),
            (&account.done, 1),
            (&account.terminated, 1),
            (&account.replacements, 1),
            (&account.parcels, 10),
            (&account.parcels_dropped, 10),
            (&account.accepted, 9),
            (&account.returned, 1),
            (&account.handled, 7),
            (&account.lost, 2),
            (&account.asked, 5),
            (&account.commands, 4),
            (&account.unknown_commands, 1),
            (&account.answered, 3),
            (&account.extra_answers, 1),
            (&account.panics, 2),
        ] {
            count.add(value);
        }
        let mut stats = WorkerStats::default();
        (stats.started, stats.done, stats.terminated) = (2, 1, 1);
        (stats.upgrades, stats.undelivered, stats.yields) = (1, 2, 5);
        (stats.stale_completions, stats.panics) = (3, 2);
        (account, stats)
    }

    #[test]
    fn what_adds_up_is_settled() {
        let (account, stats) = account();
        assert_eq!(account.settle(&stats, &TimerStats::default()), Ok(()));
    }

    type Plants = [(&'static str, fn(&Account, &mut WorkerStats)); 15];

    /// A loss, or a double, of each kind.
    const PLANTS: Plants = [
        ("processes made = dropped", |a, _| a.made.bump()),
        ("inits = closes", |a, _| a.closes.bump()),
        ("starts = exits", |a, _| a.done.bump()),
        ("starts = the scheduler's", |_, s| s.started += 1),
        ("done = the scheduler's", |_, s| s.done -= 1),
        ("terminated = the scheduler's", |_, s| s.terminated += 1),
        ("replacements = the scheduler's", |_, s| s.upgrades -= 1),
        ("inits = starts + refused starts", |a, _| {
            a.refused_starts.bump();
        }),
        ("parcels made = dropped", |a, _| a.parcels.bump()),
        ("parcels = accepted + returned", |a, _| a.returned.bump()),
        ("accepted = handled + undelivered", |a, _| a.handled.bump()),
        ("lost = undelivered", |_, s| s.undelivered -= 1),
        ("yields = the scheduler's", |_, s| s.yields += 1),
        ("yields + extra answers = answers", |a, _| a.answered.bump()),
        ("panics = the scheduler's", |_, s| s.panics -= 1),
    ];

    #[test]
    fn each_loss_and_each_double_is_told() {
        for (expected, plant) in PLANTS {
            let (account, mut stats) = account();
            plant(&account, &mut stats);
            let report = account.settle(&stats, &TimerStats::default()).unwrap_err();
            assert!(report.contains(expected), "{expected}: {report}");
        }
    }

    #[test]
    fn a_timer_that_is_lost_or_double_is_told() {
        let settled = |armed, fired, cancelled, pending| {
            let (account, mut stats) = account();
            let mut timers = TimerStats::default();
            (timers.armed, timers.fired, timers.cancelled) = (armed, fired, cancelled);
            timers.pending = pending;
            account.asked.add(3);
            account.timers.add(3);
            account.answered.add(1);
            stats.yields += 3;
            account.settle(&stats, &timers)
        };
        assert_eq!(settled(3, 1, 2, 0), Ok(()));
        for (what, is) in [
            ("timers armed = ", settled(3, 0, 2, 0)),
            ("timers armed = ", settled(3, 2, 2, 0)),
            ("timers that wait", settled(3, 1, 2, 1)),
            ("yields + extra", settled(3, 2, 1, 0)),
        ] {
            let report = is.unwrap_err();
            assert!(report.contains(what), "{what}: {report}");
        }
    }

    #[test]
    fn the_completion_of_a_timer_that_has_fired_is_awaited_until_it_is_counted() {
        let (account, mut stats) = account();
        let mut timers = TimerStats::default();
        (timers.armed, timers.fired) = (1, 1);
        account.asked.bump();
        account.timers.bump();
        stats.yields += 1;
        assert!(!account.has_all_answers(&stats, &timers));
        stats.stale_completions += 1;
        assert!(account.has_all_answers(&stats, &timers));
        assert_eq!(account.settle(&stats, &timers), Ok(()));
        account.answered.bump();
        assert!(account.has_all_answers(&stats, &timers));
        assert!(account.settle(&stats, &timers).is_err());
    }

    #[test]
    fn a_fault_is_told_whatever_adds_up() {
        let (account, stats) = account();
        account.fault("a step after a close");
        let report = account.settle(&stats, &TimerStats::default()).unwrap_err();
        assert!(report.starts_with("a step after a close\n"), "{report}");
    }

    #[test]
    fn parcels_are_on_their_way_until_they_are_dropped() {
        let account = Account::default();
        account.parcels.add(3);
        account.parcels_dropped.add(2);
        assert_eq!(account.on_their_way(), 1);
    }
}
