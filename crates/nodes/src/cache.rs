//! The cache: memory of nodes that is used again.
//!
//! **Problem.** A message is a node, which one thread makes and another one frees. Asking an
//! allocator each time costs more than the rest of a send and a receive.
//!
//! **Rejected.**
//! - *A pool in each queue*: a million mailboxes would each keep their own.
//! - *A pool that all threads share*: two contended operations a message.
//! - *Free lists, and magazines of them* (Bonwick and Adams, "Magazines and Vmem", USENIX 2001):
//!   nodes of several producers get mixed, so that producers write to one another's cache lines,
//!   and each step along a chain leads to a line that has yet to come.
//! - *A free list in each slab*, as mimalloc has it (Leijen, Zorn and de Moura, APLAS 2019): to
//!   take a block is to read what another processor wrote.
//!
//! **Protocol.** Blocks of one size come from a [`Slab`], in groups of 64 neighbours, and a set of
//! blocks of one group is a word of bits. For each size, a thread keeps a set to take from, and a
//! few sets of blocks that were given to it.
//! 1. *Take*: the lowest block of the set. If the set is empty, one of these becomes the set, in
//!    this order: a large set that was given; the next group of the slab; the spare slab; a slab
//!    from the [`Exchange`]; a slab from the allocator.
//! 2. *Give*: to the set of the block's group. If another group has its place, the blocks of that
//!    group go back to their slab first.
//! 3. *Take behind*: for a list, the block behind its newest, where that is set aside: see
//!    [`runs`](crate::runs).
//! 4. *A slab that is complete* becomes the spare, or goes to the exchange, or to the allocator.
//!
//! So taking reads nothing but the thread's own words, and touches no block. Nodes that are made
//! one after the other are neighbours. An atomic operation comes with a group of messages, and with
//! none where a thread sends a few messages to itself.
//!
//! **Price.** A slab in which one block stays in use serves nothing else. Hence slabs are small,
//! and a thread takes a new slab rather than the last few blocks of many: otherwise messages that
//! were freed in disorder once would be in disorder for ever.

use crate::blocks::LocalBlocks;
use crate::exchange::Exchange;
use crate::set::BlockSet;
use crate::slab::{SIZES, SLAB, Size, Slab};
use ganger_sync::atomic::{AtomicUsize, Ordering};
use std::cell::Cell;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
#[cfg(ganger_loom)]
use std::sync::LazyLock;

/// How many slabs the exchange keeps at most.
const SLOTS: usize = 1_024;

/// Bytes in the pieces of memory that nodes are taken from. The nodes in one piece are of one size,
/// and the piece is used again when all of them are free.
pub const SLAB_BYTES: usize = SLAB;

/// How many bytes of unused memory are kept for all threads at most, unless [`set_limit`] says
/// less.
pub const DEFAULT_LIMIT: usize = SLOTS * SLAB_BYTES;

#[cfg(not(ganger_loom))]
static EXCHANGE: Exchange<Slab, SLOTS> = Exchange::new();
/// Not used under loom, whose atomics cannot be made in a constant.
#[cfg(ganger_loom)]
static EXCHANGE: LazyLock<Exchange<Slab, SLOTS>> = LazyLock::new(Exchange::new);

/// How many slabs the exchange may have. Any thread may store it, and each put reads it.
#[cfg(not(ganger_loom))]
static LIMIT: AtomicUsize = AtomicUsize::new(SLOTS);
#[cfg(ganger_loom)]
static LIMIT: LazyLock<AtomicUsize> = LazyLock::new(|| AtomicUsize::new(SLOTS));

/// What memory is for. Each pool has slabs of its own.
#[derive(Clone, Copy)]
pub(crate) enum Pool {
    /// Nodes of messages: many, and in use for a short time.
    Nodes,
    /// Values that may stay. Each of them keeps its slab, which nodes are not to share.
    Values,
}

/// How many pools there are.
const POOLS: usize = Pool::Values as usize + 1;

thread_local! {
    static LOCAL: ThreadCache = const {
        ThreadCache {
            pools: [const { [const { LocalBlocks::new() }; SIZES] }; POOLS],
            has_runs: Cell::new(false),
        }
    };
    /// Gives up what `LOCAL` keeps when the thread ends.
    static END: End = const { End };
}

/// What one thread keeps.
///
/// It has no destructor, so that reaching it needs no check of whether it is still there. An
/// exception are platforms where thread-local values are keys of the system: there it may be
/// dropped before `END` is, and would lose its blocks.
struct ThreadCache {
    pools: [[LocalBlocks; SIZES]; POOLS],
    /// Whether nodes may have been set aside for lists.
    has_runs: Cell<bool>,
}

impl ThreadCache {
    #[inline]
    fn blocks(&self, pool: Pool, size: Size) -> &LocalBlocks {
        &self.pools[pool as usize][size.0]
    }

    /// Gives up the nodes that are set aside for lists.
    fn end_runs(&self) {
        if self.has_runs.replace(false) {
            for (index, blocks) in self.pools[Pool::Nodes as usize].iter().enumerate() {
                blocks.end_runs(Size(index), share);
            }
        }
    }

    /// Gives up everything, and hands the slabs that are complete then to `keep`.
    fn release(&self, keep: fn(NonNull<Slab>)) {
        self.has_runs.set(false);
        for pool in &self.pools {
            for (index, blocks) in pool.iter().enumerate() {
                blocks.release(Size(index), keep);
            }
        }
    }
}

// The platforms that are left are those with keys.
#[cfg(not(any(
    all(target_os = "linux", not(target_env = "ohos")),
    target_os = "freebsd",
    target_vendor = "apple",
    all(target_env = "msvc", not(target_vendor = "win7"))
)))]
impl Drop for ThreadCache {
    fn drop(&mut self) {
        self.release(share);
    }
}

/// The end of a thread's cache: see [`is_alive`].
struct End;

impl Drop for End {
    fn drop(&mut self) {
        release(share);
    }
}

/// Whether the thread may keep blocks, because it will give them up when it ends. A thread asks
/// this before it keeps its first blocks.
fn is_alive() -> bool {
    END.try_with(|_end| {}).is_ok()
}

/// Gives up all that this thread keeps, and hands the slabs that are complete then to `keep`.
fn release(keep: fn(NonNull<Slab>)) {
    // A cache that is gone has given up everything.
    let _gone = LOCAL.try_with(|local| local.release(keep));
}

/// Sets how many bytes of unused memory are kept for all threads: at most [`DEFAULT_LIMIT`], in
/// steps of [`SLAB_BYTES`]. O(1); never blocks.
///
/// Beside these, each thread keeps at most one unused slab, and parts of ten, for each size of node
/// that it has used; and as much again for [`values`](crate::values). Until [`end_runs`] it may
/// keep parts of 512 more for each size that it adds to many lists in turn. Sizes are 16 bytes, 32
/// and so on up to 256. Memory that is kept above a lower limit is used up; [`clear`] returns it at
/// once. The slab of a value in use is in use as a whole, and does not count.
///
/// ```
/// use ganger_nodes::{DEFAULT_LIMIT, SLAB_BYTES, limit, set_limit};
///
/// set_limit(100_000);
/// assert_eq!(limit(), 25 * SLAB_BYTES);
/// set_limit(usize::MAX);
/// assert_eq!(limit(), DEFAULT_LIMIT);
/// ```
pub fn set_limit(bytes: usize) {
    // Ordering: Relaxed, because nothing depends on when it is seen.
    LIMIT.store(bytes.div_ceil(SLAB).min(SLOTS), Ordering::Relaxed);
}

/// How many bytes of unused memory are kept for all threads at most. O(1).
#[must_use]
pub fn limit() -> usize {
    // Ordering: Relaxed, because nothing depends on when a change is seen.
    LIMIT.load(Ordering::Relaxed) * SLAB
}

/// Returns to the allocator what is kept for all threads, and what the calling thread keeps for
/// itself. Other threads keep theirs until they end. The slab of a value in use is returned when
/// the value is freed. O(n) in the slabs returned; never blocks.
pub fn clear() {
    release(free);
    // Bounded, because other threads may put more there meanwhile.
    let kept = std::iter::from_fn(|| EXCHANGE.take()).take(SLOTS);
    kept.filter_map(NonNull::new).for_each(free);
}

/// Gives up the memory that the calling thread has set aside for lists that it adds to in turn: see
/// [`allocate_behind`](crate::allocate_behind). For a thread that is about to wait. O(1) if there
/// is none, and O(n) in the slabs otherwise; never blocks.
pub fn end_runs() {
    // A cache that is gone has given it up.
    let _gone = LOCAL.try_with(ThreadCache::end_runs);
}

/// Memory for a value of that size, not initialised. O(1), but for calls of the allocator.
#[inline]
pub(crate) fn take(pool: Pool, size: Size) -> NonNull<u8> {
    let taken = LOCAL.try_with(|local| {
        let blocks = local.blocks(pool, size);
        blocks.take(size).unwrap_or_else(|| refill(blocks, size))
    });
    taken.unwrap_or_else(|_gone| take_alone(size))
}

/// As [`take`], for a value of the list with that key, whose newest value is where `newest` says,
/// or at zero.
#[inline]
pub(crate) fn take_behind(size: Size, list: usize, newest: impl FnOnce() -> usize) -> NonNull<u8> {
    let is_in_turn = LOCAL.try_with(|local| local.blocks(Pool::Nodes, size).is_in_turn(list));
    if is_in_turn.unwrap_or(false)
        && let Some(newest) = NonZeroUsize::new(newest())
    {
        return take_near(size, NonNull::without_provenance(newest));
    }
    take(Pool::Nodes, size)
}

/// Takes the block behind that one if it is set aside, and any otherwise. Does not unwind, like
/// [`refill`].
#[inline(never)]
extern "C" fn take_near(size: Size, newest: NonNull<u8>) -> NonNull<u8> {
    let near = LOCAL.try_with(|local| {
        if !local.has_runs.get() {
            local.has_runs.set(is_alive());
            return None;
        }
        let blocks = local.blocks(Pool::Nodes, size);
        let taken = blocks.take_behind(newest, size);
        // SAFETY: what was set aside before is this thread's.
        taken
            .map_err(|displaced| unsafe { give_up(blocks, displaced, size) })
            .ok()
    });
    near.ok()
        .flatten()
        .unwrap_or_else(|| take(Pool::Nodes, size))
}

/// Takes a block where the set to take from is empty.
///
/// It does not unwind, as its ABI says, because an allocator must not. So a caller need not drop
/// the value that the block is for on the way out of a call that panics, and the compiler can build
/// the value where it belongs.
#[cold]
extern "C" fn refill(blocks: &LocalBlocks, size: Size) -> NonNull<u8> {
    if !is_alive() {
        return take_alone(size);
    }
    loop {
        if blocks.refill(size)
            && let Some(block) = blocks.take(size)
        {
            // SAFETY: what was set aside before is this thread's.
            unsafe { give_up(blocks, blocks.note_open(), size) };
            return block;
        }
        // The allocator is foreign code, which may use this cache: so look again from the start.
        keep(blocks, fetch());
    }
}

/// Takes a block for a thread that keeps nothing any longer. The other blocks of its slab go back
/// at once, and the slab serves nothing else until this block is back.
#[cold]
extern "C" fn take_alone(size: Size) -> NonNull<u8> {
    let slab = fetch();
    // SAFETY: the slab is this thread's alone, and so are its blocks. One of them stays in use, so
    // the slab is not complete when the others are back.
    unsafe {
        Slab::open(slab);
        let _not_yet = Slab::give_back(slab, size.blocks() - 1, size);
        slab.cast::<u8>().add(size.bytes())
    }
}

/// Takes the blocks of a set back, which is not empty. O(1), but for calls of the allocator.
///
/// # Safety
/// They came from [`take`] with the same pool and size, and nothing uses them any longer.
#[inline]
pub(crate) unsafe fn give(pool: Pool, set: BlockSet, size: Size) {
    let given = LOCAL.try_with(|local| {
        let blocks = local.blocks(pool, size);
        if !blocks.give(set) {
            // SAFETY: by the contract of this function the blocks are the caller's.
            unsafe { begin(blocks, set, size) };
        }
    });
    if given.is_err() {
        // SAFETY: by the contract of this function the blocks are the caller's.
        unsafe { give_alone(set, size) };
    }
}

/// Takes the blocks of a set back where another group has its place.
///
/// # Safety
/// The blocks are of that size, and the caller owns them.
#[cold]
unsafe fn begin(blocks: &LocalBlocks, set: BlockSet, size: Size) {
    if is_alive() {
        // SAFETY: the blocks that come out were given to this thread before.
        unsafe { give_up(blocks, blocks.begin(set), size) };
    } else {
        // SAFETY: by the contract of this function.
        unsafe { give_alone(set, size) };
    }
}

/// Gives blocks of the thread's back to their slab.
///
/// # Safety
/// The blocks are of that size, and the caller owns them.
unsafe fn give_up(blocks: &LocalBlocks, set: BlockSet, size: Size) {
    // SAFETY: by the contract of this function.
    if let Some(slab) = unsafe { set.give_back(size) } {
        keep(blocks, slab);
    }
}

/// Takes the blocks of a set back for a thread that keeps nothing any longer.
///
/// # Safety
/// The blocks are of that size, and the caller owns them.
#[cold]
unsafe fn give_alone(set: BlockSet, size: Size) {
    // SAFETY: by the contract of this function.
    if let Some(slab) = unsafe { set.give_back(size) } {
        share(slab);
    }
}

/// Keeps a slab that the caller has to itself, for this thread or for others.
fn keep(blocks: &LocalBlocks, slab: NonNull<Slab>) {
    if let Err(slab) = blocks.keep(slab) {
        share(slab);
    }
}

/// A slab from the exchange, or from the allocator. The caller has it to itself.
fn fetch() -> NonNull<Slab> {
    let left = EXCHANGE.take().and_then(NonNull::new);
    left.unwrap_or_else(Slab::allocate)
}

/// Leaves a slab that the caller has to itself to other threads, or returns it to the allocator.
fn share(slab: NonNull<Slab>) {
    // Ordering: Relaxed, because nothing depends on when a change of the limit is seen.
    if !EXCHANGE.put(slab.as_ptr(), LIMIT.load(Ordering::Relaxed)) {
        free(slab);
    }
}

/// Returns a slab that the caller has to itself to the allocator.
fn free(slab: NonNull<Slab>) {
    // SAFETY: all slabs are from `Slab::allocate`, and this one is the caller's.
    unsafe { Slab::free(slab) };
}

#[cfg(all(test, not(ganger_loom)))]
mod tests;
