//! No sequence of operations loses a block or hands it out twice.

use super::*;
use crate::runs::GROUPS;
use proptest::collection::vec;
use proptest::prelude::*;
use std::num::NonZeroUsize;

/// The threads of a model. The first may only take, and the last may only give.
const THREADS: usize = 3;

/// Enough slabs for all that threads keep, even if each block in use is in another slab.
const SLABS: usize = (IN_USE + THREADS * (KEPT + GROUPS)).next_multiple_of(GROUPS);

/// How the slabs lie in memory.
#[derive(Debug, Clone, Copy)]
enum Order {
    /// Side by side, so that their groups have different places in the table.
    SideBySide,
    /// As far apart as the table of groups is long, so that a few of them share a place.
    FarApart,
}

/// The number of lists.
const LISTS: usize = 100;

/// The highest number of blocks in use at a time.
const IN_USE: usize = 1_000;

/// Threads that take turns, their blocks, and all slabs.
struct Model {
    size: Size,
    threads: [LocalBlocks; THREADS],
    /// Taken, and not yet given.
    in_use: Vec<NonNull<u8>>,
    /// The address of each list's newest block, in use or not; 0 before the first.
    newest: [usize; LISTS],
    /// Slabs without an owner.
    left: Vec<NonNull<Slab>>,
    /// All slabs that have ever had an owner.
    begun: BTreeSet<NonNull<Slab>>,
    slabs: Slabs,
    order: Order,
}

impl Model {
    fn new(size: Size, order: Order) -> Self {
        Self {
            size,
            threads: std::array::from_fn(|_| LocalBlocks::new()),
            in_use: Vec::new(),
            newest: [0; LISTS],
            left: Vec::new(),
            begun: BTreeSet::new(),
            slabs: Slabs::new(SLABS),
            order,
        }
    }

    fn take(&mut self, thread: usize) {
        let taken = self.threads[thread].take(self.size);
        let block = taken.unwrap_or_else(|| self.take_anew(thread));
        self.begin_use(block);
    }

    /// Takes a block for each of the first `lists` lists.
    fn take_in_turn(&mut self, thread: usize, lists: usize) {
        for list in 0..lists {
            let is_in_turn = self.threads[thread].is_in_turn(list + 1);
            let newest = NonZeroUsize::new(self.newest[list]).filter(|_| is_in_turn);
            let behind = newest.map(|newest| {
                let newest = NonNull::without_provenance(newest);
                self.threads[thread].take_behind(newest, self.size)
            });
            match behind {
                Some(Ok(block)) => {
                    assert_eq!(block.addr().get(), self.newest[list] + self.size.bytes());
                    self.begin_use(block);
                }
                Some(Err(displaced)) => {
                    self.give_up(thread, displaced);
                    self.take(thread);
                }
                None => self.take(thread),
            }
            self.newest[list] = self.in_use.last().unwrap().addr().get();
        }
    }

    /// Takes a block when the thread's open set is empty.
    fn take_anew(&mut self, thread: usize) -> NonNull<u8> {
        if !self.threads[thread].refill(self.size) {
            let left = self.left.pop();
            let slab = left.unwrap_or_else(|| self.begin_slab());
            let blocks = &self.threads[thread];
            blocks.keep(slab).unwrap();
            assert!(blocks.refill(self.size));
        }
        self.give_up(thread, self.threads[thread].note_open());
        self.threads[thread].take(self.size).unwrap()
    }

    /// Returns a slab that has never had an owner.
    fn begin_slab(&mut self) -> NonNull<Slab> {
        const IN_A_PLACE: usize = SLABS / GROUPS;
        let number = self.begun.len();
        let slab = self.slabs.get(match self.order {
            Order::SideBySide => number,
            Order::FarApart => number % IN_A_PLACE * GROUPS + number / IN_A_PLACE,
        });
        assert!(self.begun.insert(slab), "begun twice");
        slab
    }

    fn begin_use(&mut self, block: NonNull<u8>) {
        let slab = Slab::of(block);
        assert!(self.begun.contains(&slab), "not of a slab");
        assert!(
            !self.left.contains(&slab),
            "a block of a slab without an owner"
        );
        let offset = block.addr().get() - slab.addr().get();
        assert!(offset.is_multiple_of(self.size.bytes()));
        assert!((1..=self.size.blocks()).contains(&(offset / self.size.bytes())));
        assert!(!self.in_use.contains(&block), "handed out twice");
        self.in_use.push(block);
    }

    /// Gives back up to `blocks` blocks, neighbours together.
    fn give(&mut self, thread: usize, from: usize, blocks: usize) {
        let mut set = BlockSet::EMPTY;
        for _ in 0..blocks.min(self.in_use.len()) {
            let block = self.in_use.remove(from % self.in_use.len());
            if let Some(others) = set.add(BlockSet::of(block, self.size)) {
                self.give_set(thread, others);
            }
        }
        if !set.is_empty() {
            self.give_set(thread, set);
        }
    }

    fn give_set(&mut self, thread: usize, set: BlockSet) {
        let blocks = &self.threads[thread];
        if blocks.give(set) {
            return;
        }
        let displaced = blocks.begin(set);
        self.give_up(thread, displaced);
    }

    /// Gives the thread's blocks back to their slab.
    fn give_up(&mut self, thread: usize, set: BlockSet) {
        // SAFETY: the blocks were this thread's.
        if let Some(slab) = unsafe { set.give_back(self.size) } {
            self.check_complete(slab);
            if let Err(slab) = self.threads[thread].keep(slab) {
                self.left.push(slab);
            }
        }
    }

    fn release(&mut self, thread: usize) {
        for slab in released(&self.threads[thread], self.size) {
            self.check_complete(slab);
            self.left.push(slab);
        }
        assert!(self.threads[thread].take(self.size).is_none());
    }

    fn check_complete(&self, slab: NonNull<Slab>) {
        assert!(!self.left.contains(&slab), "complete twice");
        let is_in_use = self.in_use.iter().any(|block| Slab::of(*block) == slab);
        assert!(!is_in_use, "complete too early");
    }

    /// Checks that threads keep no more slabs than they may.
    fn check_bound(&self) {
        let in_use: BTreeSet<_> = self.in_use.iter().map(|block| Slab::of(*block)).collect();
        let kept = self.begun.len() - self.left.len() - in_use.len();
        assert!(kept <= THREADS * (KEPT + GROUPS), "{kept} slabs are kept");
    }

    /// Gives everything back, and checks that no slab is lost.
    fn settle(mut self) {
        self.give(THREADS - 1, 0, usize::MAX);
        (0..THREADS).for_each(|thread| self.release(thread));
        let left = BTreeSet::from_iter(self.left.iter().copied());
        assert_eq!((self.left.len(), left), (self.begun.len(), self.begun));
    }
}

#[derive(Debug, Clone)]
enum Op {
    Take(usize, usize),
    Give(usize, usize, usize),
    TakeInTurn(usize, usize, usize),
    Release(usize),
}

fn op() -> impl Strategy<Value = Op> {
    let thread = || 0..THREADS;
    let blocks = || prop_oneof![1..4_usize, 14..18_usize, 60..68_usize, 0..300_usize];
    // The oldest, the newest, or any.
    let from = prop_oneof![Just(0), Just(usize::MAX), 0..1_000_usize];
    prop_oneof![
        8 => (thread(), blocks()).prop_map(|(thread, blocks)| Op::Take(thread, blocks)),
        8 => (thread(), from, blocks())
            .prop_map(|(thread, from, blocks)| Op::Give(thread, from, blocks)),
        4 => (thread(), 1..=LISTS, 0..20_usize)
            .prop_map(|(thread, lists, rounds)| Op::TakeInTurn(thread, lists, rounds)),
        1 => thread().prop_map(Op::Release),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_block_is_lost_or_handed_out_twice(
        size in 0..SIZES,
        ops in vec(op(), 0..60),
        (first, last) in (any::<bool>(), any::<bool>()),
        order in prop_oneof![Just(Order::SideBySide), Just(Order::FarApart)],
    ) {
        let mut model = Model::new(Size(size), order);
        for op in ops {
            match op {
                Op::Take(thread, blocks) => {
                    let room = IN_USE - model.in_use.len();
                    let thread = if last { thread % (THREADS - 1) } else { thread };
                    (0..blocks.min(room)).for_each(|_| model.take(thread));
                }
                Op::Give(thread, from, blocks) => {
                    let thread = if first { thread.max(1) } else { thread };
                    model.give(thread, from, blocks);
                }
                Op::TakeInTurn(thread, lists, rounds) => {
                    let room = (IN_USE - model.in_use.len()) / lists;
                    (0..rounds.min(room)).for_each(|_| model.take_in_turn(thread, lists));
                }
                Op::Release(thread) => model.release(thread),
            }
            model.check_bound();
        }
        model.settle();
    }
}

/// Moves slabs round between a thread that only takes and a thread that only gives.
#[test]
fn a_thread_that_gives_leaves_all_but_a_few_slabs_to_one_that_takes() {
    for size in sizes() {
        let mut model = Model::new(size, Order::SideBySide);
        for _ in 0..100 * size.blocks() {
            model.take(0);
            model.give(THREADS - 1, 0, 1);
        }
        let begun = model.begun.len();
        assert!(begun <= 1 + KEPT, "{begun} slabs");
        model.settle();
    }
}

/// Counts the blocks that lie directly behind their list's previous block.
fn neighbours(lists: &[Vec<NonNull<u8>>], size: Size) -> usize {
    let is_behind =
        |pair: &&[NonNull<u8>]| pair[1].addr().get() == pair[0].addr().get() + size.bytes();
    lists
        .iter()
        .flat_map(|list| list.windows(2))
        .filter(is_behind)
        .count()
}

/// Adds to lists in turn on one thread, and returns the new blocks by list.
fn in_turn(model: &mut Model, lists: usize, rounds: usize) -> Vec<Vec<NonNull<u8>>> {
    let mut all = vec![Vec::new(); lists];
    for _ in 0..rounds {
        let before = model.in_use.len();
        model.take_in_turn(0, lists);
        for (list, block) in all.iter_mut().zip(&model.in_use[before..]) {
            list.push(*block);
        }
    }
    all
}

#[test]
fn lists_that_are_served_in_turn_have_neighbours() {
    for size in sizes() {
        let mut model = Model::new(size, Order::SideBySide);
        // Groups opened before the first list are not in the table, and the last runs are not used
        // up.
        in_turn(&mut model, LISTS, 2);
        let lists = in_turn(&mut model, LISTS, 8);
        let most = LISTS * 7;
        let found = neighbours(&lists, size);
        assert!(
            found >= most / 2,
            "{found} of {most} of size {}",
            size.bytes()
        );
        model.settle();
    }
}

#[test]
fn one_list_goes_on_where_it_is() {
    for size in sizes() {
        let mut model = Model::new(size, Order::SideBySide);
        let lists = in_turn(&mut model, 1, 500);
        let groups = 500_usize.div_ceil(size.blocks().min(63));
        assert!(neighbours(&lists, size) >= 499 - 2 * groups);
        model.settle();
    }
}

/// Takes by a thread that has not noted the groups of another thread.
#[test]
fn a_list_of_another_thread_gets_no_run() {
    let size = Size(3);
    let mut model = Model::new(size, Order::SideBySide);
    in_turn(&mut model, 2, 10);
    let others = model.in_use.len();
    (0..10).for_each(|_| {
        model.take(1);
        let newest = *model.in_use.last().unwrap();
        let behind = model.threads[0].take_behind(newest, size);
        assert!(
            behind.is_err_and(BlockSet::is_empty),
            "a run after {others}"
        );
    });
    model.settle();
}

#[test]
fn what_is_set_aside_is_given_up_for_the_place_and_at_the_end() {
    let size = Size(3);
    let mut model = Model::new(size, Order::FarApart);
    for _ in 0..4 {
        for from in 0..2 {
            in_turn(&mut model, LISTS - from, 4);
        }
        model.give(1, 0, usize::MAX);
    }
    model.release(0);
    model.release(1);
    assert_eq!(model.left.len(), model.begun.len());
    model.settle();
}
