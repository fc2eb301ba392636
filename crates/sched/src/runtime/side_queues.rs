//! What a process has set aside: the system events that have left its mailbox, and the events that
//! a step has left. And what has to happen when it ends.
//!
//! **Two lanes.** A system event is a request to finish, a control message, or a request for an
//! upgrade. A step is shown system events before all others, each lane in the order of its arrival.
//! What a step leaves goes back to the front of its lane: so there is a list of these for each
//! lane. New system events for the next step come behind those that are left.
//!
//! **So that the one lane does not starve the other**, a batch is of others alone after
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
    /// System events that were shown to a step, or are to be shown to the next one, and have not
    /// been taken.
    pub(crate) shown: Batch<Item>,
    /// Other events that were shown to a step, and have not been taken. They come behind these.
    pub(crate) left: Batch<Item>,
    /// The reason of the first cancellation among those that the next step is the first to be
    /// shown.
    pub(crate) cancel: Option<CancelReason>,
    /// Batches in a row in which system events have kept others out.
    streak: u8,
    /// How many of `shown` the next step is the first to be shown.
    new: u32,
    /// They are no business of its steps.
    pub(crate) exit_actions: Option<Box<ExitActions>>,
    /// What is rarer still.
    pub(crate) rare: Option<Box<Rare>>,
}

#[derive(Default)]
pub(crate) struct Rare {
    /// What is left of its end, when that takes several turns.
    pub(crate) ending: Option<Box<Ending>>,
    /// Where steps are traced.
    pub(crate) causes: Causes,
}

/// What the system lane leaves of a batch to the others.
#[must_use]
pub(crate) enum BatchPlan {
    /// There is no batch: an upgrade comes first.
    Upgrade(Box<UpgradeRequest>),
    /// There is none: a signal comes first, which that has caused.
    Signal(Box<dyn ExitSignal>, Option<Cause>),
    /// Room for so many new events.
    Room(usize),
}

impl SideQueues {
    /// Takes the system events out of `arrived`, and gives back the others. O(arrived).
    pub(crate) fn partition(&mut self, arrived: Batch<Item>) -> Batch<Item> {
        let (system, others): (Batch<_>, Batch<_>) = arrived.into_iter().partition(Item::is_system);
        self.system.append(system);
        others
    }

    /// Moves up to `limit` system events to those that the next step is shown, up to the next
    /// upgrade. Takes that upgrade out when it is the first. `others_wait` says whether there are
    /// new events that are not system events. O(limit).
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

    /// The next step is shown that, behind the other system events. O(1).
    pub(crate) fn show_last(&mut self, notice: Item) {
        self.shown.push_back(notice);
        self.new += 1;
    }

    /// A batch begins: what has been shown to a step is not new.
    pub(crate) fn begin(&mut self) {
        self.new = 0;
    }

    /// How many system events the next step is the first to be shown.
    pub(crate) fn new_ones(&self) -> usize {
        self.new as usize
    }

    /// Moves so many system events to those that the next step is shown.
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
        // A batch is not that large.
        self.new += u32::try_from(count).unwrap_or(0);
    }

    /// The next step has that cause.
    fn add_cause(&mut self, cause: Cause) {
        self.rare.get_or_insert_default().causes.add(cause);
    }

    /// The process has been replaced: the new one is the first to be shown what the old one has
    /// left.
    pub(crate) fn show_again(&mut self) {
        self.cancel = self.shown.iter().find_map(reason_of);
    }

    /// Takes all events out, and puts them in front of those that are pending.
    #[cold]
    #[inline(never)]
    pub(crate) fn take_events(&mut self, pending: &mut Batch<Item>) {
        let mut events = mem::take(&mut self.shown);
        events.append(mem::take(&mut self.left));
        events.append(item::take_causes(mem::take(&mut self.system), drop));
        events.append(mem::take(pending));
        *pending = events;
    }

    /// How many events were shown, or are to be, and have not been taken.
    pub(crate) fn untaken(&self) -> usize {
        self.shown.len() + self.left.len()
    }

    /// Whether there is nothing in it for a step.
    pub(crate) fn is_quiet(&self) -> bool {
        self.system.is_empty() && self.untaken() == 0 && self.streak == 0
    }

    /// Whether there is nothing to keep it for.
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
