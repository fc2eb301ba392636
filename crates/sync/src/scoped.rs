//! A thread-local value that holds for a scope.
//!
//! **Problem.** A thread marks its present act, and calls foreign code. The mark ends with the
//! call, also by a panic, and an inner scope of the same mark ends first.
//!
//! **Protocol.** [`Scoped::set`] replaces the value of a thread-local cell, and the drop of the
//! guard puts the previous value back. Guards of a cell are dropped in the reverse order of their
//! making. The value is `Copy`, so the thread-local has no destructor, and guards work in the
//! destructors of other thread-locals.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::thread::LocalKey;

/// Puts the previous value of a thread-local back when dropped.
///
/// ```
/// use ganger_sync::{Scoped, scoped};
/// use std::cell::Cell;
///
/// thread_local! {
///     static DEPTH: Cell<u32> = const { Cell::new(0) };
/// }
///
/// let outer = Scoped::set(&DEPTH, 1);
/// assert_eq!(scoped(&DEPTH, 2, || DEPTH.get()), 2);
/// assert_eq!(DEPTH.get(), 1);
/// drop(outer);
/// assert_eq!(DEPTH.get(), 0);
/// ```
#[must_use = "dropping it puts the previous value back"]
pub struct Scoped<T: Copy + 'static> {
    cell: &'static LocalKey<Cell<T>>,
    before: T,
    /// Keeps the guard on its thread.
    thread: PhantomData<*const ()>,
}

impl<T: Copy> Scoped<T> {
    /// Sets the value of this thread until the guard is dropped.
    #[inline]
    pub fn set(cell: &'static LocalKey<Cell<T>>, value: T) -> Self {
        Self {
            cell,
            before: cell.replace(value),
            thread: PhantomData,
        }
    }

    /// Returns the value before the scope.
    #[inline]
    #[must_use]
    pub fn before(&self) -> T {
        self.before
    }
}

impl<T: Copy> Drop for Scoped<T> {
    #[inline]
    fn drop(&mut self) {
        self.cell.set(self.before);
    }
}

impl<T: Copy + fmt::Debug> fmt::Debug for Scoped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scoped")
            .field("before", &self.before)
            .finish_non_exhaustive()
    }
}

/// Calls `f` with a value of this thread. The previous value is back when `f` returns or panics.
#[inline]
pub fn scoped<T: Copy, R>(cell: &'static LocalKey<Cell<T>>, value: T, f: impl FnOnce() -> R) -> R {
    let _scope = Scoped::set(cell, value);
    f()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;
    use std::thread;

    thread_local! {
        static VALUE: Cell<u32> = const { Cell::new(0) };
    }

    #[test]
    fn the_value_before_is_back_when_a_scope_ends_or_panics() {
        let inner = scoped(&VALUE, 1, || {
            assert!(catch_unwind(|| scoped(&VALUE, 2, || panic!("on purpose"))).is_err());
            assert_eq!(VALUE.get(), 1);
            let scope = Scoped::set(&VALUE, 3);
            assert_eq!(scope.before(), 1);
            scoped(&VALUE, 4, || VALUE.get()) + VALUE.get()
        });
        assert_eq!((inner, VALUE.get()), (7, 0));
    }

    #[test]
    fn a_scope_is_its_own_threads() {
        scoped(&VALUE, 1, || {
            assert_eq!(thread::spawn(|| VALUE.get()).join().ok(), Some(0));
        });
    }
}
