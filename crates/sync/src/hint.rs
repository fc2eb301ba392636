//! Hints to the processor.
//!
//! The spin hint is `std`'s. Under loom it yields to the model, where a spinning thread makes
//! progress only if it lets another thread run.

#[cfg(ganger_loom)]
pub use loom::hint::spin_loop;
#[cfg(not(ganger_loom))]
pub use std::hint::spin_loop;

/// Asks the processor to fetch the cache line at `address`. The address need not be valid. Does
/// nothing on processors other than x86-64.
#[inline(always)]
pub fn prefetch<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 processor has the instruction, and it accesses no memory.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}

/// Prefetches, as [`prefetch`] does, a line that this thread is about to write. If another
/// processor has the line, one transfer brings it here in a writable state, instead of a second
/// transfer at the write.
#[inline(always)]
pub fn prefetch_for_write<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: x86-64 processors without this instruction execute it as a no-op. The instruction
    // accesses no memory.
    unsafe {
        std::arch::asm!(
            "prefetchw [{}]",
            in(reg) address,
            options(nostack, preserves_flags, readonly),
        );
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}
