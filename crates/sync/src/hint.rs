//! Hints to the processor. The spin hint is `std`'s, or a yield to the model under loom (a spinning thread makes no progress
//! there unless it lets another one run).

#[cfg(loom)]
pub use loom::hint::spin_loop;
#[cfg(not(loom))]
pub use std::hint::spin_loop;

/// Has the processor fetch the cache line at that address, which need not be valid, if it has time for
/// it. Nothing where there is no such instruction.
#[inline(always)]
pub fn prefetch<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every processor of that kind has it, and it touches nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}

/// As [`prefetch`], for a line that is about to be written: if another processor has written it last, it comes here
/// once, and not a second time to be changed.
#[inline(always)]
pub fn prefetch_for_write<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: every processor of that kind takes it, those that know nothing of it as an instruction that does nothing;
    // and it touches nothing.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}
