//! The causes of a process's steps, where its core keeps them: see `probe/carry.rs`.

use super::causes::Causes;
use super::item::Item;
use super::owned::Core;
use crate::probe::Cause;
use std::mem;

impl Core {
    /// Returns the causes of the next steps, for a caller that adds another cause.
    #[cold]
    pub(crate) fn causes(&mut self) -> &mut Causes {
        let aside = self.aside.get_or_insert_default();
        &mut aside.rare.get_or_insert_default().causes
    }

    /// Notes how many of the items joining `pending` now are causes.
    #[inline(always)]
    pub(crate) fn expect_causes(&mut self, causes: usize) {
        if causes > 0 {
            self.causes().waiting += causes;
        }
    }

    /// Returns the number of items that have left the mailbox and wait for a step, without their
    /// causes.
    pub(crate) fn waiting(&self) -> usize {
        let rare = self.aside.as_ref().and_then(|aside| aside.rare.as_ref());
        self.pending.len() - rare.map_or(0, |rare| rare.causes.waiting)
    }

    /// Takes the causes of the next step, which is shown `events` new events.
    #[cold]
    pub(crate) fn take_causes(&mut self, events: usize) -> Vec<Cause> {
        let pending = mem::take(&mut self.pending);
        let taken = self.settle_causes(|causes| causes.take(&pending, events));
        self.pending = pending;
        taken.unwrap_or_default()
    }

    /// Calls `f` with the causes, if any are kept, and frees their memory when none is left.
    pub(super) fn settle_causes<R>(&mut self, f: impl FnOnce(&mut Causes) -> R) -> Option<R> {
        let aside = self.aside.as_mut()?;
        let rare = aside.rare.as_mut()?;
        let result = f(&mut rare.causes);
        if rare.causes.is_empty() && rare.ending.is_none() {
            aside.rare = None;
            if aside.is_empty() {
                self.aside = None;
            }
        }
        Some(result)
    }

    /// Returns whether the next item is a cause for a later step than the events before it. A batch
    /// has no more causes than events, and a message held by its timer is settled first.
    pub(super) fn cause_waits(&self, is_full: bool, has_events: bool) -> bool {
        let mut next = self.pending.iter();
        matches!(next.next(), Some(Item::Cause(_)))
            && (is_full || has_events && matches!(next.next(), Some(Item::HeldByTimer(_))))
    }
}
