//! Memory of nodes that is used again.
//!
//! **Problem.** A message is a node, and a node that one thread allocates and another one frees is what
//! general allocators are slowest at: it costs more than all the rest of a send and a receive.
//!
//! **Rejected.** A pool in each queue: a million mailboxes would each keep their own. A pool that all
//! threads share: two contended operations a message. Nodes that go back to the thread they came
//! from: a list for each pair of threads.
//!
//! **Protocol.** Magazines, after Bonwick and Adams ("Magazines and Vmem", USENIX 2001, section 3). A
//! magazine is a list of at most [`ROUNDS`] blocks of one size. Each thread has two for each size, one
//! that it takes from and gives to, and a spare that is full.
//! 1. *Take*: from the first; if that is empty, it becomes the spare, or a full one from the
//!    [`Exchange`]. No luck: ask the allocator.
//! 2. *Give*: to the first; if that is full then, it becomes the spare, and the spare goes to the
//!    exchange. No room there: give its blocks to the allocator.
//!
//! So there is an atomic operation for one message in [`ROUNDS`] at the most, and none on the thread
//! that sends to itself.
//!
//! Under loom nodes come from the allocator, so that it sees each as a new one; the exchange has
//! models of its own.

use crate::exchange::Exchange;
use ganger_sync::atomic::{AtomicUsize, Ordering};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::ptr::{self, NonNull};
#[cfg(loom)]
use std::sync::LazyLock;

/// Blocks in a full magazine.
const ROUNDS: usize = 64;

/// Full magazines that the exchange keeps of each size, at the most.
const SLOTS: usize = 16;

/// Sizes are multiples of this, and blocks are aligned to it.
const STEP: usize = 16;

/// How many sizes there are.
const SIZES: usize = 16;

/// The most nodes of a size that each thread keeps for itself: see [`set_limit`].
pub const NODES_PER_THREAD: usize = 2 * ROUNDS;

/// The most nodes of a size that threads share, unless told otherwise: see [`set_limit`].
pub const DEFAULT_LIMIT: usize = SLOTS * ROUNDS;

#[cfg(not(loom))]
static EXCHANGES: [Exchange<Block, SLOTS>; SIZES] = [const { Exchange::new() }; SIZES];
/// Nobody uses it; and no atomic of loom's can be made beforehand.
#[cfg(loom)]
static EXCHANGES: LazyLock<[Exchange<Block, SLOTS>; SIZES]> =
    LazyLock::new(|| std::array::from_fn(|_| Exchange::new()));

/// How many slots of each exchange are in use.
#[cfg(not(loom))]
static LIMIT: AtomicUsize = AtomicUsize::new(SLOTS);
#[cfg(loom)]
static LIMIT: LazyLock<AtomicUsize> = LazyLock::new(|| AtomicUsize::new(SLOTS));

thread_local! {
    static LOCAL: Local = const { Local([const { Pair::new() }; SIZES]) };
}

/// Sets how many unused nodes of each size are kept for whichever thread needs them: at most
/// [`DEFAULT_LIMIT`], in steps of 64. Beside these, each thread keeps at most
/// [`NODES_PER_THREAD`] of each size for itself; there are sizes of 16, 32 and so on up to 256 bytes, and larger nodes
/// are not kept. What is kept above a lower limit is used up; [`clear`] returns it at once.
///
/// ```
/// use ganger_mpsc::node_cache;
///
/// node_cache::set_limit(100);
/// assert_eq!(node_cache::limit(), 128);
/// node_cache::set_limit(usize::MAX);
/// assert_eq!(node_cache::limit(), node_cache::DEFAULT_LIMIT);
/// ```
pub fn set_limit(nodes: usize) {
    // Ordering: Relaxed, because nothing depends on when it is seen.
    LIMIT.store(nodes.div_ceil(ROUNDS).min(SLOTS), Ordering::Relaxed);
}

/// How many unused nodes of each size are kept for whichever thread needs them.
#[must_use]
pub fn limit() -> usize {
    // Ordering: Relaxed, as in `set_limit`.
    LIMIT.load(Ordering::Relaxed) * ROUNDS
}

/// Returns to the allocator what is kept for whichever thread needs it, and what the calling thread
/// keeps for itself; other threads keep theirs, until they end. O(n) in what it returns.
pub fn clear() {
    for (index, exchange) in EXCHANGES.iter().enumerate() {
        let size = Size(index);
        // A thread-local that is gone has returned its blocks.
        let own = LOCAL.try_with(|local| local.0[index].empty());
        let own = own.into_iter().flatten();
        let shared = std::iter::from_fn(|| exchange.take());
        for magazine in own.chain(shared) {
            // SAFETY: it was kept, and is no longer: ours.
            unsafe { free_all(magazine, size) };
        }
    }
}

/// A block's size, as an index.
#[derive(Clone, Copy)]
pub(crate) struct Size(usize);

impl Size {
    /// The size for values of that layout; `None` if they are too large to be worth it, or aligned
    /// to more than a block is.
    pub(crate) const fn of(layout: Layout) -> Option<Self> {
        if layout.align() > STEP || layout.size() == 0 || layout.size() > SIZES * STEP {
            return None;
        }
        Some(Self((layout.size() - 1) / STEP))
    }

    const fn layout(self) -> Layout {
        // SAFETY: the alignment is a power of two, and the size a small multiple of it.
        unsafe { Layout::from_size_align_unchecked((self.0 + 1) * STEP, STEP) }
    }
}

/// Memory for a value of that size, with anything in it. O(1).
#[inline]
pub(crate) fn take(size: Size) -> NonNull<u8> {
    let kept = LOCAL.try_with(|local| local.0[size.0].take(size));
    match kept {
        Ok(Some(block)) => block.cast(),
        _ => allocate(size.layout()),
    }
}

/// Takes memory back. O(1), but for a magazine that nobody has room for.
///
/// # Safety
/// It came from [`take`] with the same size, and nobody uses it any longer.
#[inline]
pub(crate) unsafe fn give(memory: NonNull<u8>, size: Size) {
    let block = memory.cast::<Block>();
    // SAFETY: by the contract of this function it is ours, and as large and aligned as any block.
    let surplus = LOCAL.try_with(|local| unsafe { local.0[size.0].give(block) });
    match surplus {
        Ok(None) => {}
        // SAFETY: the pair has given it up.
        Ok(Some(magazine)) => unsafe { share(magazine, size) },
        // SAFETY: it came from `allocate` with this layout, and is ours.
        Err(_) => unsafe { dealloc(memory.as_ptr(), size.layout()) },
    }
}

/// How many blocks [`give_list`] takes at the most; at least one.
#[inline]
pub(crate) fn room(size: Size) -> usize {
    LOCAL
        .try_with(|local| ROUNDS - local.0[size.0].len.get())
        .unwrap_or(ROUNDS)
}

/// Takes `count` blocks back that are linked from `first` to `last`. O(1) but as for [`give`].
///
/// # Safety
/// As for [`give`], for each of them; and [`room`] said that there is room.
pub(crate) unsafe fn give_list(first: *mut Block, last: *mut Block, count: usize, size: Size) {
    let surplus = LOCAL.try_with(|local| {
        let pair = &local.0[size.0];
        // SAFETY: ours.
        unsafe { (*last).next = pair.first.get() };
        pair.first.set(first);
        pair.len.set(pair.len.get() + count);
        debug_assert!(pair.len.get() <= ROUNDS);
        if pair.len.get() == ROUNDS {
            pair.unload()
        } else {
            None
        }
    });
    match surplus {
        Ok(None) => {}
        // SAFETY: the pair has given it up.
        Ok(Some(magazine)) => unsafe { share(magazine, size) },
        // SAFETY: by the contract of this function they are ours.
        Err(_) => unsafe {
            (*last).next = ptr::null_mut();
            free_all(first, size);
        },
    }
}

/// Memory from the allocator.
#[cold]
pub(crate) fn allocate(layout: Layout) -> NonNull<u8> {
    // SAFETY: no layout here has size zero.
    NonNull::new(unsafe { alloc(layout) }).unwrap_or_else(|| handle_alloc_error(layout))
}

/// Leaves a full magazine in the exchange, or returns its blocks.
///
/// # Safety
/// The magazine is the caller's, of that size, and full.
#[cold]
unsafe fn share(magazine: *mut Block, size: Size) {
    // Ordering: Relaxed, as in `set_limit`.
    if !EXCHANGES[size.0].put(magazine, LIMIT.load(Ordering::Relaxed)) {
        // SAFETY: by the contract of this function.
        unsafe { free_all(magazine, size) };
    }
}

/// # Safety
/// The list is the caller's, and of that size.
unsafe fn free_all(mut block: *mut Block, size: Size) {
    while !block.is_null() {
        // SAFETY: a block of the list, which is ours; it came from `allocate` with this layout.
        unsafe {
            let next = (*block).next;
            dealloc(block.cast(), size.layout());
            block = next;
        }
    }
}

/// A block that is not in use.
pub(crate) struct Block {
    next: *mut Block,
}

/// One thread's magazines.
struct Local([Pair; SIZES]);

/// One thread's magazines of one size. The thread alone uses it, and no code of anybody else's runs
/// while it changes.
struct Pair {
    /// Taken from, and given to; null if empty.
    first: Cell<*mut Block>,
    /// How many blocks are in the first; never full.
    len: Cell<usize>,
    /// A full magazine, or null.
    spare: Cell<*mut Block>,
}

impl Pair {
    const fn new() -> Self {
        Self {
            first: Cell::new(ptr::null_mut()),
            len: Cell::new(0),
            spare: Cell::new(ptr::null_mut()),
        }
    }

    #[inline]
    fn take(&self, size: Size) -> Option<NonNull<Block>> {
        let block = NonNull::new(self.first.get()).or_else(|| self.reload(size))?;
        // SAFETY: a block of ours, in no use.
        self.first.set(unsafe { block.as_ref() }.next);
        self.len.set(self.len.get() - 1);
        Some(block)
    }

    /// Puts a full magazine in the place of the first, which is empty, and returns its first block.
    #[cold]
    fn reload(&self, size: Size) -> Option<NonNull<Block>> {
        let mut full = self.spare.replace(ptr::null_mut());
        if full.is_null() {
            full = EXCHANGES[size.0].take()?;
        }
        self.first.set(full);
        self.len.set(ROUNDS);
        NonNull::new(full)
    }

    /// Keeps a block, and returns a full magazine if it has two then.
    ///
    /// # Safety
    /// The block is the caller's, of this pair's size, and nobody uses it.
    #[inline]
    unsafe fn give(&self, block: NonNull<Block>) -> Option<*mut Block> {
        // SAFETY: by the contract of this function it is ours.
        unsafe {
            block.write(Block {
                next: self.first.get(),
            });
        }
        self.first.set(block.as_ptr());
        self.len.set(self.len.get() + 1);
        if self.len.get() == ROUNDS {
            self.unload()
        } else {
            None
        }
    }

    /// Makes the first magazine, which is full, the spare, and returns what was that.
    #[cold]
    fn unload(&self) -> Option<*mut Block> {
        self.len.set(0);
        let surplus = self.spare.replace(self.first.replace(ptr::null_mut()));
        (!surplus.is_null()).then_some(surplus)
    }

    /// Gives up everything.
    fn empty(&self) -> [*mut Block; 2] {
        self.len.set(0);
        [&self.first, &self.spare].map(|list| list.replace(ptr::null_mut()))
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        for (index, pair) in self.0.iter().enumerate() {
            let size = Size(index);
            let [first, spare] = pair.empty();
            // SAFETY: the pair has given them up.
            unsafe {
                free_all(first, size);
                if !spare.is_null() {
                    share(spare, size);
                }
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
