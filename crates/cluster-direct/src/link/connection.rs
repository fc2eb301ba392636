//! A connection between two nodes that know each other.

use super::pipe::Pipe;
use crate::signal::Signal;
use crate::wire::Seal;
use ganger_sync::atomic::{AtomicBool, AtomicU32, Ordering};
use ganger_sync::sync::{Mutex, lock};
use std::net::SocketAddr;
use std::sync::Arc;

/// A connection is silent after so many looks without a byte.
const MOST_SILENT: u32 = 3;

/// A connection whose peer has proven its name.
pub(crate) struct Link {
    pub(crate) pipe: Pipe,
    /// Of the frames for the peer. Frames are sealed in the order of their writes.
    pub(crate) seal: Mutex<Seal>,
    /// The run of the peer's engine.
    pub(crate) run: [u8; 16],
    /// Whether the node with the lower name has opened it.
    pub(crate) by_lower: bool,
    /// The dialer's number used once: both sides know it.
    rank: [u8; 16],
    /// Of the peer's side.
    pub(crate) address: SocketAddr,
    /// Where other nodes reach the peer, or empty.
    pub(crate) reached_at: Box<str>,
    /// Whether bytes have come since the last look.
    is_heard: AtomicBool,
    silent: AtomicU32,
    is_over: AtomicBool,
    /// Set at the end.
    pub(crate) over: Signal,
    /// Set by the next sign of life, or by the end.
    asked: Mutex<Vec<Arc<Signal>>>,
}

impl Link {
    pub(crate) fn new(
        pipe: Pipe,
        seal: Seal,
        run: [u8; 16],
        by_lower: bool,
        rank: [u8; 16],
        address: SocketAddr,
        reached_at: Box<str>,
    ) -> Self {
        Self {
            pipe,
            seal: Mutex::new(seal),
            run,
            by_lower,
            rank,
            address,
            reached_at,
            is_heard: AtomicBool::new(true),
            silent: AtomicU32::new(0),
            is_over: AtomicBool::new(false),
            over: Signal::default(),
            asked: Mutex::default(),
        }
    }

    /// Returns whether this connection takes the place of `present` without a question. Of two
    /// connections of the same two programs, both sides keep the same: the connection of the lower
    /// name, or else that of the greater rank. "The newer" would not do: the two sides may see two
    /// connections in different orders, and each would close the one that the other keeps. Any
    /// other waits for an answer of the present.
    pub(crate) fn is_better_than(&self, present: &Self) -> bool {
        let is_same_pair = present.run == self.run;
        let (own, its) = ((self.by_lower, self.rank), (present.by_lower, present.rank));
        present.is_over() || is_same_pair && own > its
    }

    /// Notes that bytes have come.
    pub(crate) fn hear(&self) {
        // Ordering: Relaxed: a hint for the keeper, which swaps it in `is_silent`.
        self.is_heard.store(true, Ordering::Relaxed);
    }

    /// Returns whether nothing has come for some looks, this look included.
    pub(crate) fn is_silent(&self) -> bool {
        // Ordering: Relaxed: a hint of the reader, which stores it in `hear`.
        if self.is_heard.swap(false, Ordering::Relaxed) {
            // Ordering: Relaxed: the keeper alone uses the count.
            self.silent.store(0, Ordering::Relaxed);
            return false;
        }
        // Ordering: Relaxed: the keeper alone uses the count.
        self.silent.fetch_add(1, Ordering::Relaxed) + 1 >= MOST_SILENT
    }

    /// Returns a signal that the next sign of life sets, or the end.
    pub(crate) fn next_sign(&self) -> Arc<Signal> {
        let signal = Arc::new(Signal::default());
        lock(&self.asked).push(Arc::clone(&signal));
        if self.is_over() {
            signal.set();
        }
        signal
    }

    /// Notes a sign of life of the peer.
    pub(crate) fn sign(&self) {
        let asked = std::mem::take(&mut *lock(&self.asked));
        asked.iter().for_each(|signal| signal.set());
    }

    /// Notes that the reader has left.
    pub(crate) fn end(&self) {
        // Ordering: pairs with the load in `is_over`.
        self.is_over.store(true, Ordering::Release);
        self.over.set();
        self.sign();
    }

    pub(crate) fn is_over(&self) -> bool {
        // Ordering: pairs with the store in `end`.
        self.is_over.load(Ordering::Acquire)
    }
}
