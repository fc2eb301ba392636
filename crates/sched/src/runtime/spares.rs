//! Spare threads: which of them wait, which slots are free, and which worker each replaces. One
//! lock guards all of it.

use crate::runtime::token::Token;
use ganger_deque::Worker as Deque;
use std::io;

#[derive(Default)]
pub(crate) struct Spares {
    /// Threads that wait.
    pub(crate) waiting: Vec<usize>,
    /// Slots without a thread, the next one last.
    pub(crate) free: Vec<(usize, Deque<Token>)>,
    /// How many threads wait or are active, beyond the workers that were asked for.
    pub(crate) threads: usize,
}

/// What a spare does next.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It is needed.
    Active,
    /// It ends: it has not been needed for a while, or the scheduler has halted.
    Leave,
}

/// What has come of starting a thread: the deque comes back with the system's refusal.
pub(crate) type Spawned = Result<(), (io::Error, Deque<Token>)>;
