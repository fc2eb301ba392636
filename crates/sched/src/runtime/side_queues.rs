//! The side queues of a process: the system events out of its mailbox, the events left by steps,
//! and the actions of its end.
//!
//! **Two lanes.** A system event is a request to finish, a control message, or a request for an
//! upgrade. A step is shown system events before all others, each lane in the order of its arrival.
//! An event left by a step goes back to the front of its lane: so each lane has a list of left
//! events. New system events for the next step come behind them.
//!
//! **So that neither lane starves the other**, a batch has other events alone after
//! [`SYSTEM_STREAK`] batches in which system events have kept others out.

use crate::policy::SYSTEM_STREAK;
use crate::probe::Cause;
use crate::process::exit_actions::ExitActions;
use crate::process::exit_signal::ExitSignal;
use crate::runtime::causes::Causes;
use crate::runtime::ending::Ending;
use crate::runtime::item::{self, Item};
use ganger_mpsc::Batch;
use ganger_proc_api::{CancelReason, Event, UpgradeRequest};
use std::mem;

/// Almost no process needs it.
#[derive(Default)]
pub(crate) struct SideQueues {
    /// System events that no step has been shown.
    pub(crate) system: Batch<Item>,
    /// System events shown to a step, or new for the next step, and not taken.
    pub(crate) shown: Batch<Item>,
    /// Other events shown to a step, and not taken. They come behind `shown`.
    pub(crate) left: Batch<Item>,
    /// The reason of the first cancellation that is new to the next step.
    pub(crate) cancel: Option<CancelReason>,
    /// Batches in a row in which system events have kept others out.
    streak: u8,
    /// How many of `shown` the next step is the first to be shown.
    new: u32,
    /// They are no business of its steps.
    pub(crate) exit_actions: Option<Box<ExitActions>>,
    /// Rarer data.
    pub(crate) rare: Option<Box<Rare>>,
}

#[derive(Default)]
pub(crate) struct Rare {
    /// The rest of the process's end, when the end takes several turns.
    pub(crate) ending: Option<Box<Ending>>,
    /// Where steps are traced.
    pub(crate) causes: Causes,
}

/// The system lane's decision on a batch.
#[must_use]
pub(crate) enum BatchPlan {
    /// No batch: an upgrade comes first.
    Upgrade(Box<UpgradeRequest>),
    /// No batch: a signal comes first, with its cause.
    Signal(Box<dyn ExitSignal>, Option<Cause>),
    /// Room for this many new events.
    Room(usize),
}

impl SideQueues {
    /// Takes the system events out of `arrived`, and returns the others. O(arrived).
    pub(crate) fn partition(&mut self, arrived: Batch<Item>) -> Batch<Item> {
        let (system, others): (Batch<_>, Batch<_>) = arrived.into_iter().partition(Item::is_system);
        self.system.append(system);
        others
    }

    /// Moves up to `limit` system events, up to the next upgrade, to the events for the next step.
    /// Takes the upgrade out when it is the first. `others_wait` says whether other new events
    /// wait. O(limit).
    pub(crate) fn share(&mut self, limit: usize, others_wait: bool) -> BatchPlan {
        debug_assert!(limit > 0, "an empty batch");
        if others_wait && self.streak == SYSTEM_STREAK {
            self.streak = 0;
            return BatchPlan::Room(limit);
        }
        let is_event = |item: &&Item| matches!(item.bare(), Item::Event(_));
        let count = self.system.iter().take(limit).take_while(is_event).count();
        let first = if count == 0 {
            self.system.pop_front()
        } else {
            None
        };
        let share = match first.map(Item::apart) {
            Some((cause, Item::Upgrade(request))) => {
                cause.into_iter().for_each(|it| self.add_cause(it));
                BatchPlan::Upgrade(request)
            }
            Some((cause, Item::Signal(signal))) => BatchPlan::Signal(signal, cause),
            _ => {
                self.show(count);
                // An upgrade or a signal that is next ends the batch.
                let has_more = !self.system.is_empty();
                BatchPlan::Room(if has_more { 0 } else { limit - count })
            }
        };
        let keeps_out = !matches!(share, BatchPlan::Room(1..));
        self.streak = if others_wait && keeps_out {
            self.streak + 1
        } else {
            0
        };
        share
    }

    /// Shows the notice to the next step, behind the other system events. O(1).
    pub(crate) fn show_last(&mut self, notice: Item) {
        self.shown.push_back(notice);
        self.new += 1;
    }

    /// Begins a batch: events already shown to a step are not new.
    pub(crate) fn begin(&mut self) {
        self.new = 0;
    }

    /// Returns the number of system events which the next step is the first to be shown.
    pub(crate) fn new_ones(&self) -> usize {
        self.new as usize
    }

    /// Moves `count` system events to the events for the next step.
    fn show(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        let shown = self.system.split_to(count);
        let shown = item::take_causes(shown, |cause| self.add_cause(cause));
        if self.cancel.is_none() {
            self.cancel = shown.iter().find_map(reason_of);
        }
        self.shown.append(shown);
        // A batch is smaller.
        self.new += u32::try_from(count).unwrap_or(0);
    }

    /// Gives the next step a cause.
    fn add_cause(&mut self, cause: Cause) {
        self.rare.get_or_insert_default().causes.add(cause);
    }

    /// Makes the left cancellations new again: an upgrade has replaced the process.
    pub(crate) fn show_again(&mut self) {
        self.cancel = self.shown.iter().find_map(reason_of);
    }

    /// Takes all events out, and puts them in front of the pending ones.
    #[cold]
    #[inline(never)]
    pub(crate) fn take_events(&mut self, pending: &mut Batch<Item>) {
        let mut events = mem::take(&mut self.shown);
        events.append(mem::take(&mut self.left));
        events.append(item::take_causes(mem::take(&mut self.system), drop));
        events.append(mem::take(pending));
        *pending = events;
    }

    /// Returns the number of events that were shown, or are next to be shown, and have not been
    /// taken.
    pub(crate) fn untaken(&self) -> usize {
        self.shown.len() + self.left.len()
    }

    /// Returns whether no event is here for a step.
    pub(crate) fn is_quiet(&self) -> bool {
        self.system.is_empty() && self.untaken() == 0 && self.streak == 0
    }

    /// Returns whether the queues hold nothing at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.is_quiet() && self.exit_actions.is_none() && self.rare.is_none()
    }
}

fn reason_of(item: &Item) -> Option<CancelReason> {
    match item {
        Item::Event(Event::Cancel(reason)) => Some(reason.clone()),
        _ => None,
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests;
