//! A cell whose accesses loom sees. Threads pass data in these cells, so a model fails on a data
//! race as well as on a wrong result.

#[cfg(ganger_loom)]
pub use loom::cell::UnsafeCell;

/// `std`'s [`UnsafeCell`](std::cell::UnsafeCell) with the interface of loom's.
#[cfg(not(ganger_loom))]
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct UnsafeCell<T: ?Sized>(std::cell::UnsafeCell<T>);

#[cfg(not(ganger_loom))]
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
    /// Code that dereferences the pointer must ensure that no other thread writes meanwhile.
    #[inline(always)]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    /// Calls `f` with a pointer for writing.
    ///
    /// Code that dereferences the pointer must ensure that no other thread reads or writes
    /// meanwhile.
    #[inline(always)]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}
