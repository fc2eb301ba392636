//! A value that is handed over where it lies.

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;

/// A value that its holder owns, in memory of somebody else's: for values that cost more to move than to
/// use. Whoever [takes](Self::take) it where its parts are used moves those parts alone.
pub struct Placed<'a, T> {
    place: *mut T,
    memory: PhantomData<(&'a mut T, T)>,
}

impl<T> Placed<'_, T> {
    /// The value in that place.
    ///
    /// # Safety
    /// The place is valid and aligned, and one is there, which the caller gives away; nobody else uses the place
    /// while this is there.
    #[must_use]
    #[inline]
    pub unsafe fn new(place: *mut T) -> Self {
        Self {
            place,
            memory: PhantomData,
        }
    }

    /// The value, moved.
    #[must_use]
    #[inline]
    pub fn take(self) -> T {
        // SAFETY: a value that is ours, and is not used in its place again.
        unsafe { self.into_place().read() }
    }

    /// Where the value lies, which the caller is to take out or to drop.
    #[must_use]
    #[inline]
    pub(crate) fn into_place(self) -> *mut T {
        ManuallyDrop::new(self).place
    }

    /// The value, left in place.
    #[must_use]
    #[inline]
    pub fn get(&self) -> &T {
        // SAFETY: ours, and borrowed like this.
        unsafe { &*self.place }
    }
}

impl<T> Drop for Placed<'_, T> {
    fn drop(&mut self) {
        // SAFETY: ours, and not used in its place again.
        unsafe { self.place.drop_in_place() };
    }
}

impl<T: fmt::Debug> fmt::Debug for Placed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}
