//! Whatever threads do with blocks, no block is lost or handed out twice.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

/// The threads of a model. The first may be a thread that only takes, the last one that only gives.
const THREADS: usize = 3;

/// Enough for all that threads keep, even if each block in use is in another slab.
const SLABS: usize = IN_USE + THREADS * KEPT;

/// How many blocks are in use at a time at most.
const IN_USE: usize = 1_000;

/// Threads that take turns, what they use, and where all the slabs are.
struct Model {
    size: Size,
    threads: [LocalBlocks; THREADS],
    /// Taken, and not yet given.
    in_use: Vec<NonNull<u8>>,
    /// Slabs without an owner.
    left: Vec<NonNull<Slab>>,
    /// How many slabs have ever had an owner. The next slab is the first that has not.
    begun: usize,
    slabs: Slabs,
}

impl Model {
    fn new(size: Size) -> Self {
        Self {
            size,
            threads: std::array::from_fn(|_| LocalBlocks::new()),
            in_use: Vec::new(),
            left: Vec::new(),
            begun: 0,
            slabs: Slabs::new(SLABS),
        }
    }

    fn take(&mut self, thread: usize) {
        let blocks = &self.threads[thread];
        let block = blocks.take(self.size).unwrap_or_else(|| {
            if !blocks.refill(self.size) {
                let slab = self.left.pop().unwrap_or_else(|| {
                    self.begun += 1;
                    self.slabs.get(self.begun - 1)
                });
                blocks.keep(slab).unwrap();
                assert!(blocks.refill(self.size));
            }
            blocks.take(self.size).unwrap()
        });
        let slab = Slab::of(block);
        let number = (slab.addr().get() - self.slabs.get(0).addr().get()) / SLAB;
        assert!(number < self.begun && slab == self.slabs.get(number));
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

    /// Gives that many blocks back, neighbours together.
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
        // SAFETY: the blocks were given to this thread.
        if let Some(slab) = unsafe { blocks.begin(set).give_back(self.size) } {
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

    /// Threads keep no more slabs than they may.
    fn check_bound(&self) {
        let in_use: BTreeSet<_> = self.in_use.iter().map(|block| Slab::of(*block)).collect();
        let kept = self.begun - self.left.len() - in_use.len();
        assert!(kept <= THREADS * KEPT, "{kept} slabs are kept");
    }

    /// Gives everything back: all slabs are there.
    fn settle(mut self) {
        self.give(THREADS - 1, 0, usize::MAX);
        (0..THREADS).for_each(|thread| self.release(thread));
        let left = BTreeSet::from_iter(self.left.iter().copied());
        assert_eq!((self.left.len(), left.len()), (self.begun, self.begun));
    }
}

#[derive(Debug, Clone)]
enum Op {
    Take(usize, usize),
    Give(usize, usize, usize),
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
    ) {
        let mut model = Model::new(Size(size));
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
                Op::Release(thread) => model.release(thread),
            }
            model.check_bound();
        }
        model.settle();
    }
}

/// Slabs go round between a thread that only takes and a thread that only gives.
#[test]
fn a_thread_that_gives_leaves_all_but_a_few_slabs_to_one_that_takes() {
    for size in sizes() {
        let mut model = Model::new(size);
        for _ in 0..100 * size.blocks() {
            model.take(0);
            model.give(THREADS - 1, 0, 1);
        }
        assert!(model.begun <= 1 + KEPT, "{} slabs", model.begun);
        model.settle();
    }
}
