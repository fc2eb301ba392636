//! A value that shared references cannot reach.

use std::fmt;

/// Holds a value and gives access only by value or through `&mut`. So it is `Sync` even if the
/// value is not.
///
/// Payloads and processes are `Send`, and need not be `Sync`. An error with such a value inside
/// must be both, to travel in a [`BoxError`](crate::BoxError).
#[derive(Default)]
#[repr(transparent)]
pub struct Exclusive<T: ?Sized>(T);

// SAFETY: a `&Exclusive<T>` gives no access to the `T`, so sharing it shares nothing.
unsafe impl<T: ?Sized> Sync for Exclusive<T> {}

impl<T> Exclusive<T> {
    /// Wraps a value.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// Takes the value out.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T: ?Sized> Exclusive<T> {
    /// Returns the value, by unique reference.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: ?Sized> fmt::Debug for Exclusive<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Exclusive(..)")
    }
}
