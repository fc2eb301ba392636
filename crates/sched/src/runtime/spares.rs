//! Spare threads: the waiting ones, the free slots, and the worker replaced by each spare. A single
//! lock guards all of them.

use crate::runtime::token::Token;
use ganger_deque::Worker as Deque;
use std::io;

#[derive(Default)]
pub(crate) struct Spares {
    /// Waiting threads.
    pub(crate) waiting: Vec<usize>,
    /// Slots without a thread, the next to use last.
    pub(crate) free: Vec<(usize, Deque<Token>)>,
    /// How many threads wait or are active, beyond the configured workers.
    pub(crate) threads: usize,
}

/// The next state of a spare.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A worker needs the spare.
    Active,
    /// The spare ends: no worker has needed it for a while, or the scheduler has halted.
    Leave,
}

/// The result of starting a thread: the deque comes back with the system's refusal.
pub(crate) type Spawned = Result<(), (io::Error, Deque<Token>)>;
