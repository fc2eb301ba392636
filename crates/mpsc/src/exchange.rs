//! Where threads leave what they have too much of for those who have too little.
//!
//! **Problem.** Producers only take nodes and the consumer only gives them back. What piles up with
//! one thread has to get to the others, many nodes at a time, and there must be an end to how many
//! are kept.
//!
//! **Rejected.** A stack in one word: a thread that was suspended in a pop can swap in a link that is
//! out of date (the ABA problem), unless the word has a version or the memory is never returned. A
//! queue of an allocation a segment: it has no bound. A lock: it is taken in the middle of a send.
//!
//! **Protocol.** A few slots, each empty or the owner of one thing; and a count of those that are in a
//! slot or on their way there.
//! 1. *Put*: count it, unless there are too many; find an empty slot; compare-and-swap the thing in. None
//!    is empty: the thing comes back.
//! 2. *Take*: find a full slot; swap null in. Whoever gets the thing out owns it, and counts it out.
//!
//! Each slot's changes have one order, in which puts and successful takes alternate: so each thing
//! that was put is taken once. Nothing is read through a slot's pointer before it is out.
//!
//! Things are found where the count says, as long as they come and go one at a time: then the first so
//! many slots are full. If the count misleads, the others are looked through.

use ganger_sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::ptr;

/// `N` slots. Dropping it does nothing about what is in them.
pub(crate) struct Exchange<B, const N: usize> {
    /// How many things there are; a thing is counted before it is put and until it has been taken.
    count: AtomicUsize,
    /// Null, or what was put there. Changed by anybody.
    slots: [AtomicPtr<B>; N],
}

impl<B, const N: usize> Exchange<B, N> {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self {
            count: AtomicUsize::new(0),
            slots: [const { AtomicPtr::new(ptr::null_mut()) }; N],
        }
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self {
            count: AtomicUsize::new(0),
            slots: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
        }
    }

    /// Leaves `thing`, which is not null, in one of the slots; or says that `limit` things are there, or
    /// that no slot is empty. O(N), and O(1) as a rule.
    pub(crate) fn put(&self, thing: *mut B, limit: usize) -> bool {
        // Ordering: Relaxed, here and below: the count says nothing about what is in the slots.
        let before = self.count.fetch_add(1, Ordering::Relaxed);
        let is_in = before < limit && self.from(before).any(|slot| Self::put_in(slot, thing));
        if !is_in {
            // Ordering: Relaxed, as above.
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
        is_in
    }

    fn put_in(slot: &AtomicPtr<B>, thing: *mut B) -> bool {
        // Ordering: Relaxed, because it only saves an attempt. On success Release pairs with the Acquire
        // in `take_out`: what was done to the thing comes before. Relaxed on failure, because the slot
        // is left alone.
        slot.load(Ordering::Relaxed).is_null()
            && slot
                .compare_exchange(ptr::null_mut(), thing, Ordering::Release, Ordering::Relaxed)
                .is_ok()
    }

    /// Takes something out, if there is anything. O(N), and O(1) as a rule.
    pub(crate) fn take(&self) -> Option<*mut B> {
        // Ordering: Relaxed, as in `put`.
        let count = self.count.load(Ordering::Relaxed);
        if count == 0 {
            return None;
        }
        let thing = self.from(count).rev().find_map(Self::take_out)?;
        // Ordering: Relaxed, as in `put`.
        self.count.fetch_sub(1, Ordering::Relaxed);
        Some(thing)
    }

    fn take_out(slot: &AtomicPtr<B>) -> Option<*mut B> {
        // Ordering: Relaxed, because it only saves a swap.
        if slot.load(Ordering::Relaxed).is_null() {
            return None;
        }
        // Ordering: Acquire pairs with the Release in `put_in`.
        let thing = slot.swap(ptr::null_mut(), Ordering::Acquire);
        (!thing.is_null()).then_some(thing)
    }

    /// All slots, from this one on.
    fn from(&self, first: usize) -> impl DoubleEndedIterator<Item = &AtomicPtr<B>> {
        let (end, begin) = self.slots.split_at(first % N);
        begin.iter().chain(end)
    }
}
