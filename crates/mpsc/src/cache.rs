//! Memory of nodes that is used again.
//!
//! **Problem.** A message is a node, which one thread makes and another one frees. Asking an allocator
//! each time costs more than all the rest of a send and a receive.
//!
//! **Rejected.** A pool in each queue: a million mailboxes would each keep their own. A pool that all
//! threads share: two contended operations a message. Free lists, and magazines of them (Bonwick and
//! Adams, "Magazines and Vmem", USENIX 2001): nodes of several producers get mixed, so that producers
//! write to one another's cache lines, and each step along a chain leads to a line that is not
//! there yet. Per-slab free lists, as mimalloc has them (Leijen, Zorn and de Moura, APLAS 2019): to
//! take a block is to read what another processor wrote.
//!
//! **Protocol.** Blocks of one size come from [`Slab`]s, in groups of 64 neighbours, and a set of blocks
//! of a group is a word of bits. Each thread has, for each size, a set to take from, and a few sets that
//! it has given.
//! 1. *Take*: the lowest of the set. If that is empty: a large set that was given here; the next group
//!    of the slab; a spare slab; one from the [`Exchange`]; one from the allocator.
//! 2. *Give*: into the set for the block's group. If its place is taken by another group's set, that
//!    one goes back to its slab first.
//! 3. A slab that is complete becomes the spare, or goes to the exchange, or to the allocator.
//!
//! So taking reads nothing but the thread's own words, and writes nothing; nodes that are made one after
//! the other are neighbours; there is an atomic operation for a group of messages, and none on the
//! thread that sends to itself.
//!
//! **Price.** A slab in which one block stays in use is of no use to anybody else. That is why slabs are
//! small, and why a thread takes a new one rather than the last few blocks of many: traffic that came
//! in disorder would never get out of it.
//!
//! Under loom nodes come from the allocator, so that it sees each as a new one; slabs and the exchange
//! have models of their own.

use crate::blocks::{Blocks, Set};
use crate::exchange::Exchange;
use crate::slab::{SIZES, SLAB, Size, Slab};
use ganger_sync::atomic::{AtomicUsize, Ordering};
use std::alloc::Layout;
use std::ptr::NonNull;
#[cfg(loom)]
use std::sync::LazyLock;

/// Slabs that the exchange keeps, at the most.
const SLOTS: usize = 1_024;

/// The memory that nodes are taken from, piece by piece, in bytes. The nodes in a piece are of one size,
/// and it is used again when all of them are free.
pub const SLAB_BYTES: usize = SLAB;

/// The most unused memory that is kept for whichever thread needs it, in bytes, unless told otherwise:
/// see [`set_limit`].
pub const DEFAULT_LIMIT: usize = SLOTS * SLAB_BYTES;

#[cfg(not(loom))]
static EXCHANGE: Exchange<Slab, SLOTS> = Exchange::new();
/// Nobody uses it; and no atomic of loom's can be made beforehand.
#[cfg(loom)]
static EXCHANGE: LazyLock<Exchange<Slab, SLOTS>> = LazyLock::new(Exchange::new);

/// How many slots of the exchange are in use.
#[cfg(not(loom))]
static LIMIT: AtomicUsize = AtomicUsize::new(SLOTS);
#[cfg(loom)]
static LIMIT: LazyLock<AtomicUsize> = LazyLock::new(|| AtomicUsize::new(SLOTS));

thread_local! {
    static LOCAL: Local = const {
        Local {
            nodes: [const { Blocks::new() }; SIZES],
            values: [const { Blocks::new() }; SIZES],
        }
    };
    /// Gives up what is in the other one when the thread ends.
    static END: End = const { End };
}

/// What one thread keeps. Without a destructor, so that reaching it needs no look at whether it is
/// there; except where threads have keys in the place of memory of their own, because they would lose
/// it otherwise if its turn came before `END`'s.
struct Local {
    nodes: AllSizes,
    /// For what [`allocate`] gives. Such values may stay for long, and each keeps its slab: so nodes, of
    /// which there are many more, are not to share slabs with them.
    values: AllSizes,
}

type AllSizes = [Blocks; SIZES];

impl Local {
    /// Gives everything up; slabs that are complete then, to `keep`.
    fn release(&self, keep: fn(NonNull<Slab>)) {
        for all in [&self.nodes, &self.values] {
            for (index, blocks) in all.iter().enumerate() {
                blocks.release(Size(index), keep);
            }
        }
    }
}

// Where thread-locals are the system's keys, this one is freed before `END` has given back what is in it.
#[cfg(not(any(
    all(target_os = "linux", not(target_env = "ohos")),
    target_os = "freebsd",
    target_vendor = "apple",
    all(target_env = "msvc", not(target_vendor = "win7"))
)))]
impl Drop for Local {
    fn drop(&mut self) {
        self.release(share);
    }
}

/// See [`is_alive`].
struct End;

impl Drop for End {
    fn drop(&mut self) {
        release(share);
    }
}

/// Whether the thread may keep blocks, because it will give them up when it ends: asked before it
/// keeps any.
fn is_alive() -> bool {
    END.try_with(|_end| {}).is_ok()
}

/// Gives up all that this thread keeps; slabs that are complete then, to `keep`.
fn release(keep: fn(NonNull<Slab>)) {
    // What is gone has given it up.
    let _gone = LOCAL.try_with(|local| local.release(keep));
}

/// Sets how many bytes of unused memory are kept for whichever thread needs them: at most
/// [`DEFAULT_LIMIT`], in steps of [`SLAB_BYTES`].
///
/// Beside these, each thread keeps at most one unused slab for each size of nodes that it has used, and
/// parts of ten: of those that it takes nodes from, and of those that it freed nodes in; and as much again
/// for what [`allocate`] gives. Sizes are 16
/// bytes, 32 and so on up to 256; larger nodes come from the allocator one by one. What is kept above a
/// lower limit is used up; [`clear`] returns it at once. Memory that holds an item is not counted: it is
/// in use, with all of its slab.
///
/// ```
/// use ganger_mpsc::node_cache::{self, DEFAULT_LIMIT, SLAB_BYTES};
///
/// node_cache::set_limit(100_000);
/// assert_eq!(node_cache::limit(), 25 * SLAB_BYTES);
/// node_cache::set_limit(usize::MAX);
/// assert_eq!(node_cache::limit(), DEFAULT_LIMIT);
/// ```
pub fn set_limit(bytes: usize) {
    // Ordering: Relaxed, because nothing depends on when it is seen.
    LIMIT.store(bytes.div_ceil(SLAB).min(SLOTS), Ordering::Relaxed);
}

/// How many bytes of unused memory are kept for whichever thread needs them.
#[must_use]
pub fn limit() -> usize {
    // Ordering: Relaxed, as in `set_limit`.
    LIMIT.load(Ordering::Relaxed) * SLAB
}

/// Returns to the allocator what is kept for whichever thread needs it, and what the calling thread
/// keeps for itself; other threads keep theirs, until they end. Memory that holds an item is returned
/// when it does no longer. O(n) in what it returns.
pub fn clear() {
    release(free);
    // Others may put more there meanwhile.
    let kept = std::iter::from_fn(|| EXCHANGE.take()).take(SLOTS);
    kept.filter_map(NonNull::new).for_each(free);
}

/// Memory for a value of that layout, from the cache that nodes come from, for values that one thread makes
/// and another drops: with anything in it, and the caller's. `None` for values of no size, of more than 256
/// bytes, or aligned to more than 16. O(1).
#[must_use]
#[inline]
pub fn allocate(layout: Layout) -> Option<NonNull<u8>> {
    if cfg!(loom) {
        return None;
    }
    Size::of(layout).map(|size| take_from(size, |local| &local.values))
}

/// Takes memory back that [`allocate`] gave, on any thread. O(1).
///
/// # Safety
/// It came from `allocate` with the same layout, and nobody uses it any longer.
#[inline]
pub unsafe fn deallocate(memory: NonNull<u8>, layout: Layout) {
    if let Some(size) = Size::of(layout) {
        // SAFETY: as this function's.
        unsafe { give_to(Set::of(memory, size), size, |local| &local.values) };
    }
}

/// Memory for a value of that size, with anything in it. O(1).
#[inline]
pub(crate) fn take(size: Size) -> NonNull<u8> {
    take_from(size, |local| &local.nodes)
}

#[inline]
fn take_from(size: Size, which: impl FnOnce(&Local) -> &AllSizes) -> NonNull<u8> {
    let taken = LOCAL.try_with(|local| {
        let blocks = &which(local)[size.0];
        blocks.take(size).unwrap_or_else(|| refill(blocks, size))
    });
    taken.unwrap_or_else(|_gone| take_alone(size))
}

/// What [`take`] does when the thread has no set of blocks to take from.
///
/// Does not unwind, as its ABI says: an allocator must not. So nobody has to drop the item that the block
/// is for, on the way out of a call that never takes it; and an item that nobody else has a pointer to
/// is written where it belongs from the beginning.
#[cold]
extern "C" fn refill(blocks: &Blocks, size: Size) -> NonNull<u8> {
    if !is_alive() {
        return take_alone(size);
    }
    loop {
        if blocks.refill(size)
            && let Some(block) = blocks.take(size)
        {
            return block;
        }
        // Foreign code, which may use queues itself: so the next look is from the beginning.
        keep(blocks, fetch());
    }
}

/// [`take`] for a thread that keeps nothing any longer: the other blocks of a slab go back at once, and
/// the slab is used for nothing else until this one does.
#[cold]
extern "C" fn take_alone(size: Size) -> NonNull<u8> {
    let slab = fetch();
    // SAFETY: it is ours alone, so that its blocks are, too. One of them stays ours, so that it is
    // not complete when the others are back.
    unsafe {
        Slab::open(slab);
        let _not_yet = Slab::give_back(slab, size.blocks() - 1, size);
        slab.cast::<u8>().add(size.bytes())
    }
}

/// Takes memory back, of at least one value. O(1).
///
/// # Safety
/// It came from [`take`] with the same size, and nobody uses it any longer.
#[inline]
pub(crate) unsafe fn give(set: Set, size: Size) {
    // SAFETY: as this function's.
    unsafe { give_to(set, size, |local| &local.nodes) };
}

/// As [`give`], with what is kept of that kind.
///
/// # Safety
/// As for [`give`].
#[inline]
unsafe fn give_to(set: Set, size: Size, which: impl FnOnce(&Local) -> &AllSizes) {
    let given = LOCAL.try_with(|local| {
        let blocks = &which(local)[size.0];
        if !blocks.give(set) {
            // SAFETY: by the contract of this function the blocks are ours.
            unsafe { begin(blocks, set, size) };
        }
    });
    if given.is_err() {
        // SAFETY: as above.
        unsafe { give_alone(set, size) };
    }
}

/// What [`give`] does when the blocks are of another group.
///
/// # Safety
/// As for [`give`].
#[cold]
unsafe fn begin(blocks: &Blocks, set: Set, size: Size) {
    if is_alive() {
        // SAFETY: they were given before.
        if let Some(slab) = unsafe { blocks.begin(set).give_back(size) } {
            keep(blocks, slab);
        }
    } else {
        // SAFETY: by the contract of this function.
        unsafe { give_alone(set, size) };
    }
}

/// [`give`] for a thread that keeps nothing any longer.
///
/// # Safety
/// As for [`give`].
#[cold]
unsafe fn give_alone(set: Set, size: Size) {
    // SAFETY: by the contract of this function.
    if let Some(slab) = unsafe { set.give_back(size) } {
        share(slab);
    }
}

/// Keeps a slab that the caller has to itself, for this thread or for others.
fn keep(blocks: &Blocks, slab: NonNull<Slab>) {
    if let Err(slab) = blocks.keep(slab) {
        share(slab);
    }
}

/// A slab from whoever left one, or from the allocator. The caller has it to itself.
fn fetch() -> NonNull<Slab> {
    let left = EXCHANGE.take().and_then(NonNull::new);
    left.unwrap_or_else(Slab::allocate)
}

/// Leaves a slab that the caller has to itself to whoever needs one, or to the allocator.
fn share(slab: NonNull<Slab>) {
    // Ordering: Relaxed, as in `set_limit`.
    if !EXCHANGE.put(slab.as_ptr(), LIMIT.load(Ordering::Relaxed)) {
        free(slab);
    }
}

/// Returns a slab that the caller has to itself to the allocator.
fn free(slab: NonNull<Slab>) {
    // SAFETY: all slabs are from `Slab::allocate`, and it is the caller's.
    unsafe { Slab::free(slab) };
}

#[cfg(all(test, not(loom)))]
mod tests;
