//! A box in memory that one thread allocates and another frees at little cost.
//!
//! **Problem.** General allocators are slowest when one thread allocates and another one frees.
//! Slabs are made for that: see [`values`]. They hold values of at most 256 bytes.
//!
//! **Price.** A value keeps its whole slab in use. So a value that lives for long belongs
//! elsewhere.

use ganger_nodes::values;
use std::alloc::Layout;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// A value in a block of a slab.
pub(crate) struct SmallBox<T: ?Sized> {
    value: NonNull<T>,
    owns: PhantomData<T>,
}

// SAFETY: it owns the value, and any thread may free the block.
unsafe impl<T: ?Sized + Send> Send for SmallBox<T> {}

impl<T> SmallBox<T> {
    /// A box of `value`. O(1).
    ///
    /// # Errors
    /// Gives the value back if no slab has blocks of its layout.
    #[inline]
    pub(crate) fn new(value: T) -> Result<Self, T> {
        let Some(block) = values::allocate(Layout::new::<T>()) else {
            return Err(value);
        };
        let block = block.cast::<T>();
        // SAFETY: fresh memory of the value's layout.
        unsafe { block.write(value) };
        Ok(Self::of(block))
    }

    /// The value, moved out.
    pub(crate) fn into_inner(self) -> T {
        let this = ManuallyDrop::new(self);
        let _block = this.block();
        // SAFETY: the box owns the value, and is not used afterwards.
        unsafe { this.value.read() }
    }
}

impl<T: ?Sized> SmallBox<T> {
    fn of(value: NonNull<T>) -> Self {
        Self {
            value,
            owns: PhantomData,
        }
    }

    /// The same box with another type of pointer, which `cast` makes: of a trait object, or back.
    ///
    /// # Safety
    /// `cast` returns a valid pointer to the same value, with the value's own layout.
    #[inline]
    pub(crate) unsafe fn cast<U: ?Sized>(
        self,
        cast: impl FnOnce(NonNull<T>) -> NonNull<U>,
    ) -> SmallBox<U> {
        SmallBox::of(cast(ManuallyDrop::new(self).value))
    }

    /// The block, which is freed when this is dropped.
    fn block(&self) -> Block {
        Block {
            memory: self.value.cast(),
            layout: Layout::for_value::<T>(self),
        }
    }
}

impl<T: ?Sized> Deref for SmallBox<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the value is there until the box is dropped, and borrowed like the box.
        unsafe { self.value.as_ref() }
    }
}

impl<T: ?Sized> DerefMut for SmallBox<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the value is there until the box is dropped, and borrowed like the box.
        unsafe { self.value.as_mut() }
    }
}

impl<T: ?Sized> Drop for SmallBox<T> {
    fn drop(&mut self) {
        // The block is freed even if the value's destructor panics.
        let _block = self.block();
        // SAFETY: the box owns the value, which nothing uses afterwards.
        unsafe { self.value.drop_in_place() };
    }
}

/// A block of a slab without a value.
struct Block {
    memory: NonNull<u8>,
    layout: Layout,
}

impl Drop for Block {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: it came from `allocate` with this layout, and its value is gone.
        unsafe { values::free(self.memory, self.layout) };
    }
}
