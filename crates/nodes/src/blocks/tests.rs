//! Tests of sets of blocks: each block has one owner at a time, and a slab is complete when all of
//! its blocks are back.
//!
//! The slabs are pieces of one allocation, so a test knows which of them share a place.

mod model;

use super::*;
use crate::slab::SIZES;
use std::alloc::{Layout, alloc, dealloc};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// The number of slabs of which a thread can keep a part: the open set's, the rest's, one for each
/// given set, and the spare.
const KEPT: usize = SETS + 3;

fn sizes() -> impl Iterator<Item = Size> {
    (0..SIZES).map(Size)
}

/// Slabs side by side. The sets of the first slab go to the first place, and so on.
struct Slabs {
    memory: NonNull<u8>,
    layout: Layout,
}

impl Slabs {
    fn new(slabs: usize) -> Self {
        let layout = Layout::from_size_align(slabs * SLAB, SETS * SLAB).unwrap();
        // SAFETY: the size is not zero.
        let memory = NonNull::new(unsafe { alloc(layout) }).unwrap();
        Self { memory, layout }
    }

    fn get(&self, number: usize) -> NonNull<Slab> {
        assert!(number < self.layout.size() / SLAB, "too few slabs");
        // SAFETY: within the allocation.
        unsafe { self.memory.add(number * SLAB) }.cast()
    }

    /// Opens the slab: all its blocks are the caller's.
    fn open(&self, number: usize) -> NonNull<Slab> {
        let slab = self.get(number);
        // SAFETY: the slab is large enough, and this test's alone.
        unsafe { Slab::open(slab) };
        slab
    }
}

impl Drop for Slabs {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.memory.as_ptr(), self.layout) };
    }
}

/// Returns the block at a place.
fn block(slab: NonNull<Slab>, place: usize, size: Size) -> NonNull<u8> {
    assert!((1..size.places()).contains(&place));
    // SAFETY: a place of the slab.
    unsafe { slab.cast::<u8>().add(place * size.bytes()) }
}

/// Returns the set of the first `blocks` blocks of the slab's first group.
fn set(slab: NonNull<Slab>, blocks: usize, size: Size) -> BlockSet {
    let mut set = BlockSet::EMPTY;
    for place in 1..=blocks {
        assert!(
            set.add(BlockSet::of(block(slab, place, size), size))
                .is_none()
        );
    }
    set
}

/// Gives up all that a thread keeps, and returns the slabs completed by this.
fn released(blocks: &LocalBlocks, size: Size) -> Vec<NonNull<Slab>> {
    thread_local! {
        static COMPLETE: RefCell<Vec<NonNull<Slab>>> = const { RefCell::new(Vec::new()) };
    }
    blocks.release(size, |slab| COMPLETE.with_borrow_mut(|all| all.push(slab)));
    COMPLETE.take()
}

/// Takes blocks until a refill needs another slab.
fn take_all(blocks: &LocalBlocks, size: Size) -> Vec<NonNull<u8>> {
    let mut all = Vec::new();
    while blocks.refill(size) {
        all.extend(std::iter::from_fn(|| blocks.take(size)).take(64));
        assert!(all.len() < 10 * SLAB, "more than there are");
    }
    all
}

#[test]
fn each_size_has_its_values() {
    let of = |bytes, align| Size::of(Layout::from_size_align(bytes, align).unwrap());
    for bytes in 1..=256 {
        for align in [1, 8, 16] {
            let size = of(bytes, align).unwrap();
            assert!(size.bytes().is_multiple_of(16));
            assert!((bytes..bytes + 16).contains(&size.bytes()));
        }
        assert!(of(bytes, 32).is_none());
    }
    assert!(of(257, 8).is_none());
    assert!(of(0, 1).is_none());
    for size in sizes() {
        // All bytes but the allocator's own. The first place is the count's.
        let used = (1 + size.blocks()) * size.bytes();
        let room = SLAB - 16;
        assert!(used <= room && room < used + size.bytes());
    }
}

#[test]
fn each_block_of_a_slab_is_handed_out_once_from_the_first_to_the_last() {
    let slabs = Slabs::new(1);
    for size in sizes() {
        let blocks = LocalBlocks::new();
        assert!(!blocks.refill(size));
        blocks.keep(slabs.get(0)).unwrap();
        let expected: Vec<_> = (1..size.places())
            .map(|place| block(slabs.get(0), place, size))
            .collect();
        assert_eq!(take_all(&blocks, size), expected);
        assert!(blocks.take(size).is_none());
        assert!(released(&blocks, size).is_empty());
    }
}

#[test]
fn a_block_s_set_says_where_it_is() {
    let slabs = Slabs::new(2);
    for size in sizes() {
        let slab = slabs.get(1);
        for place in 1..size.places() {
            let set = BlockSet::of(block(slab, place, size), size);
            let first = slab.addr().get() + (place - place % 64) * size.bytes();
            assert_eq!((set.first.addr(), set.bits), (first, 1 << (place % 64)));
            assert!(!set.is_empty());
        }
    }
}

/// Gives the blocks back one by one, from either end or from the middle on.
#[test]
fn a_slab_is_complete_with_its_last_block_whichever_that_is() {
    let slabs = Slabs::new(1);
    for size in sizes() {
        let places: Vec<_> = (1..size.places()).collect();
        let (low, high) = places.split_at(places.len() / 2);
        let orders = [
            places.clone(),
            places.iter().rev().copied().collect(),
            [high, low].concat(),
        ];
        for order in orders {
            let slab = slabs.open(0);
            let (last, others) = order.split_last().unwrap();
            // SAFETY: all blocks are this test's.
            let give =
                |place| unsafe { BlockSet::of(block(slab, place, size), size).give_back(size) };
            assert!(others.iter().all(|place| give(*place).is_none()));
            assert_eq!(give(*last), Some(slab));
        }
    }
}

#[test]
fn a_set_that_gets_another_group_s_blocks_gives_up_its_own() {
    let slabs = Slabs::new(1);
    let size = Size(0);
    let of = |place| BlockSet::of(block(slabs.get(0), place, size), size);
    let mut set = BlockSet::EMPTY;
    assert!(set.is_empty() && set.add(of(1)).is_none());
    assert!(set.add(of(63)).is_none());
    let first = set.add(of(64)).unwrap();
    assert_eq!((first.first, first.bits), (of(1).first, 1 << 1 | 1 << 63));
    assert_eq!((set.first, set.bits), (of(64).first, 1));
}

/// Returns the least number of blocks with which a set is opened again.
fn least(size: Size) -> usize {
    16.min(size.blocks() / 2)
}

#[test]
fn sets_of_a_few_slabs_have_places_of_their_own_and_the_next_has_the_first_s() {
    let slabs = Slabs::new(SETS + 1);
    for size in sizes() {
        let blocks = LocalBlocks::new();
        let sets: Vec<_> = (0..=SETS)
            .map(|number| set(slabs.open(number), least(size), size))
            .collect();
        for set in &sets[..SETS] {
            assert!(!blocks.give(*set));
            assert!(blocks.begin(*set).is_empty());
        }
        // All of them are still kept.
        assert!(sets[..SETS].iter().all(|set| blocks.give(*set)));
        assert!(!blocks.give(sets[SETS]));
        let displaced = blocks.begin(sets[SETS]);
        assert_eq!(
            (displaced.first, displaced.bits),
            (sets[0].first, sets[0].bits)
        );
        assert!(!blocks.give(sets[0]));
        assert!(sets[1..].iter().all(|set| blocks.give(*set)));
        assert_eq!(take_all(&blocks, size).len(), least(size) * SETS);
    }
}

#[test]
fn another_group_of_the_same_slab_takes_the_place() {
    let slabs = Slabs::new(1);
    let size = Size(0);
    let slab = slabs.open(0);
    let blocks = LocalBlocks::new();
    assert!(blocks.begin(set(slab, 63, size)).is_empty());
    let places: Vec<_> = (64..64 + 16)
        .map(|place| block(slab, place, size))
        .collect();
    let mut second = BlockSet::EMPTY;
    for block in &places {
        assert!(second.add(BlockSet::of(*block, size)).is_none());
    }
    assert!(!blocks.give(second));
    assert_eq!(blocks.begin(second).bits, u64::MAX - 1);
    // The thread has the second set's blocks once.
    assert_eq!(take_all(&blocks, size), places);
    assert!(!blocks.give(second));
}

/// Checks that a set of many blocks is opened before the next group, and a set of few is never
/// opened.
#[test]
fn what_is_taken_first_is_what_was_given_if_that_is_worth_it() {
    let slabs = Slabs::new(3);
    for size in sizes() {
        let (least, most) = (least(size), size.blocks().min(63));
        for (given, is_worth) in [(1, false), (least - 1, false), (least, true), (most, true)] {
            let blocks = LocalBlocks::new();
            let set = set(slabs.open(1), given, size);
            assert!(blocks.begin(set).is_empty());
            blocks.keep(slabs.get(0)).unwrap();
            let order: Vec<_> = take_all(&blocks, size).into_iter().map(Slab::of).collect();
            let first = if is_worth { given } else { 0 };
            assert_eq!(order.len(), first + size.blocks());
            let (given, others) = order.split_at(first);
            assert!(given.iter().all(|slab| *slab == slabs.get(1)));
            assert!(others.iter().all(|slab| *slab == slabs.get(0)));
            // The set is still kept, or it has been opened.
            assert_eq!(blocks.give(set), !is_worth);
        }
    }
}

#[test]
fn a_slab_is_gone_on_with_before_the_spare_is_opened() {
    let slabs = Slabs::new(3);
    let size = Size(0);
    let blocks = LocalBlocks::new();
    blocks.keep(slabs.get(0)).unwrap();
    assert!(blocks.refill(size) && blocks.take(size).is_some());
    blocks.keep(slabs.get(1)).unwrap();
    // The thread keeps the first spare slab, and refuses the next.
    assert_eq!(blocks.keep(slabs.get(2)), Err(slabs.get(2)));
    let all = take_all(&blocks, size);
    assert_eq!(all.len(), 2 * size.blocks() - 1);
    let (first, second) = all.split_at(size.blocks() - 1);
    assert!(first.iter().all(|block| Slab::of(*block) == slabs.get(0)));
    assert!(second.iter().all(|block| Slab::of(*block) == slabs.get(1)));
}

#[test]
fn there_is_nothing_to_refill_while_there_is_something_to_take() {
    let slabs = Slabs::new(2);
    let size = Size(7);
    let blocks = LocalBlocks::new();
    blocks.keep(slabs.get(0)).unwrap();
    assert!(blocks.refill(size));
    assert!(blocks.begin(set(slabs.open(1), 20, size)).is_empty());
    assert!((0..3).all(|_| blocks.refill(size)));
    assert_eq!(take_all(&blocks, size).len(), size.blocks() + 20);
}

/// Keeps a part of every kind, each of a different slab.
#[test]
fn a_thread_that_releases_forgets_no_part() {
    const SPARE: usize = 2 * SETS;
    let slabs = Slabs::new(SPARE + 1);
    for size in sizes().filter(|size| size.places() > 64) {
        let blocks = LocalBlocks::new();
        // The thread continues with a slab of several groups, and has opened a set of another slab.
        blocks.keep(slabs.get(0)).unwrap();
        assert!(blocks.refill(size));
        let held: Vec<_> = std::iter::from_fn(|| blocks.take(size)).collect();
        assert!(blocks.begin(set(slabs.open(1), 20, size)).is_empty());
        assert!(blocks.refill(size));
        let given = SETS..2 * SETS;
        for number in given.clone() {
            assert!(blocks.begin(set(slabs.open(number), 3, size)).is_empty());
        }
        blocks.keep(slabs.get(SPARE)).unwrap();

        // Another owner gives back all blocks except the thread's.
        for (number, blocks) in [(1, 20)]
            .into_iter()
            .chain(given.clone().map(|number| (number, 3)))
        {
            // SAFETY: the other blocks are this test's.
            let is_complete =
                unsafe { Slab::give_back(slabs.get(number), size.blocks() - blocks, size) };
            assert!(!is_complete);
        }
        for block in held {
            // SAFETY: the block was taken.
            let complete = unsafe { BlockSet::of(block, size).give_back(size) };
            assert_eq!(complete, None);
        }
        let complete = released(&blocks, size);
        let expected: BTreeSet<_> = [0, 1, SPARE]
            .into_iter()
            .chain(given)
            .map(|number| slabs.get(number))
            .collect();
        assert_eq!(complete.len(), KEPT);
        assert_eq!(BTreeSet::from_iter(complete), expected);
        // The thread keeps nothing, and can begin again.
        assert!(released(&blocks, size).is_empty());
        assert!(blocks.take(size).is_none() && !blocks.refill(size));
        blocks.keep(slabs.get(2)).unwrap();
        assert_eq!(take_all(&blocks, size).len(), size.blocks());
    }
}
