//! Memory by layout, for values that may live long.
//!
//! Each value in use keeps its whole slab. Values therefore share no slab with nodes, which are
//! many more, and short-lived.

use crate::cache::{self, Pool};
use crate::set::BlockSet;
use crate::slab::Size;
use std::alloc::Layout;
use std::ptr::NonNull;

/// Allocates uninitialised memory for a value of a layout, owned by the caller. `None` if the
/// layout has no size, has more than 256 bytes, or is aligned to more than 16; and under loom.
/// O(1), except for calls of the allocator; aborts if it has no memory.
///
/// ```
/// use ganger_nodes::values;
/// use std::alloc::Layout;
///
/// let layout = Layout::new::<[u64; 4]>();
/// let memory = values::allocate(layout).unwrap();
/// // SAFETY: fresh memory of that layout, which nothing uses afterwards.
/// unsafe {
///     memory.cast().write([7_u64; 4]);
///     values::free(memory, layout);
/// }
/// assert!(values::allocate(Layout::new::<[u64; 100]>()).is_none());
/// ```
#[must_use]
#[inline]
pub fn allocate(layout: Layout) -> Option<NonNull<u8>> {
    if cfg!(ganger_loom) {
        return None;
    }
    Size::of(layout).map(|size| cache::take(Pool::Values, size))
}

/// Takes back memory from [`allocate`], on any thread. Drops nothing. O(1), except for calls of the
/// allocator.
///
/// # Safety
/// The memory came from `allocate` with the same layout, and nothing uses it any longer.
#[inline]
pub unsafe fn free(memory: NonNull<u8>, layout: Layout) {
    if let Some(size) = Size::of(layout) {
        // SAFETY: the memory came from `take` with this pool and size, and nothing uses it any
        // longer.
        unsafe { cache::give(Pool::Values, BlockSet::of(memory, size), size) };
    }
}
