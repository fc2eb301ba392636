//! A cell whose accesses loom can see: data that threads hand to each other lives in these, so
//! that a model fails on a data race and not only on a wrong result.

#[cfg(loom)]
pub use loom::cell::UnsafeCell;

/// `std`'s [`UnsafeCell`](std::cell::UnsafeCell) with the interface of loom's.
#[cfg(not(loom))]
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct UnsafeCell<T: ?Sized>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    /// Wraps a value.
    #[inline]
    pub const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Takes the value out.
    #[inline]
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }

    /// Calls `f` with a pointer for reading.
    ///
    /// Whoever dereferences the pointer must know that nobody writes meanwhile.
    #[inline(always)]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    /// Calls `f` with a pointer for writing.
    ///
    /// Whoever dereferences the pointer must know that nobody reads or writes meanwhile.
    #[inline(always)]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}
