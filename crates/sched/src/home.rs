//! Where a process itself is: the box that it came in, or memory that goes from one thread to another at
//! little cost.
//!
//! A process is often made by one thread and dropped by another, which is what general allocators are
//! slowest at. The memory of mailboxes' nodes is made for just that, so small processes live there.

use ganger_mpsc::node_cache;
use ganger_proc_api::Process;
use std::alloc::Layout;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
use std::{fmt, mem};

/// A process, and the memory that it is in.
pub(crate) struct Home {
    process: NonNull<dyn Process>,
    is_boxed: bool,
}

// SAFETY: it owns the process, which is `Send`, and memory that may go back on any thread.
unsafe impl Send for Home {}

/// A process that is to be submitted, and may have to be given back in a box.
pub(crate) struct Arrival {
    home: Home,
    into_box: IntoBox,
}

/// Puts a process into a box that is of the type that it was made for.
pub(crate) type IntoBox = fn(Home) -> Box<dyn Process>;

impl Home {
    pub(crate) fn boxed(process: Box<dyn Process>) -> Self {
        Self {
            // SAFETY: a box is not null.
            process: unsafe { NonNull::new_unchecked(Box::into_raw(process)) },
            is_boxed: true,
        }
    }

    #[inline]
    fn new<P: Process>(process: P) -> Self {
        let Some(memory) = node_cache::allocate(Layout::new::<P>()) else {
            return Self::boxed(Box::new(process));
        };
        let place = memory.cast::<P>();
        // SAFETY: fresh memory of its layout.
        unsafe { place.write(process) };
        Self {
            process: place as NonNull<dyn Process>,
            is_boxed: false,
        }
    }

    /// Puts the process, which is a `P`, into a box.
    fn into_box<P: Process>(self) -> Box<dyn Process> {
        let (process, is_boxed) = (self.process, self.is_boxed);
        mem::forget(self);
        if is_boxed {
            // SAFETY: it came from a box, and is used no more here.
            return unsafe { Box::from_raw(process.as_ptr()) };
        }
        let place = process.cast::<P>();
        // SAFETY: a `P`, as the caller says, which is moved out.
        let value = unsafe { place.read() };
        // SAFETY: it came from `allocate` with this layout, and is empty.
        unsafe { node_cache::deallocate(place.cast(), Layout::new::<P>()) };
        Box::new(value)
    }
}

impl Deref for Home {
    type Target = dyn Process;

    #[inline]
    fn deref(&self) -> &Self::Target {
        // SAFETY: it is there until the home is dropped.
        unsafe { self.process.as_ref() }
    }
}

impl DerefMut for Home {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        // SAFETY: as above, and nobody else has a reference to it.
        unsafe { self.process.as_mut() }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        /// Gives the memory back, also when the process's destructor panics.
        struct Memory(NonNull<u8>, Layout);
        impl Drop for Memory {
            fn drop(&mut self) {
                // SAFETY: it came from `allocate` with this layout, and the process is gone.
                unsafe { node_cache::deallocate(self.0, self.1) };
            }
        }
        if self.is_boxed {
            // SAFETY: it came from a box, and is used no more.
            drop(unsafe { Box::from_raw(self.process.as_ptr()) });
        } else {
            let _memory = Memory(
                self.process.cast(),
                Layout::for_value::<dyn Process>(&**self),
            );
            // SAFETY: it is used no more.
            unsafe { ptr::drop_in_place(self.process.as_ptr()) };
        }
    }
}

impl fmt::Debug for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Home")
            .field("is_boxed", &self.is_boxed)
            .finish_non_exhaustive()
    }
}

impl Arrival {
    #[inline]
    pub(crate) fn new<P: Process>(process: P) -> Self {
        Self {
            home: Home::new(process),
            into_box: Home::into_box::<P>,
        }
    }

    /// One that came in a box.
    pub(crate) fn boxed(process: Box<dyn Process>) -> Self {
        Self {
            home: Home::boxed(process),
            into_box: |home| {
                let process = home.process;
                mem::forget(home);
                // SAFETY: it came from a box, and is used no more here.
                unsafe { Box::from_raw(process.as_ptr()) }
            },
        }
    }

    pub(crate) fn into_box(self) -> Box<dyn Process> {
        (self.into_box)(self.home)
    }

    /// The process in its home, and what puts it into a box should it come back.
    pub(crate) fn into_parts(self) -> (Home, IntoBox) {
        (self.home, self.into_box)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use ganger_proc_api::{BoxError, Events, StepOutput};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    /// Of a size and an alignment; holds something, and may panic when it is dropped.
    #[repr(C)]
    struct Sized<const N: usize, A> {
        align: [A; 0],
        bytes: [u8; N],
        held: Option<Arc<()>>,
        is_bomb: bool,
    }

    impl<const N: usize, A: Send + 'static> Process for Sized<N, A> {
        fn step(&mut self, _: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
            let sum: u64 = self.bytes.iter().map(|&byte| u64::from(byte)).sum();
            out.done(sum);
            Ok(())
        }
    }

    impl<const N: usize, A> Drop for Sized<N, A> {
        fn drop(&mut self) {
            assert!(!self.is_bomb, "dropped");
        }
    }

    fn sized<const N: usize, A>(held: &Arc<()>, is_bomb: bool) -> Sized<N, A> {
        Sized {
            align: [],
            bytes: [1; N],
            held: Some(Arc::clone(held)),
            is_bomb,
        }
    }

    #[repr(align(64))]
    struct Wide;

    fn sum(process: &mut dyn Process) -> Option<u64> {
        let mut out = StepOutput::new();
        let mut none = std::collections::VecDeque::new();
        process.step(&mut Events::new(&mut none), &mut out).unwrap();
        match out.take_outcome() {
            ganger_proc_api::Outcome::Done(sum) => sum.as_u64(),
            _ => None,
        }
    }

    fn check<const N: usize, A: Send + 'static>(is_boxed: bool) {
        let held = Arc::new(());
        let (mut home, into_box) = Arrival::new(sized::<N, A>(&held, false)).into_parts();
        assert_eq!(home.is_boxed, is_boxed);
        assert_eq!(home.process.addr().get() % align_of::<Sized<N, A>>(), 0);
        assert_eq!(sum(&mut *home), Some(N as u64));
        let mut back = into_box(home);
        assert_eq!(sum(&mut *back), Some(N as u64));
        let (home, _) = Arrival::boxed(back).into_parts();
        assert!(home.is_boxed);
        drop(home);
        drop(Arrival::new(sized::<N, A>(&held, false)).into_parts());
        assert_eq!(Arc::strong_count(&held), 1);
        let home = Arrival::new(sized::<N, A>(&held, true)).into_parts().0;
        assert!(catch_unwind(AssertUnwindSafe(|| drop(home))).is_err());
        assert_eq!(Arc::strong_count(&held), 1);
    }

    // pins: P2
    #[test]
    fn processes_of_all_sizes_are_there_come_back_and_are_dropped_once() {
        check::<0, u8>(false);
        check::<3, u64>(false);
        check::<100, u128>(false);
        check::<239, u8>(false);
        check::<1_000, u8>(true);
        check::<8, Wide>(true);
    }
}
