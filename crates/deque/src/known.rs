//! The owner's memory of the word.
//!
//! **Problem.** On platforms with free light fences, a third of a pop's instructions takes the word
//! apart to find the limit, and checks whether light fences are free. The results are the same as
//! in the previous pop, unless a thief has come.
//!
//! **Protocol.** If light fences are free, the owner keeps a word that it has seen, and its limit,
//! which depends on the word alone. If the current word equals the kept word, the limit is known,
//! and [`fence::free`] was fence enough.

use crate::word::Snapshot;
use ganger_sync::fence;
use std::cell::Cell;

/// A word and its limit, or nothing if light fences are not free. Only the owner uses it.
pub(crate) struct Known {
    word: Cell<Snapshot>,
    limit: Cell<u32>,
}

impl Known {
    pub(crate) fn nothing() -> Self {
        Self {
            word: Cell::new(Snapshot::IMPOSSIBLE),
            limit: Cell::new(0),
        }
    }

    /// Returns whether `index` is known to be at or above the limit of `seen`, and light fences are
    /// known to be free.
    #[inline]
    pub(crate) fn is_private(&self, seen: Snapshot, index: u32) -> bool {
        seen == self.word.get() && index.wrapping_sub(self.limit.get()).cast_signed() >= 0
    }

    /// Keeps `seen`, if light fences are free.
    #[inline]
    pub(crate) fn keep(&self, seen: Snapshot) {
        if fence::light_is_free() {
            self.word.set(seen);
            self.limit.set(seen.limit());
        }
    }
}
