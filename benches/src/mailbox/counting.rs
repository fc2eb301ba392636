//! An allocator that counts the allocations of a thread, while the thread wants it. At other times
//! it only reads a flag of that thread.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

/// Another allocator, whose calls are counted within `counted`.
#[derive(Clone, Copy, Debug)]
pub struct Counting<A>(
    /// The other one.
    pub A,
);

/// The allocations of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// The number of requests for memory, including requests for more in place of a block.
    pub(super) allocations: u64,
    /// The allocated bytes, less the freed bytes.
    pub(super) bytes: i64,
}

thread_local! {
    static IS_ON: Cell<bool> = const { Cell::new(false) };
    static COUNTS: Cell<Counts> = const { Cell::new(Counts { allocations: 0, bytes: 0 }) };
}

/// Counts the allocations of the calling thread in `f`. Calls are not nested.
///
/// # Panics
/// When [`Counting`] is not the program's allocator.
pub(super) fn counted<R>(f: impl FnOnce() -> R) -> (R, Counts) {
    assert_eq!(
        count(|| drop(std::hint::black_box(Box::new(0_u8))))
            .1
            .allocations,
        1,
        "make `Counting` the `#[global_allocator]` of this program"
    );
    count(f)
}

fn count<R>(f: impl FnOnce() -> R) -> (R, Counts) {
    /// Off, also when `f` panics.
    struct Off;

    impl Drop for Off {
        fn drop(&mut self) {
            IS_ON.set(false);
        }
    }

    COUNTS.set(Counts::default());
    IS_ON.set(true);
    let off = Off;
    let result = f();
    drop(off);
    (result, COUNTS.get())
}

impl<A> Counting<A> {
    #[inline]
    fn note(&self, allocations: u64, given: usize, returned: usize) {
        if IS_ON.get() {
            note(allocations, given, returned);
        }
    }
}

#[cold]
fn note(allocations: u64, given: usize, returned: usize) {
    let size = |bytes: usize| i64::try_from(bytes).unwrap_or(i64::MAX);
    let counts = COUNTS.get();
    COUNTS.set(Counts {
        allocations: counts.allocations + allocations,
        bytes: counts.bytes + size(given) - size(returned),
    });
}

// SAFETY: every call is passed on as it is, and counting neither allocates nor panics.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.note(1, layout.size(), 0);
        // SAFETY: as the caller says.
        unsafe { self.0.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.note(1, layout.size(), 0);
        // SAFETY: as the caller says.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.note(1, size, layout.size());
        // SAFETY: as the caller says.
        unsafe { self.0.realloc(memory, layout, size) }
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        self.note(0, 0, layout.size());
        // SAFETY: as the caller says.
        unsafe { self.0.dealloc(memory, layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::alloc::System;
    use std::hint::black_box;

    #[global_allocator]
    static HEAP: Counting<System> = Counting(System);

    #[test]
    fn what_is_kept_grown_and_returned_is_counted() {
        let kept = black_box(Box::new([0_u8; 10]));
        let (grown, counts) = counted(|| {
            let mut grown: Vec<u8> = black_box(Vec::with_capacity(100));
            grown.reserve_exact(200);
            drop(black_box(Box::new(0_u64)));
            drop(kept);
            grown
        });
        let expected = Counts {
            allocations: 3,
            bytes: 200 - 10,
        };
        assert_eq!(counts, expected);
        drop(grown);
    }

    #[test]
    fn what_another_thread_allocates_is_not_counted() {
        const SIZE: usize = 1 << 20;
        let (memory, counts) = counted(|| {
            let other = std::thread::spawn(|| vec![1_u8; SIZE]);
            other.join().unwrap()
        });
        assert_eq!(memory.len(), SIZE);
        assert!(counts.bytes < 1 << 20, "{counts:?}");
    }
}
