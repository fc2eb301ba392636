//! The cache: reused memory for nodes.
//!
//! **Problem.** A message is a node: one thread allocates it, and another thread frees it. Asking
//! an allocator each time costs more than the rest of a send and a receive.
//!
//! **Rejected.**
//! - *A pool in each queue*: a million mailboxes would each keep memory.
//! - *A pool shared by all threads*: two contended operations a message.
//! - *Free lists, and magazines of them* (Bonwick and Adams, "Magazines and Vmem", USENIX 2001):
//!   nodes of several producers get mixed, so producers write to one another's cache lines, and
//!   each step along a chain waits for a line to arrive.
//! - *A free list in each slab*, as in mimalloc (Leijen, Zorn and de Moura, APLAS 2019): a thread
//!   that takes a block reads a word written by another processor.
//!
//! **Protocol.** Blocks of one size come from a [`Slab`], in groups of 64 neighbours. A set of
//! blocks of one group is a word of bits. For each size, a thread keeps an open set to take from,
//! and a few sets of given blocks.
//! 1. *Take*: the lowest block of the open set. If it is empty, the thread opens the first
//!    available of these: a large given set; the next group of the slab; the spare slab; a slab
//!    from the [`Exchange`]; a slab from the allocator.
//! 2. *Give*: to the set of the block's group. If another group has the set's place, its blocks
//!    first go back to their slab.
//! 3. *Take behind*: for a list, the block behind its newest block, if it is set aside: see
//!    [`runs`](crate::runs).
//! 4. *Complete slabs* become the spare, or go to the exchange, or to the allocator.
//!
//! A thread that takes reads only its own words, and touches no block. Nodes made one after the
//! other are neighbours. A group of messages costs one atomic operation; a few messages from a
//! thread to itself cost none.
//!
//! **Price.** A slab with a single block in use serves nothing else. Slabs are therefore small, and
//! a thread takes a new slab rather than the last few blocks of many slabs: otherwise messages
//! freed in disorder once would stay in disorder.

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

/// Bytes in a slab, the piece of memory from which nodes are taken. The nodes of a slab have the
/// same size, and the slab is reused when all of them are free.
pub const SLAB_BYTES: usize = SLAB;

/// The default and the maximum of [`limit`], the bytes of unused memory kept for all threads.
pub const DEFAULT_LIMIT: usize = SLOTS * SLAB_BYTES;

#[cfg(not(ganger_loom))]
static EXCHANGE: Exchange<Slab, SLOTS> = Exchange::new();
/// Unused under loom, whose atomics cannot be made in a constant.
#[cfg(ganger_loom)]
static EXCHANGE: LazyLock<Exchange<Slab, SLOTS>> = LazyLock::new(Exchange::new);

/// How many slabs the exchange may have. Any thread may store it, and each put reads it.
#[cfg(not(ganger_loom))]
static LIMIT: AtomicUsize = AtomicUsize::new(SLOTS);
#[cfg(ganger_loom)]
static LIMIT: LazyLock<AtomicUsize> = LazyLock::new(|| AtomicUsize::new(SLOTS));

/// The use of memory. Each pool has its own slabs.
#[derive(Clone, Copy)]
pub(crate) enum Pool {
    /// Nodes of messages: many, and in use for a short time.
    Nodes,
    /// Values that may stay. Each keeps its whole slab, so nodes must not share the slab.
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
    /// Gives up the blocks in `LOCAL` when the thread ends.
    static END: End = const { End };
}

/// The blocks that a thread keeps.
///
/// The type has no destructor, so access needs no check for destruction. Exceptions are platforms
/// with system keys for thread-local values: there `LOCAL` may be dropped before `END`, and would
/// lose its blocks without a destructor.
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

    /// Gives up the nodes set aside for lists.
    fn end_runs(&self) {
        if self.has_runs.replace(false) {
            for (index, blocks) in self.pools[Pool::Nodes as usize].iter().enumerate() {
                blocks.end_runs(Size(index), share);
            }
        }
    }

    /// Gives up everything, and hands each slab completed by this to `keep`.
    fn release(&self, keep: fn(NonNull<Slab>)) {
        self.has_runs.set(false);
        for pool in &self.pools {
            for (index, blocks) in pool.iter().enumerate() {
                blocks.release(Size(index), keep);
            }
        }
    }
}

// The remaining platforms are those with keys.
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

/// Ends a thread's cache: see [`is_alive`].
struct End;

impl Drop for End {
    fn drop(&mut self) {
        release(share);
    }
}

/// Returns whether the thread may keep blocks, because it will give them up when it ends. A thread
/// checks this before it keeps its first blocks.
fn is_alive() -> bool {
    END.try_with(|_end| {}).is_ok()
}

/// Gives up all blocks of this thread, and hands each slab completed by this to `keep`.
fn release(keep: fn(NonNull<Slab>)) {
    // A destroyed cache has given up everything.
    let _gone = LOCAL.try_with(|local| local.release(keep));
}

/// Sets how many bytes of unused memory are kept for all threads: at most [`DEFAULT_LIMIT`], in
/// steps of [`SLAB_BYTES`]. O(1); never blocks.
///
/// In addition, each thread keeps at most one unused slab and parts of ten others for each size of
/// node that it has used, and as many for [`values`](crate::values). Until [`end_runs`] it may keep
/// parts of 512 more slabs for each size that it adds to many lists in turn. Sizes are 16 bytes, 32
/// and so on up to 256. Memory kept above a lowered limit is used up; [`clear`] returns it at once.
/// The slab of a value in use is in use as a whole, and does not count.
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
    // Ordering: Relaxed, because no thread depends on when it sees the limit.
    LIMIT.store(bytes.div_ceil(SLAB).min(SLOTS), Ordering::Relaxed);
}

/// Returns how many bytes of unused memory are kept for all threads at most. O(1).
#[must_use]
pub fn limit() -> usize {
    // Ordering: Relaxed, because no caller depends on when it sees a change.
    LIMIT.load(Ordering::Relaxed) * SLAB
}

/// Returns to the allocator the memory kept for all threads and for the calling thread. Other
/// threads keep their memory until they end. The slab of a value in use is returned when the value
/// is freed. O(n) in the slabs returned; never blocks.
pub fn clear() {
    release(free);
    // Bounded, because other threads may put more slabs there meanwhile.
    let kept = std::iter::from_fn(|| EXCHANGE.take()).take(SLOTS);
    kept.filter_map(NonNull::new).for_each(free);
}

/// Gives up the memory that the calling thread has set aside for lists: see
/// [`allocate_behind`](crate::allocate_behind). For a thread that is about to wait. O(1) if no
/// memory is set aside, and O(n) in the slabs otherwise; never blocks.
pub fn end_runs() {
    // A destroyed cache has given up its runs.
    let _gone = LOCAL.try_with(ThreadCache::end_runs);
}

/// Takes uninitialised memory for a value of a size. O(1), except for calls of the allocator.
#[inline]
pub(crate) fn take(pool: Pool, size: Size) -> NonNull<u8> {
    let taken = LOCAL.try_with(|local| {
        let blocks = local.blocks(pool, size);
        blocks.take(size).unwrap_or_else(|| refill(blocks, size))
    });
    taken.unwrap_or_else(|_gone| take_alone(size))
}

/// Takes a block, as [`take`] does, for a value of the list with the key `list`. `newest` returns
/// the address of the list's newest value, or zero.
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

/// Takes the block behind `newest` if it is set aside, and any block otherwise. Does not unwind,
/// like [`refill`].
#[inline(never)]
extern "C" fn take_near(size: Size, newest: NonNull<u8>) -> NonNull<u8> {
    let near = LOCAL.try_with(|local| {
        if !local.has_runs.get() {
            local.has_runs.set(is_alive());
            return None;
        }
        let blocks = local.blocks(Pool::Nodes, size);
        let taken = blocks.take_behind(newest, size);
        // SAFETY: the blocks set aside before are this thread's.
        taken
            .map_err(|displaced| unsafe { give_up(blocks, displaced, size) })
            .ok()
    });
    near.ok()
        .flatten()
        .unwrap_or_else(|| take(Pool::Nodes, size))
}

/// Takes a block when the open set is empty.
///
/// The function does not unwind, as its ABI says, because an allocator must not. A caller therefore
/// need not drop the value for the block when the call panics, and the compiler can build the value
/// in place.
#[cold]
extern "C" fn refill(blocks: &LocalBlocks, size: Size) -> NonNull<u8> {
    if !is_alive() {
        return take_alone(size);
    }
    loop {
        if blocks.refill(size)
            && let Some(block) = blocks.take(size)
        {
            // SAFETY: the blocks set aside before are this thread's.
            unsafe { give_up(blocks, blocks.note_open(), size) };
            return block;
        }
        // The allocator is foreign code and may use this cache: the loop starts again.
        keep(blocks, fetch());
    }
}

/// Takes a block for a thread without a cache. The other blocks of the slab go back at once, and
/// the slab serves nothing else until this block is back.
#[cold]
extern "C" fn take_alone(size: Size) -> NonNull<u8> {
    let slab = fetch();
    // SAFETY: the slab belongs to this thread alone, and so do its blocks. One block stays in use,
    // so the slab is not complete when the other blocks are back.
    unsafe {
        Slab::open(slab);
        let _not_yet = Slab::give_back(slab, size.blocks() - 1, size);
        slab.cast::<u8>().add(size.bytes())
    }
}

/// Takes back the blocks of a nonempty set. O(1), except for calls of the allocator.
///
/// # Safety
/// The blocks came from [`take`] with the same pool and size, and nothing uses them any longer.
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

/// Takes back the blocks of a set whose place another group has.
///
/// # Safety
/// The blocks are of size `size`, and the caller owns them.
#[cold]
unsafe fn begin(blocks: &LocalBlocks, set: BlockSet, size: Size) {
    if is_alive() {
        // SAFETY: the displaced blocks were given to this thread before.
        unsafe { give_up(blocks, blocks.begin(set), size) };
    } else {
        // SAFETY: by the contract of this function.
        unsafe { give_alone(set, size) };
    }
}

/// Gives the thread's blocks back to their slab.
///
/// # Safety
/// The blocks are of size `size`, and the caller owns them.
unsafe fn give_up(blocks: &LocalBlocks, set: BlockSet, size: Size) {
    // SAFETY: by the contract of this function.
    if let Some(slab) = unsafe { set.give_back(size) } {
        keep(blocks, slab);
    }
}

/// Takes back the blocks of a set for a thread without a cache.
///
/// # Safety
/// The blocks are of size `size`, and the caller owns them.
#[cold]
unsafe fn give_alone(set: BlockSet, size: Size) {
    // SAFETY: by the contract of this function.
    if let Some(slab) = unsafe { set.give_back(size) } {
        share(slab);
    }
}

/// Keeps a slab that belongs to the caller alone, for this thread or for others.
fn keep(blocks: &LocalBlocks, slab: NonNull<Slab>) {
    if let Err(slab) = blocks.keep(slab) {
        share(slab);
    }
}

/// Takes a slab from the exchange, or from the allocator. The slab belongs to the caller alone.
fn fetch() -> NonNull<Slab> {
    let left = EXCHANGE.take().and_then(NonNull::new);
    left.unwrap_or_else(Slab::allocate)
}

/// Leaves a slab, which belongs to the caller alone, to other threads or returns it to the
/// allocator.
fn share(slab: NonNull<Slab>) {
    // Ordering: Relaxed, because no thread depends on when it sees a change of the limit.
    if !EXCHANGE.put(slab.as_ptr(), LIMIT.load(Ordering::Relaxed)) {
        free(slab);
    }
}

/// Returns a slab, which belongs to the caller alone, to the allocator.
fn free(slab: NonNull<Slab>) {
    // SAFETY: all slabs are from `Slab::allocate`, and this slab is the caller's.
    unsafe { Slab::free(slab) };
}

#[cfg(all(test, not(ganger_loom)))]
mod tests;
