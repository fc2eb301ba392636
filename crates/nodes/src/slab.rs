//! A slab: one allocation that many blocks of one size live in.
//!
//! **Problem.** Memory that one thread asks for and another one gives back is what general
//! allocators are slowest at. And a consumer that walks a chain of nodes from all over the heap
//! waits for memory at every step.
//!
//! **Protocol.** A slab is aligned to its size, so that the address of a block tells its slab. It
//! begins with a count, and the rest is blocks of one size.
//! 1. A thread that has a slab to itself hands its blocks out, in any order. Each block has one
//!    owner at a time.
//! 2. An owner that needs a block no longer gives it back: it adds to the count, once for as many
//!    blocks as it has.
//! 3. The thread that raises the count to the number of blocks has the slab to itself. It begins
//!    again at 1, or returns the memory.
//!
//! **Proof sketch.** Every block has an owner from the opening of the slab until it is counted.
//! A block that has not been handed out belongs to the thread that opened the slab, which may give
//! it back unused. So the count is complete when no block has an owner, and not before.

use ganger_sync::atomic::{AtomicUsize, Ordering};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::hint::black_box;
use std::ptr::NonNull;

/// The alignment of slabs, and the least distance of two of them.
pub(crate) const SLAB: usize = 4 * 1_024;

/// Bytes in a slab. An allocator writes a few bytes in front of each allocation, and these fit
/// between two slabs without a gap.
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
    /// The size for values of that layout. `None` if they have no size, are too large to share a
    /// slab, or are aligned to more than a block is.
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

    /// How many blocks fit into a slab, counting the place that the count takes: the first.
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
    /// How many blocks have been given back. Owners of blocks add to it.
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
        // SAFETY: by the contract of this function. The count has no destructor.
        unsafe { dealloc(slab.as_ptr().cast(), Self::LAYOUT) }
    }

    /// The slab that an address belongs to. O(1).
    #[inline]
    pub(crate) fn of(inside: NonNull<u8>) -> NonNull<Self> {
        let slab = inside.as_ptr().map_addr(|address| address & !(SLAB - 1));
        // SAFETY: no slab is at zero.
        unsafe { NonNull::new_unchecked(slab.cast()) }
    }

    /// Makes the caller, which has the slab to itself, the owner of all its blocks.
    ///
    /// # Safety
    /// It came from [`allocate`](Self::allocate), and the caller has it to itself.
    pub(crate) unsafe fn open(slab: NonNull<Self>) {
        let back = AtomicUsize::new(0);
        // SAFETY: the memory is aligned, large enough, and the caller's alone.
        unsafe { slab.write(Self { back }) };
    }

    /// Gives back that many blocks of the caller's. `true`: they were the last, and the caller has
    /// the slab to itself. `false`: other threads own the slab, and may free it at any moment.
    ///
    /// # Safety
    /// The slab is open, with blocks of that size, and the caller owns that many of them.
    #[must_use = "a complete slab belongs to the caller"]
    pub(crate) unsafe fn give_back(slab: NonNull<Self>, blocks: usize, size: Size) -> bool {
        // SAFETY: the slab cannot be complete before these blocks are back, so it is there.
        let back = unsafe { &slab.as_ref().back };
        // Ordering: AcqRel pairs with the same operation of the slab's other owners. What they did
        // with their blocks happens before what the thread does that gives back the last.
        back.fetch_add(blocks, Ordering::AcqRel) + blocks == size.blocks()
    }
}

/// Lets the allocator's heap grow by a large step, once in a while.
///
/// Outside of the first thread, glibc's heap grows by what is asked for: by a system call for every
/// slab or two, which interrupts the program's other threads as well. A large allocation that is
/// returned at once leaves the heap grown, so that the next slabs need no system call. It keeps
/// nothing, and touches no page.
fn stretch() {
    /// In bytes: below what glibc maps on its own, or returns to the system at once.
    const MUCH: usize = 112 * 1_024;
    /// How many slabs use that up.
    const SLABS: u32 = 24;
    const LAYOUT: Layout = match Layout::from_size_align(MUCH, align_of::<usize>()) {
        Ok(layout) => layout,
        Err(_) => unreachable!(),
    };
    thread_local! {
        static TAKEN: Cell<u32> = const { Cell::new(0) };
    }
    let taken = TAKEN.get() + 1;
    // Not for the first slabs, which are all that most threads need.
    TAKEN.set(taken % SLABS);
    if taken < SLABS {
        return;
    }
    // SAFETY: the size is not zero, and memory that was granted is returned with its layout.
    unsafe {
        // The compiler would leave out an allocation that nothing looks at.
        let memory = black_box(alloc(LAYOUT));
        if !memory.is_null() {
            dealloc(memory, LAYOUT);
        }
    }
}
