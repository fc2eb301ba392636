//! Events that a step takes where they lie.
//!
//! **Problem.** A scheduler has the events of a step in a list of nodes. To ask it for each of them by a call through
//! a table, and to have it free each node at once, costs more than what most steps do with an event.
//!
//! **Protocol.** The scheduler says once a step where the first event lies and how many there are, and each is behind
//! a link to the next. The step takes one after the other out of its place. Which have been taken is counted where the
//! scheduler sees it, whatever becomes of the [`Events`](crate::Events) meanwhile; it frees their nodes together.

use crate::Event;
use std::cell::Cell;
use std::fmt;
use std::mem::MaybeUninit;

/// An event behind a link to the next one.
#[repr(C)]
pub struct Link {
    next: *mut Self,
    event: MaybeUninit<Event>,
}

impl Link {
    /// To nothing, and without an event.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            next: std::ptr::null_mut(),
            event: MaybeUninit::uninit(),
        }
    }

    /// Links it to another one.
    ///
    /// # Safety
    /// It is there, and nobody uses its link meanwhile.
    #[inline]
    pub unsafe fn set_next(this: *mut Self, next: *mut Self) {
        // SAFETY: as this function's.
        unsafe { (*this).next = next };
    }

    /// The place for the event.
    ///
    /// # Safety
    /// It is there.
    #[must_use]
    #[inline]
    pub unsafe fn event(this: *mut Self) -> *mut MaybeUninit<Event> {
        // SAFETY: as this function's.
        unsafe { &raw mut (*this).event }
    }
}

impl Default for Link {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").finish_non_exhaustive()
    }
}

/// Events that are lent: which of them have not been taken yet.
pub struct Lent {
    next: Cell<*mut Link>,
    left: Cell<usize>,
}

impl Lent {
    /// So many events, of which the first is in that place.
    ///
    /// # Safety
    /// There are so many, each linked to the next, each to be taken or left by this thread; and until others are
    /// [lent](Self::set), or this is not used any longer, they stay where they are and are taken by nobody else. At most
    /// one [`Events`](crate::Events) at a time goes by it.
    #[must_use]
    #[inline]
    pub const unsafe fn new(first: *mut Link, count: usize) -> Self {
        Self {
            next: Cell::new(first),
            left: Cell::new(count),
        }
    }

    /// Lends others.
    ///
    /// # Safety
    /// As for [`new`](Self::new).
    #[inline]
    pub unsafe fn set(&self, first: *mut Link, count: usize) {
        self.next.set(first);
        self.left.set(count);
    }

    /// How many have not been taken.
    #[must_use]
    #[inline]
    pub fn left(&self) -> usize {
        self.left.get()
    }

    /// The next one, left in its place.
    pub(crate) fn peek(&self) -> Option<&Event> {
        // SAFETY: while one is left, there is a link, with an event that is taken by way of one `Events` alone (contract of
        // `new`); and that is borrowed for as long as the reference is there.
        (self.left.get() > 0).then(|| unsafe { (*self.next.get()).event.assume_init_ref() })
    }

    /// Where the next event lies, which the caller is to take out or to drop.
    #[inline]
    pub(crate) fn take(&self) -> Option<*mut Event> {
        let left = self.left.get().checked_sub(1)?;
        self.left.set(left);
        let link = self.next.get();
        // SAFETY: while one is left, there is a link (contract of `new`).
        unsafe {
            self.next.set((*link).next);
            Some(Link::event(link).cast())
        }
    }
}

impl fmt::Debug for Lent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lent")
            .field("left", &self.left.get())
            .finish_non_exhaustive()
    }
}
