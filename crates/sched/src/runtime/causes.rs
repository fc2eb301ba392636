//! The causes of a process's next steps, where they are traced: see `probe/carry.rs`.

use crate::probe::Cause;
use ganger_mpsc::Batch;
use ganger_proc_api::Event;
use std::collections::BTreeMap;
use std::mem;

use super::item::Item;

/// The limit of causes kept for a step. Exporters of traces have such a limit themselves.
const MOST: usize = 128;

#[derive(Default)]
pub(crate) struct Causes {
    /// Of the next step.
    next: Vec<Cause>,
    /// Causes of the steps that are shown a completion, by the numbers of the yields.
    of_yields: BTreeMap<u64, Cause>,
    /// How many items outside of the mailbox, still waiting for a step, are causes.
    pub(crate) waiting: usize,
}

impl Causes {
    pub(crate) fn is_empty(&self) -> bool {
        self.next.is_empty() && self.of_yields.is_empty() && self.waiting == 0
    }

    /// Gives the next step a cause, so far a waiting item.
    pub(crate) fn arrive(&mut self, cause: Cause) {
        self.waiting -= 1;
        self.add(cause);
    }

    /// Gives the next step a cause.
    pub(crate) fn add(&mut self, cause: Cause) {
        if self.next.len() < MOST && self.next.last() != Some(&cause) {
            self.next.push(cause);
        }
    }

    /// Keeps a cause for the step with the completion of the yield.
    pub(crate) fn keep(&mut self, token: u64, cause: Cause) {
        self.of_yields.insert(token, cause);
    }

    /// Forgets these yields, which are not outstanding any longer.
    pub(crate) fn forget(&mut self, tokens: &[u64]) {
        for token in tokens {
            self.of_yields.remove(token);
        }
    }

    /// Forgets all yields: none is outstanding any longer.
    pub(crate) fn forget_all(&mut self) {
        self.of_yields.clear();
    }

    /// Takes the causes of a step with the first `events` items of `pending`.
    pub(crate) fn take(&mut self, pending: &Batch<Item>, events: usize) -> Vec<Cause> {
        let mut taken = mem::take(&mut self.next);
        if self.of_yields.is_empty() {
            return taken;
        }
        for item in pending.iter().take(events) {
            if let Item::Event(Event::Completion(completion)) = item
                && let Some(cause) = self.of_yields.remove(&completion.token())
                && taken.last() != Some(&cause)
                && taken.len() < MOST
            {
                taken.push(cause);
            }
        }
        taken
    }
}
