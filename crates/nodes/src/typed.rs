//! Memory by type, for values that live briefly.
//!
//! Under loom every value has its own allocation, so the model sees each as a new value. Slabs and
//! the exchange have their own models.

use crate::cache::{self, Pool};
use crate::set::BlockSet;
use crate::slab::Size;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Returns the size of the blocks for values of type `T`; `None` if each value has its own
/// allocation.
const fn size_for<T>() -> Option<Size> {
    const { assert!(size_of::<T>() > 0, "a value without a size needs no memory") };
    if cfg!(ganger_loom) {
        None
    } else {
        Size::of(Layout::new::<T>())
    }
}

/// Allocates uninitialised memory for a value of type `T`, owned by the caller. O(1), except for
/// calls of the allocator; aborts if it has no memory. Does not compile for a type without a size.
///
/// ```
/// use ganger_nodes::{allocate, free};
///
/// let memory = allocate::<u64>();
/// // SAFETY: fresh memory for a `u64`, which nothing uses afterwards.
/// unsafe {
///     memory.write(7);
///     assert_eq!(memory.read(), 7);
///     free(memory);
/// }
/// ```
#[must_use]
#[inline]
pub fn allocate<T>() -> NonNull<T> {
    let memory = match const { size_for::<T>() } {
        Some(size) => cache::take(Pool::Nodes, size),
        None => allocate_alone(Layout::new::<T>()),
    };
    memory.cast()
}

/// Allocates memory, as [`allocate`] does, for a value of a list. `list` identifies the list, for
/// example by its address; `newest` returns the address of the list's newest value, which may be
/// gone, or 0.
///
/// If a thread adds to many lists in turn, the memory of each list lies side by side. For this the
/// thread sets memory aside, up to 2 MiB for each size, until it calls [`end_runs`], or ends.
///
/// ```
/// use ganger_nodes::{allocate_behind, free};
///
/// let mut lists = [const { Vec::new() }; 50];
/// for _ in 0..50 {
///     for list in &mut lists {
///         let newest = list.last().map_or(0, |it: &std::ptr::NonNull<_>| it.addr().get());
///         let memory = allocate_behind::<[u64; 4]>(&raw const *list as usize, || newest);
///         list.push(memory);
///     }
/// }
/// let nodes = &lists[0];
/// let is_near = |at: &usize| nodes[at + 1].addr().get() == nodes[*at].addr().get() + 32;
/// assert!((0..49).filter(is_near).count() >= 30);
/// for memory in lists.into_iter().flatten() {
///     // SAFETY: it came from `allocate_behind`, and nothing uses it afterwards.
///     unsafe { free(memory) };
/// }
/// ```
///
/// [`end_runs`]: crate::end_runs
#[must_use]
#[inline]
pub fn allocate_behind<T>(list: usize, newest: impl FnOnce() -> usize) -> NonNull<T> {
    let memory = match const { size_for::<T>() } {
        Some(size) => cache::take_behind(size, list, newest),
        None => allocate_alone(Layout::new::<T>()),
    };
    memory.cast()
}

fn allocate_alone(layout: Layout) -> NonNull<u8> {
    // SAFETY: the layout has a size.
    let memory = unsafe { alloc(layout) };
    NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout))
}

/// Takes back memory from [`allocate`]. Drops nothing. O(1), except for calls of the allocator.
///
/// # Safety
/// The memory came from `allocate` with the same type, on any thread, and nothing uses it any
/// longer.
#[inline]
pub unsafe fn free<T>(memory: NonNull<T>) {
    match const { size_for::<T>() } {
        // SAFETY: the memory came from `take` with this pool and size, and nothing uses it any
        // longer.
        Some(size) => unsafe {
            cache::give(Pool::Nodes, BlockSet::of(memory.cast(), size), size);
        },
        // SAFETY: the memory came from `allocate_alone` with this layout.
        None => unsafe { dealloc(memory.as_ptr().cast(), Layout::new::<T>()) },
    }
}

/// Returns the usual distance in bytes between the addresses from two successive calls of
/// [`allocate`], the second above the first; 0 for values with their own allocations. A walk along
/// many nodes can guess the next node by it.
#[must_use]
#[inline]
pub const fn stride<T>() -> usize {
    match size_for::<T>() {
        Some(size) => size.bytes(),
        None => 0,
    }
}

/// Collects memory to free, so that neighbours go back together, at the price of one [`free`].
///
/// Holds the memory of up to 64 values, and gives it back when dropped.
///
/// ```
/// use ganger_nodes::{Returns, allocate};
///
/// let nodes = [(); 10].map(|()| allocate::<[u64; 2]>());
/// let mut returns = Returns::new();
/// for node in nodes {
///     // SAFETY: it came from `allocate`, and nothing uses it afterwards.
///     unsafe { returns.add(node) };
/// }
/// ```
pub struct Returns<T> {
    /// Free blocks; always empty for values with their own allocations.
    blocks: BlockSet,
    value: PhantomData<fn() -> T>,
}

// SAFETY: the memory is unused, and may go back on any thread.
unsafe impl<T> Send for Returns<T> {}
// SAFETY: a shared reference gives no access.
unsafe impl<T> Sync for Returns<T> {}

impl<T> Returns<T> {
    /// Creates an empty collection.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            blocks: BlockSet::EMPTY,
            value: PhantomData,
        }
    }

    /// Takes back memory from [`allocate`]. Drops nothing. O(1), except for calls of the allocator.
    ///
    /// # Safety
    /// The memory came from `allocate` with the same type, on any thread, and nothing uses it any
    /// longer.
    #[inline]
    pub unsafe fn add(&mut self, memory: NonNull<T>) {
        let Some(size) = (const { size_for::<T>() }) else {
            // SAFETY: by the contract of this function.
            return unsafe { free(memory) };
        };
        if let Some(others) = self.blocks.add(BlockSet::of(memory.cast(), size)) {
            Self::give(others);
        }
    }

    /// Gives back a set held here.
    #[inline(never)]
    fn give(blocks: BlockSet) {
        if let Some(size) = const { size_for::<T>() } {
            // SAFETY: the contract of `add` is the contract of `give`.
            unsafe { cache::give(Pool::Nodes, blocks, size) };
        }
    }
}

impl<T> Default for Returns<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for Returns<T> {
    #[inline]
    fn drop(&mut self) {
        if !self.blocks.is_empty() {
            Self::give(self.blocks);
        }
    }
}

impl<T> std::fmt::Debug for Returns<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Returns").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use crate::slab::Slab;
    use crate::values;

    /// Runs a test with memory for some values, which it gives back at the end.
    fn with_memory<T>(values: usize, test: impl FnOnce(&[NonNull<T>])) {
        let all: Vec<_> = (0..values).map(|_| allocate::<T>()).collect();
        test(&all);
        let mut returns = Returns::new();
        for (memory, nth) in all.into_iter().zip(0..) {
            // SAFETY: the memory came from `allocate`, and nothing uses it any longer.
            unsafe {
                if nth % 2 == 0 {
                    returns.add(memory);
                } else {
                    free(memory);
                }
            }
        }
    }

    #[test]
    fn values_that_are_made_in_a_row_are_neighbours() {
        with_memory::<[u64; 5]>(200, |all| {
            assert_eq!(stride::<[u64; 5]>(), 48);
            let is_guessed = |pair: &&[NonNull<_>]| {
                pair[1].addr().get().wrapping_sub(pair[0].addr().get()) == 48
            };
            assert!(all.windows(2).filter(is_guessed).count() >= 180);
        });
    }

    #[test]
    fn what_is_large_or_wide_is_allocated_alone() {
        #[repr(align(64))]
        struct Wide(#[allow(dead_code, reason = "it takes room")] u8);
        assert_eq!((stride::<[u8; 256]>(), stride::<[u8; 257]>()), (256, 0));
        assert_eq!(stride::<Wide>(), 0);
        with_memory::<[u8; 257]>(10, |all| all.iter().for_each(fill));
        with_memory::<Wide>(10, |all| assert!(all.iter().all(|it| it.is_aligned())));
    }

    fn fill<T>(memory: &NonNull<T>) {
        // SAFETY: memory for a `T`, owned by the test.
        unsafe { memory.cast::<u8>().write_bytes(7, size_of::<T>()) };
    }

    // Lasting values would keep the slabs of nodes.
    #[test]
    fn values_and_nodes_share_no_slab() {
        with_memory::<[u64; 4]>(200, |nodes| {
            let layout = Layout::new::<[u64; 4]>();
            let values: Vec<_> = (0..200).filter_map(|_| values::allocate(layout)).collect();
            let slabs = |memory: &[NonNull<u8>]| -> Vec<_> {
                memory.iter().map(|it| Slab::of(*it).addr()).collect()
            };
            let of_nodes = slabs(&nodes.iter().map(|it| it.cast()).collect::<Vec<_>>());
            assert!(slabs(&values).iter().all(|slab| !of_nodes.contains(slab)));
            assert_eq!(values.len(), 200);
            for memory in values {
                // SAFETY: the memory came from `allocate` with this layout, and nothing uses it any
                // longer.
                unsafe { values::free(memory, layout) };
            }
        });
    }

    #[test]
    fn the_memory_of_a_value_serves_another_value() {
        let take_many = || -> Vec<_> {
            let layout = Layout::new::<[u64; 4]>();
            (0..63).filter_map(|_| values::allocate(layout)).collect()
        };
        let free_all = |values: &[NonNull<u8>]| {
            for memory in values {
                // SAFETY: the memory came from `allocate` with this layout; nothing uses it any
                // longer.
                unsafe { values::free(*memory, Layout::new::<[u64; 4]>()) };
            }
        };
        // A new thread, which keeps no blocks at first.
        std::thread::spawn(move || {
            let first = take_many();
            free_all(&first);
            let again: Vec<_> = std::iter::repeat_with(take_many)
                .take(3)
                .flatten()
                .collect();
            assert!(again.iter().any(|it| first.contains(it)));
            free_all(&again);
        })
        .join()
        .unwrap();
    }
}
