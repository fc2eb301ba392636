//! The exchange: threads with too many slabs leave them to threads with too few.
//!
//! **Problem.** Producers only take nodes, and the consumer only frees them. Memory that piles up
//! with one thread has to reach the others, many nodes at a time, and within a bound.
//!
//! **Rejected.** A stack in one word: a thread suspended in a pop may swap in an outdated link (the
//! ABA problem), unless the word has a version or memory is never returned. A linked queue: it has
//! no bound. A lock: a send would wait for it.
//!
//! **Protocol.** A few slots, each empty or the owner of one thing; and a count of the things in
//! slots and on their way to a slot.
//! 1. *Put*: count the thing; if the count exceeds the limit, uncount it. Find an empty slot, and
//!    compare-and-swap the thing in. If no slot is empty, the thing stays the caller's.
//! 2. *Take*: find a full slot, and swap null in. The thread that gets the thing out owns it, and
//!    uncounts it.
//!
//! **Proof sketch.** The changes of a slot have one order, in which puts and successful takes
//! alternate, so each thing is taken once. No thread reads through a slot's pointer before it has
//! taken the thing.
//!
//! Things that come and go one at a time fill the first slots, as many as the count says, so the
//! search begins there. With a misleading count it also looks at the other slots.

use ganger_sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::ptr;

/// An exchange of `N` slots. Its destructor does not touch the things in them.
pub(crate) struct Exchange<B, const N: usize> {
    /// The number of things. A thing counts from before its put until after its take.
    count: AtomicUsize,
    /// Null, or a thing. Every thread may change them.
    slots: [AtomicPtr<B>; N],
}

impl<B, const N: usize> Exchange<B, N> {
    #[cfg(not(ganger_loom))]
    pub(crate) const fn new() -> Self {
        Self {
            count: AtomicUsize::new(0),
            slots: [const { AtomicPtr::new(ptr::null_mut()) }; N],
        }
    }

    #[cfg(ganger_loom)]
    pub(crate) fn new() -> Self {
        Self {
            count: AtomicUsize::new(0),
            slots: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
        }
    }

    /// Leaves `thing`, which is not null, in a slot. Returns `false`, and leaves it to the caller,
    /// if the count is at `limit` or no slot is empty. O(N); O(1) if the count does not mislead.
    pub(crate) fn put(&self, thing: *mut B, limit: usize) -> bool {
        // Ordering: Relaxed, because the count says nothing about the contents of slots.
        let before = self.count.fetch_add(1, Ordering::Relaxed);
        let is_in = before < limit && self.from(before).any(|slot| Self::put_in(slot, thing));
        if !is_in {
            // Ordering: Relaxed, because the count says nothing about the contents of slots.
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
        is_in
    }

    fn put_in(slot: &AtomicPtr<B>, thing: *mut B) -> bool {
        // Ordering: Relaxed, because the load only saves an attempt. On success, Release pairs with
        // the Acquire in `take_out`: the thread that takes the thing sees all earlier writes to it.
        // Relaxed on failure, because the slot stays unchanged.
        slot.load(Ordering::Relaxed).is_null()
            && slot
                .compare_exchange(ptr::null_mut(), thing, Ordering::Release, Ordering::Relaxed)
                .is_ok()
    }

    /// Takes a thing out, if a slot has one. O(N); O(1) if the count does not mislead.
    pub(crate) fn take(&self) -> Option<*mut B> {
        // Ordering: Relaxed, because the count says nothing about the contents of slots.
        let count = self.count.load(Ordering::Relaxed);
        if count == 0 {
            return None;
        }
        let thing = self.from(count).rev().find_map(Self::take_out)?;
        // Ordering: Relaxed, because the count says nothing about the contents of slots.
        self.count.fetch_sub(1, Ordering::Relaxed);
        Some(thing)
    }

    fn take_out(slot: &AtomicPtr<B>) -> Option<*mut B> {
        // Ordering: Relaxed, because the load only saves a swap.
        if slot.load(Ordering::Relaxed).is_null() {
            return None;
        }
        // Ordering: Acquire pairs with the Release in `put_in`.
        let thing = slot.swap(ptr::null_mut(), Ordering::Acquire);
        (!thing.is_null()).then_some(thing)
    }

    /// Returns all slots, beginning at index `first % N` and going round.
    fn from(&self, first: usize) -> impl DoubleEndedIterator<Item = &AtomicPtr<B>> {
        let (end, begin) = self.slots.split_at(first % N);
        begin.iter().chain(end)
    }
}
