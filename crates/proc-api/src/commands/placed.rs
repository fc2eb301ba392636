//! A value that a scheduler hands over together with the right to move it.

use std::marker::PhantomData;

/// A value that its holder owns until the place that it came from is used again.
#[derive(Debug)]
pub struct Placed<'a, T> {
    value: T,
    place: PhantomData<&'a mut T>,
}

impl<T> Placed<'_, T> {
    #[inline]
    pub(crate) fn of(value: T) -> Self {
        Self {
            value,
            place: PhantomData,
        }
    }

    /// The value, moved.
    #[must_use]
    #[inline]
    pub fn take(self) -> T {
        self.value
    }

    /// The value, left in place.
    #[must_use]
    #[inline]
    pub fn get(&self) -> &T {
        &self.value
    }
}
