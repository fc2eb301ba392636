//! Where a process itself is: a box, or memory that goes from one thread to another at little cost.
//!
//! **Problem.** A process is often made by one thread and dropped by another, which is what general
//! allocators are slowest at. Memory for just that is the one that mailboxes' nodes come from; but there a
//! few that stay keep slabs from being used again, as nodes do not and processes may.
//!
//! **Protocol.** A small process begins in a block of such a slab. When it has waited [`SETTLED`] times,
//! before its next step it is moved to a box: it has lived for long by then, as far as anybody knows, and
//! the price is paid once. The block begins with what knows the type.

use ganger_nodes::values;
use ganger_proc_api::Process;
use std::alloc::Layout;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
use std::{fmt, mem};

/// How often a process has waited when it moves to a box.
const SETTLED: u8 = 2;

/// A process, and the memory that it is in.
pub(crate) struct Home {
    process: NonNull<dyn Process>,
    is_boxed: bool,
    /// How often it has waited; counted in a block only.
    waits: u8,
}

// SAFETY: it owns the process, which is `Send`, and memory that may go back on any thread.
unsafe impl Send for Home {}

/// Moves the process, which is of the type that it was made for, from its block to a box.
type IntoBox = fn(NonNull<u8>) -> Box<dyn Process>;

/// What a slab has of a process.
#[repr(C)]
struct Block<P> {
    into_box: IntoBox,
    process: P,
}

impl<P: Process> Block<P> {
    fn into_box(block: NonNull<u8>) -> Box<dyn Process> {
        // SAFETY: the caller has such a block to itself, and uses the process in it no more.
        let process = unsafe { (&raw mut (*block.cast::<Self>().as_ptr()).process).read() };
        // SAFETY: it came from `allocate` with this layout, and is empty.
        unsafe { values::free(block, Layout::new::<Self>()) };
        Box::new(process)
    }
}

/// The layout of the block that a process of that layout is in, and where it is there.
fn block_of(process: Layout) -> (Layout, usize) {
    let (block, at) = Layout::new::<IntoBox>()
        .extend(process)
        .unwrap_or_else(|_| unreachable!("there is such a block"));
    (block.pad_to_align(), at)
}

impl Home {
    pub(crate) fn boxed(process: Box<dyn Process>) -> Self {
        Self {
            // SAFETY: a box is not null.
            process: unsafe { NonNull::new_unchecked(Box::into_raw(process)) },
            is_boxed: true,
            waits: 0,
        }
    }

    #[inline]
    pub(crate) fn new<P: Process>(process: P) -> Self {
        let Some(memory) = values::allocate(Layout::new::<Block<P>>()) else {
            return Self::boxed(Box::new(process));
        };
        let block = memory.cast::<Block<P>>();
        let into_box = Block::<P>::into_box;
        // SAFETY: fresh memory of its layout.
        unsafe { block.write(Block { into_box, process }) };
        // SAFETY: a part of it.
        let process = unsafe { NonNull::new_unchecked(&raw mut (*block.as_ptr()).process) };
        Self {
            process: process as NonNull<dyn Process>,
            is_boxed: false,
            waits: 0,
        }
    }

    /// The process waits. Moves it when it has lived for long.
    #[inline]
    pub(crate) fn wait(&mut self) {
        if !self.is_boxed {
            self.waits += 1;
            if self.waits == SETTLED {
                self.settle();
            }
        }
    }

    #[cold]
    fn settle(&mut self) {
        let block = self.block().0;
        // SAFETY: a block, and this home's, which has another process from here on.
        let boxed = unsafe { block.cast::<IntoBox>().read()(block) };
        let old = mem::replace(self, Self::boxed(boxed));
        mem::forget(old);
    }

    /// The block that the process is in, if it is not in a box, and its layout.
    fn block(&self) -> (NonNull<u8>, Layout) {
        let (layout, at) = block_of(Layout::for_value::<dyn Process>(&**self));
        // SAFETY: there is a block around it, in which it is at that place.
        (unsafe { self.process.cast::<u8>().byte_sub(at) }, layout)
    }

    /// Puts the process into a box.
    pub(crate) fn into_box(mut self) -> Box<dyn Process> {
        if !self.is_boxed {
            self.settle();
        }
        let process = self.process;
        mem::forget(self);
        // SAFETY: it came from a box, and is used no more here.
        unsafe { Box::from_raw(process.as_ptr()) }
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
                unsafe { values::free(self.0, self.1) };
            }
        }
        if self.is_boxed {
            // SAFETY: it came from a box, and is used no more.
            drop(unsafe { Box::from_raw(self.process.as_ptr()) });
        } else {
            let (block, layout) = self.block();
            let _memory = Memory(block, layout);
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
        let new = |is_bomb| Home::new(sized::<N, A>(&held, is_bomb));
        let mut home = new(false);
        assert_eq!(home.is_boxed, is_boxed);
        assert_eq!(home.process.addr().get() % align_of::<Sized<N, A>>(), 0);
        assert_eq!(sum(&mut *home), Some(N as u64));
        let mut back = home.into_box();
        assert_eq!(sum(&mut *back), Some(N as u64));
        let home = Home::boxed(back);
        assert!(home.is_boxed);
        drop(home);
        let mut home = new(false);
        for waits in 0..3 {
            assert_eq!(home.is_boxed, is_boxed || waits >= SETTLED);
            home.wait();
            assert_eq!(sum(&mut *home), Some(N as u64));
        }
        drop(home);
        drop(new(false));
        assert_eq!(Arc::strong_count(&held), 1);
        let home = new(true);
        assert!(catch_unwind(AssertUnwindSafe(|| drop(home))).is_err());
        assert_eq!(Arc::strong_count(&held), 1);
    }

    // pins: P2
    #[test]
    fn processes_of_all_sizes_are_there_come_back_and_are_dropped_once() {
        check::<0, u8>(false);
        check::<3, u64>(false);
        check::<100, u128>(false);
        check::<231, u8>(false);
        check::<1_000, u8>(true);
        check::<8, Wide>(true);
    }
}
