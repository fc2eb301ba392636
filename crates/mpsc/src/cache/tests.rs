//! What a thread does with its blocks. Other tests use the exchange at the same time: what is exact
//! about it is tested where nobody else does, in `tests/memory`.

#[path = "../../tests/memory/counting.rs"]
mod counting;

use super::*;
use crate::channel;
use counting::{Tally, count};
use proptest::collection::vec;
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::mpsc;
use std::thread;

fn sizes() -> impl Iterator<Item = Size> {
    (0..SIZES).map(Size)
}

/// Gives up all that this thread keeps, and says how many slabs that made complete.
fn release_all() -> usize {
    thread_local! {
        /// Without a destructor, so that it is there in those of others.
        static COMPLETE: Cell<usize> = const { Cell::new(0) };
    }
    COMPLETE.set(0);
    release(|slab| {
        COMPLETE.set(COMPLETE.get() + 1);
        share(slab);
    });
    COMPLETE.get()
}

/// A block in use, all of it, by somebody who can tell if anybody else uses it.
struct InUse {
    block: NonNull<u8>,
    size: Size,
    mark: u8,
}

// SAFETY: whoever has it owns the block.
unsafe impl Send for InUse {}

impl InUse {
    fn take(size: Size, mark: u8) -> Self {
        Self::new(take(size), size, mark)
    }

    fn take_near(size: Size, key: u64, mark: u8) -> Self {
        Self::new(take_near(size, key), size, mark)
    }

    fn new(block: NonNull<u8>, size: Size, mark: u8) -> Self {
        assert!(block.addr().get().is_multiple_of(16));
        let place = (block.addr().get() - Slab::of(block).addr().get()) / size.bytes();
        assert!((1..=size.blocks()).contains(&place));
        // SAFETY: the block is ours.
        unsafe { block.write_bytes(mark, size.bytes()) };
        Self { block, size, mark }
    }

    /// The set of this block, which is used no longer.
    fn end(self) -> Set {
        let Self { block, size, mark } = self;
        for byte in 0..size.bytes() {
            // SAFETY: a byte of the block, which was written.
            assert_eq!(unsafe { block.add(byte).read() }, mark, "used by another");
        }
        Set::of(block, size)
    }

    fn give(self) {
        let size = self.size;
        // SAFETY: it was taken, and is used no longer.
        unsafe { give(self.end(), size) };
    }
}

/// Runs a test in a thread of its own, which keeps nothing yet.
fn fresh(test: impl FnOnce() + Send + 'static) {
    thread::spawn(test).join().unwrap();
}

#[test]
fn a_thread_takes_what_it_gave_and_asks_nobody() {
    fresh(|| {
        for size in sizes() {
            let take_many = |blocks| Vec::from_iter((0..blocks).map(|_| InUse::take(size, 1)));
            let places = |blocks: &[InUse]| BTreeSet::from_iter(blocks.iter().map(|it| it.block));
            let group = size.blocks().min(63);
            let many = group * 2 / 3;
            let first = take_many(many);
            let given = places(&first);
            first.into_iter().for_each(InUse::give);
            // What is left of the first group comes before what was given.
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
    /// To so many queues in turn, which are behind or not.
    Send(usize, u64, bool),
    Give(usize, usize),
    EndRuns,
    Release,
    Clear,
}

fn op() -> impl Strategy<Value = Op> {
    let blocks = || prop_oneof![1..4_usize, 60..68_usize, 0..200_usize];
    prop_oneof![
        8 => (0..SIZES, blocks()).prop_map(|(size, blocks)| Op::Take(size, blocks)),
        8 => (0..1_000_usize, blocks()).prop_map(|(from, blocks)| Op::Give(from, blocks)),
        8 => (0..SIZES, 1..60_u64, any::<bool>()).prop_map(|(size, queues, behind)| Op::Send(size, queues, behind)),
        1 => Just(Op::EndRuns),
        1 => Just(Op::Release),
        1 => Just(Op::Clear),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Of different sizes, too, which use the same slabs by and by.
    #[test]
    fn blocks_in_use_are_used_by_nobody_else(ops in vec(op(), 0..60)) {
        let mut in_use: Vec<InUse> = Vec::new();
        for (op, mark) in ops.into_iter().zip(1..) {
            match op {
                Op::Take(size, blocks) => {
                    in_use.extend((0..blocks).map(|_| InUse::take(Size(size), mark)));
                }
                Op::Send(size, queues, behind) => {
                    let size = Size(size);
                    for key in (0..queues).cycle().take(400) {
                        in_use.push(InUse::take_near(size, key, mark));
                        if behind {
                            note_behind(size, key);
                        }
                    }
                }
                Op::Give(from, blocks) => {
                    for _ in 0..blocks.min(in_use.len()) {
                        in_use.swap_remove(from % in_use.len()).give();
                    }
                }
                Op::EndRuns => end_runs(),
                Op::Release => {
                    release_all();
                }
                Op::Clear => clear(),
            }
        }
        in_use.into_iter().for_each(InUse::give);
    }
}

/// What threads take, others give.
#[test]
fn blocks_go_from_hand_to_hand() {
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

/// It has a slab for one block, and is done with all the others.
#[test]
fn a_block_for_a_thread_that_keeps_nothing() {
    for size in sizes() {
        let block = take_alone(size);
        let slab = Slab::of(block);
        assert_eq!(block.addr().get() - slab.addr().get(), size.bytes());
        // SAFETY: it was taken.
        let complete = unsafe { Set::of(block, size).give_back(size) };
        assert_eq!(complete, Some(slab));
        free(slab);
    }
}

/// What is done in the destructor of a thread-local value, and where goes whether the thread may keep
/// blocks, and how many slabs it kept.
struct Late(mpsc::Sender<(bool, usize)>);

impl Drop for Late {
    fn drop(&mut self) {
        let is_alive = is_alive();
        for size in sizes() {
            let blocks: Vec<_> = (0..3).map(|_| InUse::take(size, 1)).collect();
            let slabs: BTreeSet<_> = blocks.iter().map(|it| Slab::of(it.block)).collect();
            assert_eq!(slabs.len(), if is_alive { 1 } else { 3 });
            blocks.into_iter().for_each(InUse::give);
        }
        for key in (0..100).cycle().take(2_000) {
            InUse::take_near(Size(0), key, 1).give();
            note_behind(Size(0), key);
        }
        assert_eq!(has_runs(Size(0)), is_alive);
        let (sender, receiver) = channel();
        (0..200).for_each(|item| sender.send(item).unwrap());
        assert!(receiver.try_iter().eq(0..200));
        self.0.send((is_alive, release_all())).unwrap();
    }
}

thread_local! {
    static EARLIER: Cell<Option<Late>> = const { Cell::new(None) };
    static LATER: Cell<Option<Late>> = const { Cell::new(None) };
}

/// One of the two destructors runs when the thread has given up its blocks, whichever order the
/// platform has; unless it goes by which of them any thread has used first.
#[test]
fn a_thread_that_has_given_up_its_blocks_keeps_no_more() {
    let (sender, outcomes) = mpsc::channel();
    fresh(move || {
        EARLIER.set(Some(Late(sender.clone())));
        InUse::take(Size(0), 1).give();
        LATER.set(Some(Late(sender)));
    });
    let outcomes: Vec<_> = outcomes.iter().collect();
    assert_eq!(outcomes.len(), 2, "no destructor ran");
    let has_own_order = cfg!(not(all(windows, target_env = "gnu")));
    assert!(
        !has_own_order || outcomes.contains(&(false, 0)),
        "{outcomes:?}"
    );
    for (is_alive, kept) in outcomes {
        assert!(if is_alive { kept >= SIZES } else { kept == 0 });
    }
}
