//! A slab: one allocation that many nodes of one size live in.
//!
//! **Problem.** Memory that one thread asks for and another one gives back is what general allocators
//! are slowest at; and nodes from here and there make a consumer that walks a chain of them wait for
//! memory at every step.
//!
//! **Protocol.** A slab is aligned to its size, so that a node's address tells its slab. It begins with
//! a count, and the rest is blocks of one size.
//! 1. Whoever has a slab to itself hands its blocks out, in any order; each has one owner at a time.
//! 2. An owner that needs a block no longer gives it back: it adds to the count, for as many blocks at
//!    once as it has.
//! 3. Whoever raises the count to the number of blocks has the slab to itself: all were handed out,
//!    and all came back. It may begin again at 1, or return the memory.
//!
//! Handed out or not is the same to the count: who has not handed a block out owns it, and may give it
//! back unused.

use ganger_sync::atomic::{AtomicUsize, Ordering};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::hint::black_box;
use std::ptr::NonNull;

/// What slabs are aligned to, and how far two of them are apart at the least.
pub(crate) const SLAB: usize = 4 * 1_024;

/// Bytes in a slab: a little less than that, for what an allocator writes in front of each, so that
/// one can follow the other without a gap.
const BYTES: usize = SLAB - 16;

/// Sizes of blocks are multiples of this, and blocks are aligned to it.
const STEP: usize = 16;

/// How many sizes of blocks there are.
pub(crate) const SIZES: usize = 16;

/// The size of blocks, as an index.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Size(pub(crate) usize);

impl Size {
    /// The size for values of that layout; `None` if they are too large to share a slab, or aligned
    /// to more than a block is.
    pub(crate) const fn of(layout: Layout) -> Option<Self> {
        if layout.align() > STEP || layout.size() == 0 || layout.size() > SIZES * STEP {
            return None;
        }
        Some(Self((layout.size() - 1) / STEP))
    }

    /// Bytes in a block.
    pub(crate) const fn bytes(self) -> usize {
        (self.0 + 1) * STEP
    }

    /// How many blocks would fit into a slab if it had no count, which takes the place of the first.
    pub(crate) const fn places(self) -> usize {
        BYTES / self.bytes()
    }

    /// How many blocks a slab has.
    pub(crate) const fn blocks(self) -> usize {
        self.places() - 1
    }
}

/// What a slab begins with.
pub(crate) struct Slab {
    /// How many blocks have been given back. Changed by owners of blocks.
    back: AtomicUsize,
}

impl Slab {
    const LAYOUT: Layout = match Layout::from_size_align(BYTES, SLAB) {
        Ok(layout) => layout,
        Err(_) => unreachable!(),
    };

    /// A slab from the allocator. The caller has it to itself.
    #[cold]
    pub(crate) fn allocate() -> NonNull<Self> {
        stretch();
        // SAFETY: the size is not zero.
        let memory = unsafe { alloc(Self::LAYOUT) };
        let slab = NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(Self::LAYOUT));
        slab.cast()
    }

    /// Returns the memory to the allocator.
    ///
    /// # Safety
    /// It came from [`allocate`](Self::allocate), and the caller has it to itself.
    #[cold]
    pub(crate) unsafe fn free(slab: NonNull<Self>) {
        // SAFETY: as this function's; the count has no destructor.
        unsafe { dealloc(slab.as_ptr().cast(), Self::LAYOUT) }
    }

    /// The slab that an address belongs to. O(1).
    #[inline]
    pub(crate) fn of(inside: NonNull<u8>) -> NonNull<Self> {
        let slab = inside.as_ptr().map_addr(|address| address & !(SLAB - 1));
        // SAFETY: no slab is at zero.
        unsafe { NonNull::new_unchecked(slab.cast()) }
    }

    /// Makes the caller, who has the slab to itself, the owner of all its blocks.
    ///
    /// # Safety
    /// It came from [`allocate`](Self::allocate), and the caller has it to itself.
    pub(crate) unsafe fn open(slab: NonNull<Self>) {
        let back = AtomicUsize::new(0);
        // SAFETY: the memory is aligned, large enough, and the caller's alone.
        unsafe { slab.write(Self { back }) };
    }

    /// Gives `blocks` blocks of the caller's back. `true`: they were the last, and the caller has the
    /// slab to itself. `false`: the slab may be gone.
    ///
    /// # Safety
    /// The slab is open, with blocks of that size, and the caller owns as many.
    #[must_use = "a slab that is complete belongs to somebody"]
    pub(crate) unsafe fn give_back(slab: NonNull<Self>, blocks: usize, size: Size) -> bool {
        // SAFETY: it cannot be complete before these blocks are back, so it is there.
        let back = unsafe { &slab.as_ref().back };
        // Ordering: Release and Acquire pair with each other: all that owners of blocks did with them
        // comes before what is done by whoever gives back the last.
        back.fetch_add(blocks, Ordering::AcqRel) + blocks == size.blocks()
    }
}

/// Has the allocator's heap grow by much at once, every now and then.
///
/// That of glibc, for all threads but the first, grows by what is asked for: with a system call for each slab
/// or two, which interrupts the program's other threads as well. One who sends faster than others receive spent
/// nearly half of its time with that. What is taken and given back at once is there for the slabs that follow,
/// and for everybody else; nothing is kept, and no page is touched.
fn stretch() {
    /// In bytes: below what glibc maps apart, or would return at once.
    const MUCH: usize = 112 * 1_024;
    /// So many slabs use it up.
    const SLABS: u32 = 24;
    const LAYOUT: Layout = match Layout::from_size_align(MUCH, align_of::<usize>()) {
        Ok(layout) => layout,
        Err(_) => unreachable!(),
    };
    thread_local! {
        static TAKEN: Cell<u32> = const { Cell::new(0) };
    }
    let taken = TAKEN.get() + 1;
    // Not for the first few, which are all that most threads need.
    TAKEN.set(taken % SLABS);
    if taken < SLABS {
        return;
    }
    // SAFETY: the size is not zero, and what was granted is given back. The compiler would leave out what is not
    // looked at.
    unsafe {
        let memory = black_box(alloc(LAYOUT));
        if !memory.is_null() {
            dealloc(memory, LAYOUT);
        }
    }
}
