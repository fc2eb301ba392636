//! Nodes of one queue side by side, where a thread sends to many in turn.
//!
//! **Problem.** Nodes that a thread takes one after the other are neighbours. A thread that sends to a
//! thousand queues in turn leaves those of each queue a thousand nodes apart. While its consumer keeps up,
//! that does not matter: there is hardly a second one. A consumer that is behind walks from page to page,
//! waits for memory at each step, and gives each node back to a slab of its own, by an atomic operation.
//!
//! **Rejected.** Queues that keep blocks of nodes, as channels do: a million mailboxes would each keep
//! theirs. Fetching the nodes ahead of the walk: the address of a node is in the one before, and to guess
//! it, right as the guess may be, does not spare the memory's pages, nor the atomic operations.
//!
//! **Protocol.** A *run* is some neighbours of the thread's open set, set aside for one queue. The runs are
//! in a table, in which the queue's key says the place. Queues that share a place share runs: their
//! nodes lie that much farther apart.
//! 1. Whoever pushes says when there was an item before its own ([`Runs::note_behind`]). The same queue once
//!    more does not count, because its nodes are neighbours anyway.
//! 2. When that has happened often enough, the thread gets a table.
//! 3. Nodes come from the place's run. When it is used up, the place gets another one if nearly all of its
//!    sends were to a queue that was behind. All other nodes come from the open set, lowest first, as
//!    they would without a table: those are the ones in the processor's cache.
//! 4. A table that starts few runs is given up, and the next one takes longer to come.
//!
//! The blocks of a run are the thread's, as those of its open set are: nobody else knows of runs.
//!
//! **Price.** 24 KiB a table, and up to 32,768 unused nodes in its runs, until it is given up: see
//! [`Runs::end`].

use crate::blocks::{Blocks, Place, Set};
use crate::slab::{Size, Slab};
use std::cell::Cell;
use std::ptr::{self, NonNull};

/// Places of neighbours that a run is taken from.
const RUN: u32 = 32;

/// With fewer blocks it is not worth the while.
const LEAST: u32 = 8;

/// Runs in a table: a power of two.
const RUNS: usize = 1_024;

/// After how many sends it is decided whether a place gets a run.
const SENDS: u32 = 8;

/// How often it takes a queue that was behind, and not the one of the time before, to have a table made.
const TURNS: u32 = 256;

/// By how much longer it takes each time that a table was of no use; and the longest.
const LONGER: u32 = 8;
const LONGEST: u32 = 1 << 24;

/// After how many decisions it is decided what the table is good for; and for how many of them at the least
/// there has to be a run.
const DECISIONS: u32 = 1_024;
const USEFUL: u32 = DECISIONS / 4;

/// One thread's runs of one size. The thread alone uses them.
pub(crate) struct Runs {
    /// Null while there is none. Freed by [`end`](Self::end) alone.
    table: Cell<*mut Table>,
    /// The queue that was behind the last time.
    last: Cell<usize>,
    /// How often it was another one, since there is no table.
    turns: Cell<u32>,
    /// How often it takes to have one made.
    needed: Cell<u32>,
    /// Since the last look back at what the table is good for: how often it was decided whether a place gets a run,
    /// and how often it got one.
    decisions: Cell<u32>,
    started: Cell<u32>,
}

type Table = [Run; RUNS];

/// One place of the table.
struct Run {
    blocks: Place,
    /// Sends since the last decision, and how many of them were to a queue that was behind.
    sends: Cell<u32>,
    behind: Cell<u32>,
}

impl Runs {
    pub(crate) const fn new() -> Self {
        Self {
            table: Cell::new(ptr::null_mut()),
            last: Cell::new(0),
            turns: Cell::new(0),
            needed: Cell::new(TURNS),
            decisions: Cell::new(0),
            started: Cell::new(0),
        }
    }

    /// Whether there are any.
    #[inline]
    pub(crate) fn is_some(&self) -> bool {
        !self.table.get().is_null()
    }

    /// The run for queues of that key.
    #[inline]
    fn of(&self, key: usize) -> Option<&Run> {
        // SAFETY: null, or made by `begin` and not freed: only `end` does that, and nobody calls it while using
        // what this returns, because nothing that is called meanwhile is foreign code.
        let table = unsafe { self.table.get().as_ref() }?;
        Some(&table[place_of(key)])
    }

    /// A block of the run of the queue with that key, which is the caller's from now on; none if the queue is
    /// to have one from the open set. O(1).
    #[inline]
    pub(crate) fn take(&self, key: usize, open: &Blocks, size: Size) -> Option<NonNull<u8>> {
        let run = self.of(key)?;
        run.sends.set(run.sends.get().saturating_add(1));
        let block = run.blocks.take(size);
        block.or_else(|| self.decide(run, open, size))
    }

    /// What [`take`](Self::take) does when there is nothing in the run.
    #[inline(never)]
    fn decide(&self, run: &Run, open: &Blocks, size: Size) -> Option<NonNull<u8>> {
        let (sends, behind) = (run.sends.get(), run.behind.get());
        if sends < SENDS {
            return None;
        }
        let gets_one = behind >= sends - sends / SENDS;
        if gets_one {
            // If there are too few at the moment, the next send asks again.
            let _empty = run.blocks.replace(open.take_run(RUN, LEAST)?);
        }
        run.sends.set(0);
        run.behind.set(0);
        self.decisions.set(self.decisions.get() + 1);
        self.started.set(self.started.get() + u32::from(gets_one));
        run.blocks.take(size)
    }

    /// Notes that there was an item in the queue with that key, whose consumer had not come to it, when
    /// another one was pushed. Says whether to [`begin`](Self::begin). O(1).
    #[inline]
    pub(crate) fn note_behind(&self, key: usize) -> bool {
        if self.last.replace(key) == key {
            return false;
        }
        let Some(run) = self.of(key) else {
            return self.note_turn();
        };
        run.behind.set(run.behind.get().saturating_add(1));
        false
    }

    #[cold]
    fn note_turn(&self) -> bool {
        self.turns.set(self.turns.get() + 1);
        self.turns.get() >= self.needed.get()
    }

    /// Makes a table. The caller sees to it that it is given up when the thread ends.
    #[cold]
    pub(crate) fn begin(&self) {
        let run = || Run {
            blocks: Place::new(),
            sends: Cell::new(0),
            behind: Cell::new(0),
        };
        let runs: Box<[Run]> = std::iter::repeat_with(run).take(RUNS).collect();
        // The allocator is foreign code, which may use queues itself.
        if !self.is_some()
            && let Ok(table) = Box::<Table>::try_from(runs)
        {
            self.table.set(Box::into_raw(table));
        }
    }

    /// Looks back now and then at what the table was good for, and says whether to [`end`](Self::end) it. O(1).
    #[inline]
    pub(crate) fn is_useless(&self) -> bool {
        if self.decisions.get() < DECISIONS {
            return false;
        }
        self.decisions.set(0);
        let is_useless = self.started.replace(0) < USEFUL;
        if is_useless {
            let longer = self.needed.get().saturating_mul(LONGER);
            self.needed.set(longer.min(LONGEST));
        }
        is_useless
    }

    /// Gives the table up, if there is one; slabs that are complete then, to `keep`.
    #[cold]
    pub(crate) fn end(&self, size: Size, keep: fn(NonNull<Slab>)) {
        self.turns.set(0);
        self.decisions.set(0);
        self.started.set(0);
        let table = self.table.replace(ptr::null_mut());
        if table.is_null() {
            return;
        }
        // SAFETY: it is from `begin`, and nobody else has it any longer.
        let table = unsafe { Box::from_raw(table) };
        for run in table.iter() {
            // SAFETY: its blocks were this thread's, and of this size.
            if let Some(slab) = unsafe { run.blocks.replace(Set::EMPTY).give_back(size) } {
                keep(slab);
            }
        }
    }
}

/// Where in the table.
#[inline]
fn place_of(key: usize) -> usize {
    /// Odd, and near the golden ratio (Knuth, "The Art of Computer Programming", volume 3, section 6.4): keys
    /// that are addresses at the same distance from each other come to lie apart.
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let hash = (key as u64).wrapping_mul(FACTOR) >> (u64::BITS - RUNS.ilog2());
    // It fits everywhere.
    usize::try_from(hash).unwrap_or(0) % RUNS
}

#[cfg(all(test, not(loom)))]
mod tests;
