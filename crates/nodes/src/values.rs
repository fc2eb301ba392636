//! Memory by layout, for values that may live long.
//!
//! Each such value keeps the slab that it is in. So they share no slab with nodes, of which there
//! are many more, and which come and go.

use crate::cache::{self, Pool};
use crate::set::BlockSet;
use crate::slab::Size;
use std::alloc::Layout;
use std::ptr::NonNull;

/// Memory for a value of that layout, not initialised, which the caller owns. `None` if the layout
/// has no size, has more than 256 bytes, or is aligned to more than 16; and under loom. O(1), but
/// for calls of the allocator; aborts where that has no memory.
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

/// Takes back memory that [`allocate`] gave, on any thread. Drops nothing. O(1), but for calls of
/// the allocator.
///
/// # Safety
/// It came from `allocate` with the same layout, and nothing uses it any longer.
#[inline]
pub unsafe fn free(memory: NonNull<u8>, layout: Layout) {
    if let Some(size) = Size::of(layout) {
        // SAFETY: it came from `take` with this pool and size, and nothing uses it any longer.
        unsafe { cache::give(Pool::Values, BlockSet::of(memory, size), size) };
    }
}
