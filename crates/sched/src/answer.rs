//! Where the answer of a handler lies that came before the handler returned.
//!
//! **Problem.** The most frequent event of a process that has commands is the answer to the one that it has
//! just yielded. As an item of a list it would be moved into a node and out of it again, and its token would
//! go into the set of what is outstanding and out of it again, with nobody in between who could care.
//!
//! **Protocol.** While a turn lasts, the runner has one place for such an answer. It is in front of all that is
//! pending; so it is used only when nothing is. Its yield is in no set: it is outstanding as long as its
//! answer is here. When something else than the next step comes first (the turn's end, another yield, an
//! upgrade, what has been set aside), the answer becomes the first item of what is pending, and its yield one of
//! the set; and the last one when there was something pending before it came.

use crate::core::Item;
use crate::nodes::{self, CommandResult};
use ganger_mpsc::Batch;
use ganger_proc_api::{Completion, Event, Placed, Tag};
use std::cell::{Cell, UnsafeCell};
use std::mem::MaybeUninit;

/// A place for one answer. It belongs to one thread.
pub(crate) struct AnswerPlace {
    event: UnsafeCell<MaybeUninit<Event>>,
    is_full: Cell<bool>,
}

impl Default for AnswerPlace {
    fn default() -> Self {
        Self {
            event: UnsafeCell::new(MaybeUninit::uninit()),
            is_full: Cell::new(false),
        }
    }
}

impl AnswerPlace {
    pub(crate) fn is_full(&self) -> bool {
        self.is_full.get()
    }

    /// Puts an answer there, with a result that is taken from where it lies.
    ///
    /// # Safety
    /// There is none, and nobody has a reference to what was there. The caller does not use the result again, and
    /// does not drop it.
    #[inline]
    pub(crate) unsafe fn fill(&self, tag: Tag, token: u64, result: *const CommandResult) {
        let is_full = self.is_full.replace(true);
        debug_assert!(!is_full, "there is an answer already");
        // SAFETY: as this function's, and the place is this thread's.
        unsafe { nodes::put_completion(tag, token, result, &mut *self.event.get()) };
    }

    /// The answer, where it lies.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Placed<'_, Event>> {
        // SAFETY: there is an event, it is given away, and the place is borrowed for as long.
        (self.is_full.replace(false)).then(|| unsafe { Placed::new(self.event.get().cast()) })
    }

    /// The answer.
    pub(crate) fn get(&self) -> Option<&Event> {
        // SAFETY: there is an event. It goes only through `&mut self`, and is replaced by nobody (`fill`).
        (self.is_full.get()).then(|| unsafe { (*self.event.get()).assume_init_ref() })
    }

    /// As [`get`](Self::get), to change it.
    pub(crate) fn get_mut(&mut self) -> Option<&mut Completion> {
        if !self.is_full.get() {
            return None;
        }
        // SAFETY: there is an event.
        match unsafe { self.event.get_mut().assume_init_mut() } {
            Event::Completion(answer) => Some(answer),
            _ => None,
        }
    }

    /// The answer, as a list of one item.
    pub(crate) fn take_item(&mut self) -> Batch<Item> {
        let answer = self.take().map(|answer| Item::Event(answer.take()));
        answer.map_or_else(Batch::new, Batch::of)
    }
}

impl Drop for AnswerPlace {
    fn drop(&mut self) {
        drop(self.take());
    }
}
