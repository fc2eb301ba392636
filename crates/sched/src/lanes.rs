//! What a process has set aside: the system events that have left its mailbox, and the events that a
//! step has left.
//!
//! **Two lanes.** System events (a request to finish, a control message, a request for an upgrade) are
//! shown before all others, each lane in the order of its arrival. What a step leaves goes back to the
//! front of its lane.
//!
//! **So that the one lane does not starve the other**, after [`STREAK`] batches in which system events
//! have kept others out, a batch is of others alone.

use crate::core::Item;
use ganger_mpsc::Batch;
use ganger_proc_api::{Event, UpgradeRequest};
use std::collections::VecDeque;

/// How many batches in a row system events may fill, or cut short, while others wait.
pub(crate) const STREAK: u8 = 8;

/// Almost no process needs it.
#[derive(Default)]
pub(crate) struct Aside {
    /// System events that no step has been shown.
    pub(crate) system: VecDeque<Item>,
    /// Shown to a step, and not taken by it: those of the system before all others.
    pub(crate) left: VecDeque<Event>,
    /// Batches in a row in which system events have kept others out.
    streak: u8,
}

/// What the system lane has put into a batch.
#[must_use]
pub(crate) struct Shown {
    /// How many entries have left the lane.
    pub(crate) taken: u32,
    /// An upgrade is next: nothing else may be put into the batch.
    pub(crate) is_cut_short: bool,
    /// The upgrade, when nothing new comes before it.
    pub(crate) upgrade: Option<Box<UpgradeRequest>>,
}

impl Item {
    /// Whether it overtakes the others.
    pub(crate) fn is_system(&self) -> bool {
        match self {
            Self::Event(event) => is_system(event),
            Self::Upgrade(_) => true,
            Self::Completion { .. } | Self::Nudge => false,
        }
    }
}

fn is_system(event: &Event) -> bool {
    matches!(event, Event::Cancel(_) | Event::Control(_))
}

impl Aside {
    /// Takes the system events out of `arrived`, and gives back the others. O(arrived).
    pub(crate) fn part(&mut self, arrived: Batch<Item>) -> Batch<Item> {
        let mut others = Batch::new();
        for item in arrived {
            if item.is_system() {
                self.system.push_back(item);
            } else {
                others.push_back(item);
            }
        }
        others
    }

    /// Puts up to `limit` system events into `batch`, which holds what a step has left, behind those of
    /// the system in there and before all others; `others_wait` says whether there are new ones of those.
    /// O(batch).
    pub(crate) fn show(
        &mut self,
        batch: &mut VecDeque<Event>,
        limit: usize,
        others_wait: bool,
    ) -> Shown {
        let mut shown = Shown {
            taken: 0,
            is_cut_short: false,
            upgrade: None,
        };
        if others_wait && self.streak == STREAK {
            self.streak = 0;
            return shown;
        }
        let older = batch.iter().take_while(|event| is_system(event)).count();
        let mut others = batch.split_off(older);
        while batch.len() - older < limit {
            match self.system.pop_front() {
                None => break,
                Some(Item::Event(event)) => batch.push_back(event),
                Some(Item::Upgrade(request)) if shown.taken == 0 => {
                    shown.upgrade = Some(request);
                    shown.taken = 1;
                    break;
                }
                Some(other) => {
                    self.system.push_front(other);
                    shown.is_cut_short = true;
                    break;
                }
            }
            shown.taken += 1;
        }
        let is_full = batch.len() - older == limit;
        batch.append(&mut others);
        let kept_out = is_full || shown.is_cut_short || shown.upgrade.is_some();
        self.streak = if others_wait && kept_out {
            self.streak + 1
        } else {
            0
        };
        shown
    }

    /// Whether there is more in it than what a step has left.
    pub(crate) fn is_needed(&self) -> bool {
        !self.system.is_empty() || self.streak > 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
