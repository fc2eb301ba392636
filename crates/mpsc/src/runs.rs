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
//! in a table, in which the queue's key says the place; a place serves one queue at a time, and others that come
//! to it do without.
//! 1. Whoever pushes says when the consumer had not been waiting for it ([`Runs::note_behind`]).
//! 2. When that has happened often enough, the thread gets a table. The same queue once more does not count,
//!    neither here nor below: its nodes are neighbours anyway.
//! 3. Nodes come from the queue's run. When it is used up, the queue gets another one if nearly all that was
//!    sent to it meanwhile found the consumer behind. All other nodes come from the open set, lowest
//!    first, as they would without a table.
//! 4. A table of which few nodes come is given up, and the next one takes longer to come.
//!
//! The blocks of a run are the thread's, as those of its open set are: nobody else knows of runs. Where a run
//! goes on it is fetched into the processor's cache, to be written, ahead of the next send; nodes of the open set need not
//! be, because a processor sees by itself that they are used one after the other.
//!
//! **Price.** For each thread and size, while it has a table: that, and the unused nodes of up to 2,048 runs of
//! 32, with the slabs that they are in. See [`Runs::end`].

use crate::blocks::{Blocks, Place, Set};
use crate::slab::{Size, Slab};
use ganger_sync::hint;
use std::alloc::Layout;
use std::cell::Cell;
use std::ptr::{self, NonNull};

/// Places of neighbours that a run is taken from.
const RUN: u32 = 32;

/// With fewer blocks it is not worth the while.
const LEAST: u32 = 8;

/// Runs in a table: a power of two.
const RUNS: usize = 2_048;

/// What a table is in memory.
pub const TABLE: Layout = Layout::new::<Table>();

/// After how many sends in turn it is decided whether a queue gets a run; sooner when it has used one up.
const SENDS: u16 = 8;

/// After how many sends to others, and none to the queue that a place serves, it serves another one.
const OTHERS: u16 = 64;

/// How often it takes a queue that was behind, and not the one of the time before, to have a table made.
const TURNS: u32 = 256;

/// By how much longer it takes each time that a table was of no use; and the longest.
const LONGER: u32 = 8;
const LONGEST: u32 = 1 << 20;

/// After how many decisions, on whether a queue gets a run, it is decided what the table is good for; and how many
/// runs there have to be for them at the least. So many sends to queues without a place count as a decision.
const DECISIONS: u32 = 1_024;
const USEFUL: u32 = DECISIONS / 4;
const PASSES: u32 = 32;

/// One thread's runs of one size. The thread alone uses them.
pub(crate) struct Runs {
    /// Null while there is none. Freed by [`end`](Self::end) alone.
    table: Cell<*mut Table>,
    /// With a table, the place that the last send had; null if its queue had none.
    last: Cell<*const Run>,
    /// The same, if the send before that was to another queue, and else null. What is sent to one queue in one go counts
    /// as one.
    counted: Cell<*const Run>,
    /// Without a table, the queue that was behind the last time.
    last_behind: Cell<u64>,
    /// How often it was another queue that was behind, without a table.
    turns: Cell<u32>,
    /// How often it takes to have a table made.
    needed: Cell<u32>,
    /// Since the last look back at what the table is good for: sends to queues that it had no place for, decisions
    /// on the others, and runs.
    passes: Cell<u32>,
    decisions: Cell<u32>,
    started: Cell<u32>,
}

type Table = [Run; RUNS];

const _: () = assert!(size_of::<Run>() == align_of::<Run>());

/// One place of the table: half a line of the cache, so that none lies in two.
#[repr(align(32))]
struct Run {
    blocks: Place,
    /// The queue that it serves.
    key: Cell<u64>,
    /// Sends to it in turn since the last decision.
    sends: Cell<u16>,
    /// How often it was behind meanwhile.
    behind: Cell<u16>,
    /// Sends to others since the last one to it.
    others: Cell<u16>,
    /// Whether the last decision was for a run.
    has_had_one: Cell<bool>,
}

impl Runs {
    pub(crate) const fn new() -> Self {
        Self {
            table: Cell::new(ptr::null_mut()),
            last: Cell::new(ptr::null()),
            counted: Cell::new(ptr::null()),
            last_behind: Cell::new(0),
            turns: Cell::new(0),
            needed: Cell::new(TURNS),
            passes: Cell::new(0),
            decisions: Cell::new(0),
            started: Cell::new(0),
        }
    }

    /// Whether there are any.
    #[inline]
    pub(crate) fn is_some(&self) -> bool {
        !self.table.get().is_null()
    }

    /// The place for queues of that key.
    #[inline]
    fn of(&self, key: u64) -> Option<&Run> {
        // SAFETY: null, or made by `begin` and not freed: only `end` does that, and nobody calls it while using
        // what this returns, because nothing that is called meanwhile is foreign code.
        let table = unsafe { self.table.get().as_ref() }?;
        Some(&table[place_of(key)])
    }

    /// A block of the run of the queue with that key, which is the caller's from now on; none if there is nothing in it,
    /// or the queue has no place: then [`take_anew`](Self::take_anew) says what to do. O(1).
    #[inline]
    pub(crate) fn take(&self, key: u64, size: Size) -> Option<NonNull<u8>> {
        let run = self.of(key)?;
        if run.key.get() != key {
            return None;
        }
        run.others.set(0);
        if ptr::eq(self.last.replace(run), run) {
            self.counted.set(ptr::null());
        } else {
            self.counted.set(run);
            // A few between two decisions, as a rule; and one wrong decision does no harm.
            run.sends.set(run.sends.get().wrapping_add(1));
        }
        run.take(size)
    }

    /// What is to be done when [`take`](Self::take) has found nothing: a block of another run for the queue, or none
    /// if it is to have one from the open set. To be followed by a [`look_back`](Self::look_back).
    pub(crate) fn take_anew(&self, key: u64, open: &Blocks, size: Size) -> Option<NonNull<u8>> {
        let run = self.of(key)?;
        if run.key.get() == key {
            return self.decide(run, open, size);
        }
        self.passes.set(self.passes.get() + 1);
        run.pass(key);
        // It may be this one's from now on.
        let place = if run.key.get() == key {
            ptr::from_ref(run)
        } else {
            ptr::null()
        };
        self.last.set(place);
        self.counted.set(place);
        None
    }

    fn decide(&self, run: &Run, open: &Blocks, size: Size) -> Option<NonNull<u8>> {
        let (sends, behind) = (run.sends.get(), run.behind.get());
        if sends < SENDS && !run.has_had_one.get() {
            return None;
        }
        let gets_one = sends > 0 && behind >= sends - sends / SENDS;
        if gets_one {
            // If there are too few at the moment, the next send asks again.
            let _empty = run.blocks.replace(open.take_run(RUN, LEAST)?);
        }
        run.forget();
        run.has_had_one.set(gets_one);
        self.decisions.set(self.decisions.get() + 1);
        self.started.set(self.started.get() + u32::from(gets_one));
        run.take(size)
    }

    /// Notes that the consumer of the queue with that key, to which the last send was, had not been waiting for the item
    /// that was pushed. Says whether to [`begin`](Self::begin). O(1).
    #[inline]
    pub(crate) fn note_behind(&self, key: u64) -> bool {
        // SAFETY: null, or a place of the table, which has not been freed: `end` sets it to null.
        if let Some(run) = unsafe { self.counted.get().as_ref() } {
            if run.key.get() == key {
                run.behind.set(run.behind.get().wrapping_add(1));
            }
            return false;
        }
        !self.is_some() && self.last_behind.replace(key) != key && self.note_turn()
    }

    #[cold]
    fn note_turn(&self) -> bool {
        self.turns.set(self.turns.get() + 1);
        self.turns.get() >= self.needed.get()
    }

    /// Makes a table. The caller sees to it that it is given up when the thread ends.
    #[cold]
    pub(crate) fn begin(&self) {
        self.turns.set(0);
        let runs: Box<[Run]> = std::iter::repeat_with(Run::new).take(RUNS).collect();
        // The allocator is foreign code, which may use queues itself.
        if !self.is_some()
            && let Ok(table) = Box::<Table>::try_from(runs)
        {
            self.table.set(Box::into_raw(table));
        }
    }

    /// Looks back now and then, and says whether to [`end`](Self::end) a table because it was of no use. O(1).
    #[inline]
    pub(crate) fn look_back(&self) -> bool {
        if self.decisions.get() + self.passes.get() / PASSES < DECISIONS {
            return false;
        }
        let is_useless = self.started.get() < USEFUL;
        self.forget();
        self.needed.set(if is_useless {
            LONGEST.min(self.needed.get() * LONGER)
        } else {
            TURNS
        });
        is_useless
    }

    fn forget(&self) {
        self.passes.set(0);
        self.decisions.set(0);
        self.started.set(0);
    }

    /// Gives the table up, if there is one; slabs that are complete then, to `keep`.
    #[cold]
    pub(crate) fn end(&self, size: Size, keep: fn(NonNull<Slab>)) {
        let table = self.table.replace(ptr::null_mut());
        if table.is_null() {
            return;
        }
        self.last.set(ptr::null());
        self.counted.set(ptr::null());
        self.forget();
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

impl Run {
    const fn new() -> Self {
        Self {
            blocks: Place::new(),
            key: Cell::new(0),
            sends: Cell::new(0),
            behind: Cell::new(0),
            // It serves whoever comes first.
            others: Cell::new(OTHERS),
            has_had_one: Cell::new(false),
        }
    }

    /// A block of the run, if there is one. Has the next one fetched, too.
    #[inline]
    fn take(&self, size: Size) -> Option<NonNull<u8>> {
        let block = self.blocks.take(size)?;
        // Where it is no block, nothing is lost.
        hint::prefetch_for_write(block.as_ptr().wrapping_add(size.bytes()));
        Some(block)
    }

    /// Somebody sends to another queue than the one that it serves.
    fn pass(&self, key: u64) {
        self.others.set(self.others.get() + 1);
        if self.others.get() >= OTHERS {
            self.key.set(key);
            self.has_had_one.set(false);
            self.forget();
        }
    }

    fn forget(&self) {
        self.others.set(0);
        self.sends.set(0);
        self.behind.set(0);
    }
}

/// Where in the table.
#[inline]
fn place_of(key: u64) -> usize {
    /// Odd, and near the golden ratio (Knuth, "The Art of Computer Programming", volume 3, section 6.4): keys
    /// that are addresses at the same distance from each other come to lie apart.
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let hash = key.wrapping_mul(FACTOR) >> (u64::BITS - RUNS.ilog2());
    // It fits everywhere.
    usize::try_from(hash).unwrap_or(0) % RUNS
}

#[cfg(all(test, not(loom)))]
mod tests;
