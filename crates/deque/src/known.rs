//! What the owner remembers of the word.
//!
//! **Problem.** Where light fences are free, a third of a pop's instructions takes the word apart
//! to find the limit, and asks whether light fences are free. The answers are those of the pop
//! before, unless a thief has come.
//!
//! **Protocol.** The owner keeps a word that it has seen, and its limit, which depends on the word
//! alone. It does so only where light fences are free. So if the word equals the kept one, the
//! limit is known, and [`fence::free`] was fence enough.

use crate::word::Snapshot;
use ganger_sync::fence;
use std::cell::Cell;

/// A word and its limit, or none where light fences are not free. Only the owner uses it.
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

    /// Whether `index` is known to be at or above the limit of `seen`, and light fences to be free.
    #[inline]
    pub(crate) fn is_private(&self, seen: Snapshot, index: u32) -> bool {
        seen == self.word.get() && index.wrapping_sub(self.limit.get()).cast_signed() >= 0
    }

    /// Keeps `seen`, where light fences are free.
    #[inline]
    pub(crate) fn keep(&self, seen: Snapshot) {
        if fence::light_is_free() {
            self.word.set(seen);
            self.limit.set(seen.limit());
        }
    }
}
