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
use ganger_proc_api::{Completion, Event, Link, Tag};
use std::cell::{Cell, UnsafeCell};
use std::mem::MaybeUninit;

/// A place for one answer. It belongs to one thread.
pub(crate) struct AnswerPlace {
    link: UnsafeCell<Link>,
    is_full: Cell<bool>,
}

impl Default for AnswerPlace {
    fn default() -> Self {
        Self {
            link: UnsafeCell::new(Link::new()),
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
        unsafe { nodes::put_completion(tag, token, result, &mut *self.event()) };
    }

    /// Links the answer to the event that comes next, and says where that link is.
    #[inline]
    pub(crate) fn link_to(&self, next: *mut Link) -> *mut Link {
        let link = self.link.get();
        // SAFETY: it is this thread's, and nobody has a reference to the link in it.
        unsafe { Link::set_next(link, next) };
        link
    }

    /// The answer has been moved out of its place, or dropped there.
    #[inline]
    pub(crate) fn forget(&self) {
        self.is_full.set(false);
    }

    /// Takes the answer.
    ///
    /// # Safety
    /// Nobody has a reference to it.
    pub(crate) unsafe fn take(&self) -> Option<Event> {
        // SAFETY: there is an event, which is given away.
        (self.is_full.replace(false)).then(|| unsafe { (*self.event()).assume_init_read() })
    }

    /// The answer.
    pub(crate) fn get(&self) -> Option<&Event> {
        // SAFETY: there is an event. It goes only where nobody has a reference to it (`take`), or has been given away
        // (`forget`), and is replaced by nobody (`fill`).
        (self.is_full.get()).then(|| unsafe { (*self.event()).assume_init_ref() })
    }

    fn event(&self) -> *mut MaybeUninit<Event> {
        // SAFETY: a part of the place.
        unsafe { Link::event(self.link.get()) }
    }

    /// As [`get`](Self::get), to change it.
    pub(crate) fn get_mut(&mut self) -> Option<&mut Completion> {
        if !self.is_full.get() {
            return None;
        }
        // SAFETY: there is an event, and the place is borrowed for us alone.
        match unsafe { (*self.event()).assume_init_mut() } {
            Event::Completion(answer) => Some(answer),
            _ => None,
        }
    }

    /// The answer, as a list of one item.
    pub(crate) fn take_item(&mut self) -> Batch<Item> {
        // SAFETY: it is borrowed for us alone.
        let answer = unsafe { self.take() };
        answer.map_or_else(Batch::new, |answer| Batch::of(Item::Event(answer)))
    }
}

impl Drop for AnswerPlace {
    fn drop(&mut self) {
        // SAFETY: as above.
        drop(unsafe { self.take() });
    }
}
