//! Where the answer of a handler lies that came before the handler returned.
//!
//! **Problem.** The most frequent event of a process that has commands is the answer to the one that it has
//! just yielded. As an item of a list it would be moved into a node and out of it again, and its token would
//! go into the set of what is outstanding and out of it again, with nobody in between who could care.
//!
//! **Protocol.** While a turn lasts, the runner has one place for such an answer. It is in front of all that is
//! pending; so it is used only when nothing is. Its yield is in no set: it is outstanding as long as its
//! answer is here. When something else than the next step comes first (the turn's end, another yield, an
//! upgrade), the answer becomes the first item of what is pending, and its yield one of the set.

use crate::core::Item;
use ganger_mpsc::Batch;
use ganger_proc_api::{Completion, Event, Payload, Placed};
use std::cell::{Cell, UnsafeCell};
use std::mem::{self, MaybeUninit};

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

    /// Puts an answer there. There is none; else that one would be lost.
    #[inline]
    pub(crate) fn fill(&self, answer: Completion) {
        let is_full = self.is_full.replace(true);
        debug_assert!(!is_full, "there is an answer already");
        // SAFETY: nobody else has the place: a reference to what is there needs one to all of this, which
        // nobody keeps while it is filled.
        let event = unsafe { (*self.event.get()).write(empty()) };
        put(answer, event);
    }

    /// The answer, where it lies.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Placed<'_, Event>> {
        // SAFETY: there is an event, it is given away, and the place is borrowed for as long.
        (self.is_full.replace(false)).then(|| unsafe { Placed::new(self.event.get().cast()) })
    }

    /// The answer.
    pub(crate) fn get(&self) -> Option<&Event> {
        // SAFETY: there is an event. It goes only through `&mut self`.
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

/// A batch of one answer.
#[inline]
pub(crate) fn in_its_node(answer: Completion) -> Batch<Item> {
    let mut batch = Batch::of(Item::Event(empty()));
    match batch.front_mut() {
        Some(Item::Event(event)) => put(answer, event),
        _ => unreachable!("it has just been put there"),
    }
    batch
}

/// An answer that says nothing.
#[inline]
fn empty() -> Event {
    Event::Completion(Completion::of(0, 0, Ok(Payload::UNIT)))
}

/// Puts an answer in the place of one that says nothing: by way of an event with the answer in it, it would be
/// moved once more.
#[inline]
fn put(answer: Completion, event: &mut Event) {
    if let Event::Completion(place) = event {
        // SAFETY: both are there, and what is overwritten has nothing that has a destructor.
        unsafe { move_words(&raw const answer, place) };
        mem::forget(answer);
    }
}

/// Moves a value, word by word.
///
/// One that has been written just before, in words, is still on its way from the processor to the cache. A
/// word of it can be read from there, and two at once can't: whoever reads them waits until they have
/// arrived, and nothing behind that is done with meanwhile. Yet two at once is how a compiler moves it.
///
/// # Safety
/// As for [`ptr::copy_nonoverlapping`](std::ptr::copy_nonoverlapping) of one; the source is not used as a value
/// any more, nor is what the target was.
#[inline]
unsafe fn move_words<T>(source: *const T, target: *mut T) {
    /// Of a pointer's type, so that it may be a part of one.
    type Word = MaybeUninit<*const ()>;
    const {
        assert!(size_of::<T>().is_multiple_of(size_of::<Word>()));
        assert!(align_of::<T>() >= align_of::<Word>());
    }

    for word in 0..size_of::<T>() / size_of::<Word>() {
        // SAFETY: a part of each, aligned for it; any bytes are a word. Volatile, so that no two are read at
        // once.
        unsafe {
            let value = source.cast::<Word>().add(word).read_volatile();
            target.cast::<Word>().add(word).write(value);
        }
    }
}
