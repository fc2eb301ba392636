//! A slab: an allocation that holds many blocks of one size.
//!
//! **Problem.** General allocators are slowest when one thread frees memory that another thread
//! allocated. A consumer that walks a chain of nodes from all over the heap waits for memory at
//! every step.
//!
//! **Protocol.** A slab is aligned to its size, so the address of a block tells its slab. The slab
//! begins with a count; the rest is blocks of one size.
//! 1. A thread that owns a slab alone hands its blocks out, in any order. Each block has one owner
//!    at a time.
//! 2. An owner gives unused blocks back by adding their number to the count.
//! 3. The thread that raises the count to the number of blocks owns the slab alone. The thread
//!    begins again at 1, or returns the memory.
//!
//! **Proof sketch.** Every block has an owner from the opening of the slab until it is counted. A
//! block not yet handed out belongs to the thread that opened the slab, which may give it back
//! unused. So the count is complete exactly when no block has an owner.

use ganger_sync::atomic::{AtomicUsize, Ordering};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::hint::black_box;
use std::ptr::NonNull;

/// The alignment of slabs, and the least distance between two slabs.
pub(crate) const SLAB: usize = 4 * 1_024;

/// Bytes in a slab. An allocator writes a few bytes in front of each allocation; they fit between
/// two slabs without a gap.
const BYTES: usize = SLAB - 16;

/// Sizes of blocks are multiples of this number, and blocks are aligned to it.
const STEP: usize = 16;

/// The number of sizes of blocks.
pub(crate) const SIZES: usize = 16;

/// The size of blocks, as an index.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Size(pub(crate) usize);

impl Size {
    /// Returns the size for values of a layout. `None` if they have no size, are too large to share
    /// a slab, or have a larger alignment than a block.
    pub(crate) const fn of(layout: Layout) -> Option<Self> {
        if layout.align() > STEP || layout.size() == 0 || layout.size() > SIZES * STEP {
            return None;
        }
        Some(Self((layout.size() - 1) / STEP))
    }

    /// Returns the number of bytes in a block.
    pub(crate) const fn bytes(self) -> usize {
        (self.0 + 1) * STEP
    }

    /// Returns the number of blocks that fit into a slab, counting the first place, which the count
    /// takes.
    pub(crate) const fn places(self) -> usize {
        BYTES / self.bytes()
    }

    /// Returns the number of blocks of a slab.
    pub(crate) const fn blocks(self) -> usize {
        self.places() - 1
    }
}

/// The beginning of a slab.
pub(crate) struct Slab {
    /// How many blocks have been given back. Owners of blocks add to it.
    back: AtomicUsize,
}

impl Slab {
    const LAYOUT: Layout = match Layout::from_size_align(BYTES, SLAB) {
        Ok(layout) => layout,
        Err(_) => unreachable!(),
    };

    /// Allocates a slab, which belongs to the caller alone.
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
    /// The slab came from [`allocate`](Self::allocate), and belongs to the caller alone.
    #[cold]
    pub(crate) unsafe fn free(slab: NonNull<Self>) {
        // SAFETY: by the contract of this function. The count has no destructor.
        unsafe { dealloc(slab.as_ptr().cast(), Self::LAYOUT) }
    }

    /// Returns the slab of an address inside it. O(1).
    #[inline]
    pub(crate) fn of(inside: NonNull<u8>) -> NonNull<Self> {
        let slab = inside.as_ptr().map_addr(|address| address & !(SLAB - 1));
        // SAFETY: no slab is at zero.
        unsafe { NonNull::new_unchecked(slab.cast()) }
    }

    /// Makes the caller, which owns the slab alone, the owner of all its blocks.
    ///
    /// # Safety
    /// The slab came from [`allocate`](Self::allocate), and belongs to the caller alone.
    pub(crate) unsafe fn open(slab: NonNull<Self>) {
        let back = AtomicUsize::new(0);
        // SAFETY: the memory is aligned, large enough, and the caller's alone.
        unsafe { slab.write(Self { back }) };
    }

    /// Gives back `blocks` blocks of the caller's. `true`: they were the last, and the slab now
    /// belongs to the caller alone. `false`: other threads own the slab, and may free it at any
    /// moment.
    ///
    /// # Safety
    /// The slab is open, with blocks of size `size`, and the caller owns `blocks` of them.
    #[must_use = "a complete slab belongs to the caller"]
    pub(crate) unsafe fn give_back(slab: NonNull<Self>, blocks: usize, size: Size) -> bool {
        // SAFETY: the slab cannot be complete before these blocks are back, so it still exists.
        let back = unsafe { &slab.as_ref().back };
        // Ordering: AcqRel pairs with the same operation of the slab's other owners. Their uses of
        // their blocks happen before the actions of the thread that gives back the last block.
        back.fetch_add(blocks, Ordering::AcqRel) + blocks == size.blocks()
    }
}

/// Makes the allocator's heap grow by a large step, once in a while.
///
/// Outside of the first thread, glibc's heap grows by the size asked for: a system call for every
/// slab or two, which interrupts the program's other threads as well. A large allocation that is
/// freed at once leaves the heap grown, so the next slabs need no system call. The function keeps
/// nothing, and touches no page.
fn stretch() {
    /// In bytes: too small for glibc to map on its own, or to return to the system at once.
    const MUCH: usize = 112 * 1_024;
    /// How many slabs use up `MUCH` bytes.
    const SLABS: u32 = 24;
    const LAYOUT: Layout = match Layout::from_size_align(MUCH, align_of::<usize>()) {
        Ok(layout) => layout,
        Err(_) => unreachable!(),
    };
    thread_local! {
        static TAKEN: Cell<u32> = const { Cell::new(0) };
    }
    let taken = TAKEN.get() + 1;
    // Not for the first slabs, as most threads need no more.
    TAKEN.set(taken % SLABS);
    if taken < SLABS {
        return;
    }
    // SAFETY: the size is not zero, and memory that was granted is returned with its layout.
    unsafe {
        // Without `black_box` the compiler would leave out an unused allocation.
        let memory = black_box(alloc(LAYOUT));
        if !memory.is_null() {
            dealloc(memory, LAYOUT);
        }
    }
}
