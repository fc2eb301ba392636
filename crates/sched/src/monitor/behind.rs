//! What waits behind a step, in its worker's deque, and for how long.
//!
//! While the step lasts its worker takes nothing from there, so that whatever goes is stolen, the oldest first. All
//! that the monitor has to remember is numbers: that of the oldest process, and that of the first one behind those
//! that were there at some look.

use crate::token::Token;
use ganger_deque::Stealer;
use std::time::Duration;

/// How long processes behind steps have waited, at the longest, as far as anybody knows.
#[derive(Clone, Copy, Default)]
pub(super) struct Waits {
    /// The oldest of one deque, while nobody has taken it.
    pub(super) oldest: Duration,
    /// All that were in one deque, while some of them still are.
    pub(super) all: Duration,
}

impl Waits {
    pub(super) fn max(self, other: Self) -> Self {
        Self {
            oldest: self.oldest.max(other.oldest),
            all: self.all.max(other.all),
        }
    }
}

/// What the monitor remembers of a deque.
#[derive(Clone, Copy)]
pub(super) struct Behind {
    /// The number of the oldest process, and when it was seen first.
    oldest: u32,
    oldest_since: Duration,
    /// The number behind the youngest, and when that was.
    end: u32,
    end_since: Duration,
}

impl Behind {
    pub(super) fn new(deque: &Stealer<Token>, now: Duration) -> Self {
        let (oldest, end) = extent(deque);
        Self {
            oldest,
            oldest_since: now,
            end,
            end_since: now,
        }
    }

    /// Looks again: for how long something has waited.
    pub(super) fn look(&mut self, deque: &Stealer<Token>, now: Duration) -> Waits {
        let (oldest, end) = extent(deque);
        if oldest == end || oldest != self.oldest {
            (self.oldest, self.oldest_since) = (oldest, now);
        }
        let left = self.end.wrapping_sub(oldest).cast_signed();
        if left <= 0 {
            (self.end, self.end_since) = (end, now);
        }
        Waits {
            oldest: now.saturating_sub(self.oldest_since),
            all: now.saturating_sub(self.end_since),
        }
    }
}

/// The number of the oldest process, and the one behind the youngest.
fn extent(deque: &Stealer<Token>) -> (u32, u32) {
    let (oldest, count) = deque.position();
    // There is no memory for more.
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    (oldest, oldest.wrapping_add(count))
}
