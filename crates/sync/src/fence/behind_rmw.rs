//! A full fence behind a read-modify-write.
//!
//! **Problem.** In the language, no read-modify-write keeps a later load of another location behind
//! it, not even with `SeqCst`. This takes a full fence. On x86 a full fence waits a second time for
//! all stores to leave the processor: the read-modify-write has just waited for them.
//!
//! **Why x86 needs no fence instruction.** Every read-modify-write is a locked instruction. The
//! instruction waits until all earlier stores have left the store buffer, and no later load
//! overtakes it. So only the compiler must be kept from moving the accesses. Sources: Intel,
//! *Software Developer's Manual*, volume 3A, "Loads and Stores Are Not Reordered with Locked
//! Instructions"; P. Sewell et al., "x86-TSO", *Communications of the ACM* 53(7), 2010, pages 89 to
//! 97.

#[cfg(not(ganger_loom))]
use std::sync::atomic;

#[cfg(ganger_loom)]
use crate::atomic;

/// Executes a full fence, as `fence(SeqCst)` does, for a thread that has just made a
/// read-modify-write.
///
/// The read-modify-write is the store to be ordered, or comes after this store. Other threads can
/// access its memory. On x86 the fence is a compiler fence. Does not block.
#[inline(always)]
pub fn behind_rmw() {
    #[cfg(all(
        any(target_arch = "x86", target_arch = "x86_64"),
        not(ganger_loom),
        not(miri)
    ))]
    // Ordering: pairs with the full fence named by the caller. The read-modify-write is the fence.
    atomic::compiler_fence(atomic::Ordering::SeqCst);
    #[cfg(not(all(
        any(target_arch = "x86", target_arch = "x86_64"),
        not(ganger_loom),
        not(miri)
    )))]
    // Ordering: pairs with the full fence named by the caller.
    atomic::fence(atomic::Ordering::SeqCst);
}
