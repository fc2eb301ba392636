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
//! **Protocol.** A few slots, each empty or the owner of one thing.
//! 1. *Put*: find an empty slot; compare-and-swap the thing in. None is empty: the thing comes back.
//! 2. *Take*: find a full slot; swap null in. Whoever gets the thing out owns it.
//!
//! Each slot's changes have one order, in which puts and successful takes alternate: so each thing
//! that was put is taken once. Nothing is read through a slot's pointer before it is out.

use ganger_sync::atomic::{AtomicPtr, Ordering};
use std::ptr;

/// `N` slots. Dropping it does nothing about what is in them.
pub(crate) struct Exchange<B, const N: usize> {
    /// Null, or what was put there. Changed by anybody.
    slots: [AtomicPtr<B>; N],
}

impl<B, const N: usize> Exchange<B, N> {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self {
            slots: [const { AtomicPtr::new(ptr::null_mut()) }; N],
        }
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self {
            slots: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
        }
    }

    /// Leaves `thing`, which is not null, in one of the first `limit` slots; or says that none is
    /// empty. O(N).
    pub(crate) fn put(&self, thing: *mut B, limit: usize) -> bool {
        self.slots.iter().take(limit).any(|slot| {
            // Ordering: Relaxed, because it only saves an attempt. On success Release pairs with
            // the Acquire in `take`: what was done to the thing comes before. Relaxed on failure,
            // because the slot is left alone.
            slot.load(Ordering::Relaxed).is_null()
                && slot
                    .compare_exchange(ptr::null_mut(), thing, Ordering::Release, Ordering::Relaxed)
                    .is_ok()
        })
    }

    /// Takes something out, if there is anything. O(N).
    pub(crate) fn take(&self) -> Option<*mut B> {
        self.slots.iter().find_map(|slot| {
            // Ordering: Relaxed, because it only saves a swap.
            if slot.load(Ordering::Relaxed).is_null() {
                return None;
            }
            // Ordering: Acquire pairs with the Release in `put`.
            let thing = slot.swap(ptr::null_mut(), Ordering::Acquire);
            (!thing.is_null()).then_some(thing)
        })
    }
}
