//! How a thread uses its blocks. Other tests use the exchange at the same time, so the program
//! `tests/memory` of `ganger-mpsc` tests exact numbers of slabs.

use super::*;
use crate::counting::{Tally, count};
use crate::{Returns, allocate, allocate_behind, values};
use proptest::collection::vec;
use proptest::prelude::*;
use std::alloc::Layout;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::mpsc;
use std::thread;

fn sizes() -> impl Iterator<Item = Size> {
    (0..SIZES).map(Size)
}

/// Gives up all that this thread keeps, and returns how many slabs this completed.
fn release_all() -> usize {
    thread_local! {
        /// Has no destructor, so it remains usable in the destructors of other values.
        static COMPLETE: Cell<usize> = const { Cell::new(0) };
    }
    COMPLETE.set(0);
    release(|slab| {
        COMPLETE.set(COMPLETE.get() + 1);
        share(slab);
    });
    COMPLETE.get()
}

/// A block in use, filled with a mark, by which its owner detects another user.
struct InUse {
    block: NonNull<u8>,
    size: Size,
    mark: u8,
}

// SAFETY: the value owns the block.
unsafe impl Send for InUse {}

impl InUse {
    fn take(size: Size, mark: u8) -> Self {
        Self::new(take(Pool::Nodes, size), size, mark)
    }

    fn new(block: NonNull<u8>, size: Size, mark: u8) -> Self {
        assert!(block.addr().get().is_multiple_of(16));
        let place = (block.addr().get() - Slab::of(block).addr().get()) / size.bytes();
        assert!((1..=size.blocks()).contains(&place));
        // SAFETY: the block is this thread's.
        unsafe { block.write_bytes(mark, size.bytes()) };
        Self { block, size, mark }
    }

    /// Checks the mark and returns the set of this block, now unused.
    fn end(self) -> BlockSet {
        let Self { block, size, mark } = self;
        for byte in 0..size.bytes() {
            // SAFETY: a byte of the block, which has been written.
            assert_eq!(unsafe { block.add(byte).read() }, mark, "used by another");
        }
        BlockSet::of(block, size)
    }

    fn give(self) {
        let size = self.size;
        // SAFETY: the block was taken, and nothing uses it any longer.
        unsafe { give(Pool::Nodes, self.end(), size) };
    }
}

/// Runs a test in a new thread, which keeps no blocks yet.
fn fresh(test: impl FnOnce() + Send + 'static) {
    thread::spawn(test).join().unwrap();
}

#[test]
fn a_thread_takes_what_it_gave_and_asks_for_nothing() {
    fresh(|| {
        for size in sizes() {
            let take_many = |blocks| Vec::from_iter((0..blocks).map(|_| InUse::take(size, 1)));
            let places = |blocks: &[InUse]| BTreeSet::from_iter(blocks.iter().map(|it| it.block));
            let group = size.blocks().min(63);
            let many = group * 2 / 3;
            let first = take_many(many);
            let given = places(&first);
            first.into_iter().for_each(InUse::give);
            // The rest of the first group comes before the given blocks.
            let others = take_many(group - many);
            assert!(places(&others).is_disjoint(&given));
            let mut again = Vec::with_capacity(many);
            let takes = (0..many).map(|_| InUse::take(size, 2));
            let ((), tally) = count(|| again.extend(takes));
            assert_eq!(tally, Tally::NOTHING);
            assert_eq!(places(&again), given);
            others.into_iter().chain(again).for_each(InUse::give);
        }
    });
}

#[test]
fn giving_asks_for_nothing() {
    fresh(|| {
        for size in sizes() {
            let blocks: Vec<_> = (0..5 * size.blocks())
                .map(|_| InUse::take(size, 1))
                .collect();
            let ((), tally) = count(|| blocks.into_iter().for_each(InUse::give));
            assert_eq!(tally.allocated, 0);
        }
    });
}

#[derive(Debug, Clone)]
enum Op {
    Take(usize, usize),
    Give(usize, usize),
    Release,
    Clear,
}

fn op() -> impl Strategy<Value = Op> {
    let blocks = || prop_oneof![1..4_usize, 60..68_usize, 0..200_usize];
    prop_oneof![
        8 => (0..SIZES, blocks()).prop_map(|(size, blocks)| Op::Take(size, blocks)),
        8 => (0..1_000_usize, blocks()).prop_map(|(from, blocks)| Op::Give(from, blocks)),
        1 => Just(Op::Release),
        1 => Just(Op::Clear),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Blocks of different sizes use the same slabs one after the other.
    #[test]
    fn a_block_in_use_has_one_owner(ops in vec(op(), 0..60)) {
        let mut in_use: Vec<InUse> = Vec::new();
        for (op, mark) in ops.into_iter().zip(1..) {
            match op {
                Op::Take(size, blocks) => {
                    in_use.extend((0..blocks).map(|_| InUse::take(Size(size), mark)));
                }
                Op::Give(from, blocks) => {
                    for _ in 0..blocks.min(in_use.len()) {
                        in_use.swap_remove(from % in_use.len()).give();
                    }
                }
                Op::Release => {
                    release_all();
                }
                Op::Clear => clear(),
            }
        }
        in_use.into_iter().for_each(InUse::give);
    }
}

/// Gives blocks that another thread has taken, in each thread.
#[test]
fn blocks_go_from_thread_to_thread() {
    const THREADS: usize = 3;
    const ROUNDS: usize = 300;
    let (senders, receivers): (Vec<_>, Vec<_>) =
        (0..THREADS).map(|_| mpsc::channel::<Vec<InUse>>()).unzip();
    thread::scope(|scope| {
        for (thread, receiver) in receivers.into_iter().enumerate() {
            let next = senders[(thread + 1) % THREADS].clone();
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let size = Size(round / 10 % SIZES);
                    let mark = u8::try_from(thread + THREADS * (round % 50)).unwrap();
                    let take_many = |blocks| (0..blocks).map(|_| InUse::take(size, mark));
                    next.send(take_many(round * 7 % 150).collect()).unwrap();
                    let own: Vec<_> = take_many(round * 11 % 40).collect();
                    let others = receiver.recv().unwrap();
                    others.into_iter().for_each(InUse::give);
                    own.into_iter().for_each(InUse::give);
                }
            });
        }
    });
}

/// Checks that the other blocks of a slab are back at once, while a block is in use.
#[test]
fn a_block_for_a_thread_that_keeps_nothing() {
    for size in sizes() {
        let block = take_alone(size);
        let slab = Slab::of(block);
        assert_eq!(block.addr().get() - slab.addr().get(), size.bytes());
        // SAFETY: the block was taken.
        let complete = unsafe { BlockSet::of(block, size).give_back(size) };
        assert_eq!(complete, Some(slab));
        free(slab);
    }
}

/// Adds to ten lists in turn, `rounds` times, and frees all the memory.
fn in_turn(rounds: usize) {
    let mut all: Vec<NonNull<[u64; 7]>> = Vec::with_capacity(10 * rounds);
    for place in 0..10 * rounds {
        let newest = || place.checked_sub(10).map_or(0, |it| all[it].addr().get());
        let memory = allocate_behind(1 + place % 10, newest);
        all.push(memory);
    }
    for memory in all {
        // SAFETY: the memory came from `allocate_behind`, and nothing uses it.
        unsafe { crate::free(memory) };
    }
}

#[test]
fn what_is_set_aside_is_given_up_before_a_wait() {
    fresh(|| {
        in_turn(1);
        release_all();
        let ((), without) = count(end_runs);
        assert_eq!(without, Tally::NOTHING);
        in_turn(4);
        let ((), ended) = count(end_runs);
        assert!(ended.freed >= 1, "the table is still there");
        in_turn(30);
        end_runs();
        let ((), again) = count(end_runs);
        assert_eq!(again, Tally::NOTHING);
    });
}

/// Uses the cache in the destructor of a thread-local value. Sends whether the thread may keep
/// blocks, how many slabs it kept, and how often the allocator was called to free them.
struct Late(mpsc::Sender<(bool, usize, usize)>);

impl Drop for Late {
    fn drop(&mut self) {
        let is_alive = is_alive();
        for size in sizes() {
            let blocks: Vec<_> = (0..3).map(|_| InUse::take(size, 1)).collect();
            let slabs: BTreeSet<_> = blocks.iter().map(|it| Slab::of(it.block)).collect();
            assert_eq!(slabs.len(), if is_alive { 1 } else { 3 });
            blocks.into_iter().for_each(InUse::give);
        }
        let mut returns = Returns::new();
        for memory in Vec::from_iter((0..200).map(|_| allocate::<u64>())) {
            // SAFETY: the memory came from `allocate`, and nothing uses it.
            unsafe { returns.add(memory) };
        }
        drop(returns);
        in_turn(3);
        let layout = Layout::new::<u64>();
        let memory = values::allocate(layout).unwrap();
        // SAFETY: the memory came from `allocate` with this layout, and nothing uses it.
        unsafe { values::free(memory, layout) };
        let (kept, tally) = count(release_all);
        self.0.send((is_alive, kept, tally.freed)).unwrap();
    }
}

thread_local! {
    static EARLIER: Cell<Option<Late>> = const { Cell::new(None) };
    static LATER: Cell<Option<Late>> = const { Cell::new(None) };
}

/// Takes blocks in two destructors: on most platforms, whatever their order, one of the two runs
/// after the thread has given up its blocks. Exceptions are platforms that order destructors by the
/// first use of their keys in any thread.
#[test]
fn a_thread_that_has_given_up_its_blocks_keeps_no_more() {
    let (sender, outcomes) = mpsc::channel();
    fresh(move || {
        EARLIER.set(Some(Late(sender.clone())));
        InUse::take(Size(0), 1).give();
        LATER.set(Some(Late(sender)));
    });
    let outcomes: Vec<_> = outcomes.iter().collect();
    assert_eq!(outcomes.len(), 2, "a destructor has not run");
    let has_own_order = cfg!(not(all(windows, target_env = "gnu")));
    assert!(
        !has_own_order || outcomes.contains(&(false, 0, 0)),
        "{outcomes:?}"
    );
    for (is_alive, kept, freed) in outcomes {
        // A table of runs would be freed.
        assert!(if is_alive {
            kept >= SIZES
        } else {
            (kept, freed) == (0, 0)
        });
    }
}
