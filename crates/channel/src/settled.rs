//! How many claimed values have been taken for good, or have come back.
//!
//! **Problem.** The receiver of a handed value takes it for good without the channel's lock. But
//! the receivers of a closed channel see the end only when no value may come back any more.
//!
//! **Protocol.** The claims are counted under the lock (`State`), and the settled claims here. The
//! closing thread, with the lock, marks the word and reads the count; a thread that settles a claim
//! learns whether the word is marked, and then looks for the end under the lock. Both change the
//! word by a read-modify-write, so one of them comes first: either the closing thread counts the
//! claim, or the other looks.
//!
//! | word | says |
//! |---|---|
//! | bit 0 | the channel is closed |
//! | the rest | how many claims have been settled |

use ganger_sync::atomic::{AtomicUsize, Ordering};

const CLOSED: usize = 1;
const ONE: usize = 2;

pub(crate) struct Settled(AtomicUsize);

/// The obligation of a thread that has settled a claim.
#[must_use]
pub(crate) enum Then {
    Nothing,
    /// The channel is closed: the thread looks for the end under the lock.
    Look,
}

impl Settled {
    pub(crate) fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// Settles a claim.
    #[inline]
    pub(crate) fn settle(&self) -> Then {
        // Ordering: AcqRel: a close and all settlers act in one order.
        if self.0.fetch_add(ONE, Ordering::AcqRel) & CLOSED == 0 {
            Then::Nothing
        } else {
            Then::Look
        }
    }

    /// Marks the end. For a thread with the lock.
    pub(crate) fn close(&self) {
        // Ordering: AcqRel, as in `settle`.
        self.0.fetch_or(CLOSED, Ordering::AcqRel);
    }

    /// Returns whether as many claims have been settled.
    pub(crate) fn are(&self, claimed: usize) -> bool {
        // Ordering: Acquire pairs with the Release in `settle`: a thread that has to look reads its
        // own claim at least, and a closing thread all before its mark.
        self.0.load(Ordering::Acquire) / ONE == claimed & (usize::MAX / ONE)
    }
}
