//! Senders waiting for room at a peer.
//!
//! **Problem.** A large message is refused where a small one is taken. A sender woken for
//! too little room would encode its message again and again.
//!
//! **Protocol.** The refusal notes the length of the message for its thread, whose next call asks
//! for room. Senders are woken in their order, but for those whose messages do not fit yet.

use std::cell::Cell;
use std::collections::VecDeque;
use std::task::Waker;

thread_local! {
    /// The length of this thread's last refused message, for want of room beside the
    /// queue.
    static REFUSED: Cell<usize> = const { Cell::new(0) };
}

/// Notes that a message of this length was refused on this thread.
pub(super) fn refused(length: usize) {
    REFUSED.set(length);
}

/// Takes the length of this thread's refused message; 0 where a place in the queue is enough.
pub(super) fn wanted() -> usize {
    REFUSED.take()
}

#[derive(Default)]
pub(super) struct Waiting(VecDeque<(Waker, usize)>);

impl Waiting {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a sender. Returns its waker from before, if the sender was the last to be added, to be
    /// dropped without a lock.
    pub(super) fn push(&mut self, waker: Waker, wanted: usize) -> Option<Waker> {
        let last = self.0.pop_back_if(|(last, _)| last.will_wake(&waker));
        self.0.push_back((waker, wanted));
        last.map(|(waker, _)| waker)
    }

    /// Returns whether a waiting sender may try again.
    pub(super) fn has(&self, fits: impl Fn(usize) -> bool) -> bool {
        self.0.iter().any(|(_, wanted)| fits(*wanted))
    }

    /// Takes the first sender with room.
    pub(super) fn take(&mut self, fits: impl Fn(usize) -> bool) -> Option<Waker> {
        let place = self.0.iter().position(|(_, wanted)| fits(*wanted))?;
        self.0.remove(place).map(|(waker, _)| waker)
    }

    pub(super) fn wake_all(self) {
        for (waker, _) in self.0 {
            waker.wake();
        }
    }
}
