//! A value whose destructor is a call.

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

/// Holds a value of which there is rarely one, as a variant of an enum whose others have nothing to drop: whether there
/// is something to drop is then seen where the enum is dropped, and what there is to do is nowhere but here.
pub(crate) struct Apart<T>(ManuallyDrop<T>);

impl<T> Apart<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(ManuallyDrop::new(value))
    }

    pub(crate) fn into_inner(self) -> T {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: it is neither used nor dropped after that.
        unsafe { ManuallyDrop::take(&mut this.0) }
    }
}

impl<T> Deref for Apart<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Apart<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> Drop for Apart<T> {
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        // SAFETY: it is not used after that.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}
