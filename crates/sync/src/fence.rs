//! The two halves of an asymmetric fence.
//!
//! A store followed by a load of another location needs a full fence between them when another
//! thread does the mirror image (store the second, load the first) and at least one of the two has
//! to see the other's store. When one side runs a thousand times as often as the other, that side
//! calls [`light`] and the rare side calls [`heavy`]: each light fence is ordered against each
//! heavy one, but two light fences are not ordered against each other.
//!
//! Both are `fence(SeqCst)` here, which satisfies the contract on every platform. Callers must not
//! rely on more than the contract.

use crate::atomic::{Ordering, fence};

/// The side that runs often. Ordered against every [`heavy`] fence; does not block.
#[inline(always)]
pub fn light() {
    // Ordering: pairs with the fence in `heavy`.
    fence(Ordering::SeqCst);
}

/// The side that runs rarely. Ordered against every [`light`] fence; does not block.
#[inline]
pub fn heavy() {
    // Ordering: pairs with the fence in `light`.
    fence(Ordering::SeqCst);
}
