//! A full fence for who has just made a read-modify-write.
//!
//! **Problem.** In the language no read-modify-write, whatever its ordering, keeps a later load of another
//! location behind it: that takes a full fence. On x86 the one that is made for it, `mfence`, waits a second
//! time for all stores to leave the processor, for which the read-modify-write has just waited.
//!
//! **Why none is needed there.** A locked instruction, which every read-modify-write is, waits until all earlier
//! stores have left the store buffer, and no later load overtakes it (Intel, *Software Developer's Manual*, volume 3A,
//! "Loads and Stores Are Not Reordered with Locked Instructions"; P. Sewell et al., "x86-TSO", *Communications of the
//! ACM* 53(7), 2010, pages 89 to 97, where it flushes the buffer). What is left to do is to keep the compiler from
//! moving anything.

#[cfg(not(loom))]
use std::sync::atomic;

#[cfg(loom)]
use crate::atomic;

/// A full fence, as `fence(SeqCst)`, for a thread whose last store to what the fence is about was part of a
/// read-modify-write of memory that other threads can see. A compiler fence on x86; does not block.
#[inline(always)]
pub fn behind_rmw() {
    #[cfg(all(any(target_arch = "x86", target_arch = "x86_64"), not(loom), not(miri)))]
    // Ordering: pairs with whatever full fence the caller names; the read-modify-write is the fence.
    atomic::compiler_fence(atomic::Ordering::SeqCst);
    #[cfg(not(all(any(target_arch = "x86", target_arch = "x86_64"), not(loom), not(miri))))]
    // Ordering: as above.
    atomic::fence(atomic::Ordering::SeqCst);
}
