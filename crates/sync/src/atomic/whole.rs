//! Loom's atomics, without the gaps in loom's exploration.
//!
//! **Problem.** Loom tries the orders of two accesses only if they conflict, and finds the conflict
//! when the later one comes: it compares a store with the *last* access of the atomic (loom 0.7.2,
//! `rt/atomic.rs`, `last_dependent_access`). Loads do not conflict with each other, so the last
//! access is not all that counts: thread A loads, thread B loads, and B stores. Loom compares B's
//! store with B's own load, and never tries it before A's load. Each protocol with a load before a
//! store is hit: sequence locks, indices of a single writer, compare-and-swap loops. See
//! <https://github.com/tokio-rs/loom/issues/392> and <https://github.com/tokio-rs/loom/issues/166>.
//!
//! **Rejected.** A patched copy of loom in the workspace: a foreign crate to maintain. A second
//! atomic, changed first by each access: all loads conflict then, and loom tries their orders in
//! vain. A second atomic for each thread that loads: loom takes a thread's first load, which makes
//! it, for a data race with the other threads' stores.
//!
//! **Protocol.** Each loading thread has a [`Mark`] on the atomic, and touches of a mark always
//! conflict.
//! 1. A load touches the mark of its thread after it has loaded.
//! 2. A store, or a read-modify-write, touches, after it has stored, all marks touched since the
//!    last store: these are the loads in conflict with it, besides the last access.
//!
//! Loom may switch threads before the access, and never between it and the touches. When a touch
//! conflicts with a touch by another thread, loom goes back to the nearest place before this touch
//! where it may switch: the access. So each touch stands for its access.
//!
//! **Why it is enough.** A store conflicts with earlier stores and loads. Any two stores conflict,
//! so the last store is enough, and loom has it. The loads before the last store conflict with the
//! last store. A thread's last load since then has the mark, and its earlier loads are found when
//! loom tries the store before the last one.
//!
//! **Why it adds no order.** A mark is a condition variable without waiters, whose notification
//! synchronises nothing in loom.

use super::Ordering;
use loom::sync::Condvar;
use loom::thread::{self, ThreadId};
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// An object of loom: its touches conflict with touches by other threads, and have no other effect.
struct Mark(Condvar);

impl Mark {
    /// Touches it, without a switch to another thread.
    fn touch(&self) {
        struct Explores;
        impl Drop for Explores {
            fn drop(&mut self) {
                loom::explore();
            }
        }
        loom::stop_exploring();
        // A touch panics if the model has too many branches.
        let _explores = Explores;
        self.0.notify_one();
    }
}

/// The marks of the threads that have loaded an atomic.
#[derive(Default)]
struct Marks(Mutex<Vec<OfThread>>);

struct OfThread {
    thread: ThreadId,
    mark: Mark,
    /// The thread has loaded since the last store.
    is_set: bool,
}

impl Marks {
    /// Notes that this thread has loaded.
    fn load(&self) {
        let this = thread::current().id();
        // The model's threads share a thread of the system, which does not switch in a touch.
        let mut marks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = marks.iter().position(|it| it.thread == this);
        let index = known.unwrap_or_else(|| {
            let mark = Mark(Condvar::new());
            marks.push(OfThread {
                thread: this,
                mark,
                is_set: false,
            });
            marks.len() - 1
        });
        marks[index].is_set = true;
        marks[index].mark.touch();
    }

    /// Notes that this thread has stored, or has had a read-modify-write.
    fn store(&self) {
        let this = thread::current().id();
        let mut marks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for of in &mut *marks {
            if std::mem::take(&mut of.is_set) && of.thread != this {
                of.mark.touch();
            }
        }
    }
}

/// The type of an atomic around loom's, with the methods of all atomics.
macro_rules! atomic {
    ($name:ident $(<$param:ident>)?, $value:ty) => {
        #[doc = concat!("Loom's `", stringify!($name), "`, with marks of the loads.")]
        pub struct $name $(<$param>)? {
            atomic: loom::sync::atomic::$name $(<$param>)?,
            marks: Marks,
        }

        impl $(<$param>)? $name $(<$param>)? {
            #[doc = concat!("As `std::sync::atomic::", stringify!($name), "::new`.")]
            #[track_caller]
            #[must_use]
            pub fn new(value: $value) -> Self {
                Self {
                    atomic: loom::sync::atomic::$name::new(value),
                    marks: Marks::default(),
                }
            }

            /// Takes the value out.
            #[track_caller]
            #[must_use]
            pub fn into_inner(self) -> $value {
                self.atomic.into_inner()
            }

            /// Reads the value without synchronisation, as loom's method does.
            ///
            /// # Safety
            /// No other thread changes the value meanwhile.
            #[track_caller]
            #[must_use]
            pub unsafe fn unsync_load(&self) -> $value {
                // SAFETY: the caller's promise.
                unsafe { self.atomic.unsync_load() }
            }

            /// Loads as `std`'s `load` does.
            #[track_caller]
            pub fn load(&self, order: Ordering) -> $value {
                let value = self.atomic.load(order);
                self.marks.load();
                value
            }

            /// Stores as `std`'s `store` does.
            #[track_caller]
            pub fn store(&self, value: $value, order: Ordering) {
                self.atomic.store(value, order);
                self.marks.store();
            }

            /// Exchanges as `std`'s `compare_exchange` does.
            ///
            /// # Errors
            /// Returns the value if it is not `current`.
            #[track_caller]
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                let result = self.atomic.compare_exchange(current, new, success, failure);
                self.marks.store();
                result
            }

            /// Exchanges as `std`'s `compare_exchange_weak` does, but never fails spuriously.
            ///
            /// # Errors
            /// Returns the value if it is not `current`.
            #[track_caller]
            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }

            /// Updates as `std`'s `fetch_update` does.
            ///
            /// # Errors
            /// Returns the value for which `update` gives `None`.
            #[track_caller]
            pub fn fetch_update(
                &self,
                success: Ordering,
                failure: Ordering,
                mut update: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                let mut value = self.load(failure);
                while let Some(new) = update(value) {
                    match self.compare_exchange(value, new, success, failure) {
                        Ok(value) => return Ok(value),
                        Err(found) => value = found,
                    }
                }
                Err(value)
            }
        }

        impl $(<$param>)? From<$value> for $name $(<$param>)? {
            fn from(value: $value) -> Self {
                Self::new(value)
            }
        }

        impl $(<$param>)? fmt::Debug for $name $(<$param>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.atomic.fmt(f)
            }
        }

        impl $(<$param>)? Default for $name $(<$param>)? {
            fn default() -> Self {
                let atomic = Default::default();
                Self { atomic, marks: Marks::default() }
            }
        }
    };
}

/// Read-modify-writes.
macro_rules! rmw {
    ($name:ident $(<$param:ident>)?, $value:ty: $($method:ident)*) => {
        impl $(<$param>)? $name $(<$param>)? {
            $(
                #[doc = concat!("As `std`'s `", stringify!($method), "`.")]
                #[track_caller]
                pub fn $method(&self, value: $value, order: Ordering) -> $value {
                    let before = self.atomic.$method(value, order);
                    self.marks.store();
                    before
                }
            )*
        }
    };
}

macro_rules! with_mut {
    ($name:ident $(<$param:ident>)?, $value:ty) => {
        impl $(<$param>)? $name $(<$param>)? {
            /// Calls `f` with the value, as loom's method does.
            #[track_caller]
            pub fn with_mut<R>(&mut self, f: impl FnOnce(&mut $value) -> R) -> R {
                self.atomic.with_mut(f)
            }
        }
    };
}

macro_rules! int {
    ($($name:ident $value:ty,)*) => {
        $(
            atomic!($name, $value);
            rmw!($name, $value: swap fetch_add fetch_sub fetch_and fetch_nand fetch_or fetch_xor
                fetch_max fetch_min);
            with_mut!($name, $value);
        )*
    };
}

int! { AtomicU8 u8, AtomicU16 u16, AtomicU32 u32, AtomicU64 u64, AtomicUsize usize, }

atomic!(AtomicBool, bool);
rmw!(AtomicBool, bool: swap fetch_and fetch_nand fetch_or fetch_xor);

atomic!(AtomicPtr<T>, *mut T);
rmw!(AtomicPtr<T>, *mut T: swap);
with_mut!(AtomicPtr<T>, *mut T);
