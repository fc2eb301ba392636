//! A box in memory that one thread allocates and another frees at little cost.
//!
//! **Problem.** General allocators are slowest when one thread allocates and another one frees.
//! Slabs are made for this case.
//!
//! **Price.** A value keeps its whole slab in use, so a long-lived value belongs elsewhere.

use crate::values;
use std::alloc::Layout;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// A value in a block of a slab: a `Box` for small values that one thread makes and another drops.
///
/// ```
/// use ganger_nodes::SmallBox;
///
/// let mut number = SmallBox::new(7_u64).unwrap();
/// *number += 1;
/// assert_eq!(std::thread::spawn(move || number.into_inner()).join().unwrap(), 8);
///
/// let large = SmallBox::new([0_u64; 100]);
/// assert!(large.is_err(), "more than 256 bytes");
/// ```
pub struct SmallBox<T: ?Sized> {
    value: NonNull<T>,
    owns: PhantomData<T>,
}

// SAFETY: the box owns the value, and any thread may free the block.
unsafe impl<T: ?Sized + Send> Send for SmallBox<T> {}
// SAFETY: a shared box only gives out shared references to the value.
unsafe impl<T: ?Sized + Sync> Sync for SmallBox<T> {}

impl<T> SmallBox<T> {
    /// Moves `value` into a box. O(1), except for calls of the allocator.
    ///
    /// # Errors
    /// Returns the value if it has no size, more than 256 bytes, or an alignment of more than 16;
    /// and under loom.
    #[inline]
    pub fn new(value: T) -> Result<Self, T> {
        let Some(block) = values::allocate(Layout::new::<T>()) else {
            return Err(value);
        };
        let block = block.cast::<T>();
        // SAFETY: fresh memory of the value's layout.
        unsafe { block.write(value) };
        Ok(Self::of(block))
    }

    /// Moves the value out.
    #[must_use]
    pub fn into_inner(self) -> T {
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

    /// Changes the type of the pointer with `cast`: to a trait object, or back.
    ///
    /// # Safety
    /// `cast` returns a valid pointer to the same value, with the value's own layout.
    #[inline]
    #[must_use]
    pub unsafe fn cast<U: ?Sized>(
        self,
        cast: impl FnOnce(NonNull<T>) -> NonNull<U>,
    ) -> SmallBox<U> {
        SmallBox::of(cast(ManuallyDrop::new(self).value))
    }

    /// Returns the block, whose destructor frees it.
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
        // SAFETY: the value lives until the box is dropped, and is borrowed like the box.
        unsafe { self.value.as_ref() }
    }
}

impl<T: ?Sized> DerefMut for SmallBox<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the value lives until the box is dropped, and is borrowed like the box.
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

impl<T: ?Sized + fmt::Debug> fmt::Debug for SmallBox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
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
        // SAFETY: the memory came from `allocate` with this layout, and its value is gone.
        unsafe { values::free(self.memory, self.layout) };
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::rc::Rc;

    /// Holds a counted value. Its destructor panics if it is armed.
    struct Bomb {
        _counted: Rc<()>,
        is_armed: bool,
    }

    impl Drop for Bomb {
        fn drop(&mut self) {
            assert!(!self.is_armed, "on purpose: destructor");
        }
    }

    #[test]
    fn a_value_is_dropped_once_or_comes_out() {
        let counted = Rc::new(());
        let new = |is_armed| {
            let _counted = Rc::clone(&counted);
            SmallBox::new(Bomb { _counted, is_armed })
        };
        drop(new(false));
        assert_eq!(Rc::strong_count(&counted), 1);
        let inner = new(false).ok().map(SmallBox::into_inner);
        assert_eq!(Rc::strong_count(&counted), 2);
        drop(inner);
        assert!(catch_unwind(AssertUnwindSafe(|| drop(new(true)))).is_err());
        assert_eq!(Rc::strong_count(&counted), 1);
    }

    #[test]
    fn a_cast_makes_a_trait_object_and_comes_back() {
        let number = SmallBox::new(7_u64).unwrap();
        // SAFETY: the cast makes a trait object of the pointer.
        let any = unsafe { number.cast(|it| it as NonNull<dyn fmt::Debug>) };
        assert_eq!(format!("{any:?}"), "7");
        // SAFETY: the value is the same `u64`.
        let number = unsafe { any.cast(NonNull::cast::<u64>) };
        assert_eq!(number.into_inner(), 7);
    }

    #[test]
    fn what_fits_no_block_comes_back() {
        #[repr(align(32))]
        struct Wide(u8);
        assert!(SmallBox::new(()).is_err());
        assert!(SmallBox::new([7_u8; 257]).is_err_and(|it| it == [7; 257]));
        assert!(SmallBox::new(Wide(7)).is_err_and(|it| it.0 == 7));
        assert_eq!(SmallBox::new([7_u8; 256]).unwrap()[255], 7);
    }
}
