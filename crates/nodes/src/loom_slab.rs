//! The slab: the thread that gives the last blocks back owns it alone, and sees all writes to the
//! blocks.

use crate::slab::{SIZES, Size, Slab};
use ganger_sync::cell::UnsafeCell;
use ganger_sync::sync::Arc;
use ganger_sync::thread::JoinHandle;
use ganger_sync::{model, thread};
use std::ops::RangeInclusive;
use std::ptr::NonNull;

/// The size with the fewest blocks in a slab.
const SIZE: Size = Size(SIZES - 1);

/// An open slab whose blocks are in `N` parts, each with one owner.
struct Parts<const N: usize> {
    slab: NonNull<Slab>,
    /// How often each part has been used. The counts lie outside of the slab, where the model sees
    /// them.
    uses: [UnsafeCell<u32>; N],
}

// SAFETY: the slab belongs to the owners of its parts.
unsafe impl<const N: usize> Send for Parts<N> {}
// SAFETY: each part is used by its owner, and all of them by the last owner; otherwise the model
// fails.
unsafe impl<const N: usize> Sync for Parts<N> {}

impl<const N: usize> Parts<N> {
    fn new() -> Arc<Self> {
        let parts = Self {
            slab: Slab::allocate(),
            uses: std::array::from_fn(|_| UnsafeCell::new(0)),
        };
        // SAFETY: the slab is new, and this thread's alone.
        unsafe { Slab::open(parts.slab) };
        Arc::new(parts)
    }

    /// Returns the places of a part's blocks.
    fn places(part: usize) -> RangeInclusive<usize> {
        let first = SIZE.blocks() * part / N;
        let last = SIZE.blocks() * (part + 1) / N;
        first + 1..=last
    }

    /// Writes to a part, which is the caller's.
    fn use_part(&self, part: usize) {
        // SAFETY: no other thread uses the part, by the contract of this function.
        self.uses[part].with_mut(|uses| unsafe { *uses += 1 });
        let places = Self::places(part);
        let bytes = places.clone().count() * SIZE.bytes();
        // SAFETY: the part is the caller's, and within the slab.
        unsafe {
            let first = self.slab.cast::<u8>().add(places.start() * SIZE.bytes());
            first.write_bytes(u8::MAX, bytes);
        }
    }

    /// Uses a part, which is the caller's, and gives it back; returns whether it was the last.
    fn give(&self, part: usize) -> bool {
        self.use_part(part);
        // SAFETY: the slab is open, and the blocks are the caller's.
        unsafe { Slab::give_back(self.slab, Self::places(part).count(), SIZE) }
    }

    /// Uses all parts for the last owner, and checks that each was used `times` times before.
    fn use_all(&self, times: u32) {
        for (part, uses) in self.uses.iter().enumerate() {
            // SAFETY: all parts are the caller's.
            assert_eq!(uses.with(|uses| unsafe { *uses }), times, "part {part}");
            self.use_part(part);
        }
    }

    /// Gives a part back, as [`give`](Self::give) does. With the last part, frees the slab, whose
    /// parts have been used `times` times.
    fn give_or_free(&self, part: usize, times: u32) -> bool {
        let is_last = self.give(part);
        if is_last {
            self.use_all(times);
            // SAFETY: the slab is the caller's alone.
            unsafe { Slab::free(self.slab) };
        }
        is_last
    }
}

fn spawn<const N: usize, R: Send + 'static>(
    parts: &Arc<Parts<N>>,
    body: impl FnOnce(&Arc<Parts<N>>) -> R + Send + 'static,
) -> JoinHandle<R> {
    let parts = Arc::clone(parts);
    thread::spawn(move || body(&parts))
}

/// Returns how many threads gave the last part.
fn lasts<const N: usize>(gives: [bool; N]) -> usize {
    gives.into_iter().filter(|is_last| *is_last).count()
}

#[test]
fn two_give_back_one_part_each() {
    model::check(6, || {
        let parts = Parts::<2>::new();
        let other = spawn(&parts, |parts| parts.give_or_free(0, 1));
        let own = parts.give_or_free(1, 1);
        assert_eq!(lasts([own, other.join().unwrap()]), 1);
    });
}

#[test]
fn three_give_back_one_of_them_in_two_goes() {
    model::check(4, || {
        let parts = Parts::<4>::new();
        let others = [0, 1].map(|part| spawn(&parts, move |parts| parts.give_or_free(part, 1)));
        let own = [2, 3].map(|part| parts.give_or_free(part, 1));
        let [first, second] = others.map(|other| other.join().unwrap());
        assert_eq!(lasts([own[0], own[1], first, second]), 1);
    });
}

/// Opens the slab again by the last thread, which shares the slab with a new thread.
#[test]
fn a_complete_slab_is_used_again() {
    fn give(parts: &Arc<Parts<2>>, part: usize) -> bool {
        let is_last = parts.give(part);
        if is_last {
            parts.use_all(1);
            // SAFETY: the slab is this thread's alone.
            unsafe { Slab::open(parts.slab) };
            let other = spawn(parts, |parts| parts.give_or_free(0, 3));
            let own = parts.give_or_free(1, 3);
            assert_eq!(lasts([own, other.join().unwrap()]), 1);
        }
        is_last
    }
    model::check(4, || {
        let parts = Parts::<2>::new();
        let other = spawn(&parts, |parts| give(parts, 0));
        let own = give(&parts, 1);
        assert_eq!(lasts([own, other.join().unwrap()]), 1);
    });
}
