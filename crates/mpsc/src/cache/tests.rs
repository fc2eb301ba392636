//! The cache against its plain description: a set of blocks.
//!
//! One thread reaches all that it gave, as long as nobody else takes from the exchange: it asks the
//! allocator only when nothing is kept. So each test has a size of its own, and none clears all.

#[path = "../../tests/support/counting.rs"]
mod counting;

use super::*;
use crate::{Queue, channel};
use counting::{Tally, count};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::mem;
use std::sync::mpsc;
use std::thread;

/// What all magazines of a size can hold that one thread reaches: its own two and the exchange's.
const MOST: usize = (SLOTS + 1) * ROUNDS;

/// Blocks of one size, and where they are.
struct Model {
    size: Size,
    in_use: Vec<NonNull<u8>>,
    kept: BTreeSet<NonNull<u8>>,
}

impl Model {
    /// `number` is the test's alone.
    fn new(number: usize) -> Self {
        Self {
            size: Size(number),
            in_use: Vec::new(),
            kept: BTreeSet::new(),
        }
    }

    fn take(&mut self) {
        let (block, tally) = count(|| take(self.size));
        assert!(!self.in_use.contains(&block), "handed out twice");
        let was_kept = self.kept.remove(&block);
        if tally != Tally::NOTHING {
            assert!(self.kept.is_empty() && !was_kept, "{tally:?}");
            assert_eq!(tally.allocated, 1);
            assert_eq!(tally.bytes, self.size.layout().size().cast_signed());
        } else {
            assert!(was_kept, "a block from nowhere");
        }
        self.in_use.push(block);
    }

    fn take_many(&mut self, blocks: usize) {
        (0..blocks).for_each(|_| self.take());
    }

    /// Gives back one of those in use, if there is any.
    fn give(&mut self, which: usize) {
        let Some(which) = which.checked_rem(self.in_use.len()) else {
            return;
        };
        let block = self.in_use.swap_remove(which);
        // SAFETY: it was taken, and is used no longer.
        let ((), tally) = count(|| unsafe { give(block, self.size) });
        assert_eq!(tally, Tally::NOTHING);
        self.kept.insert(block);
    }

    fn give_many(&mut self, blocks: usize) {
        (0..blocks).for_each(|_| self.give(0));
    }

    /// Gives so many back in one list; fewer, if there is no room for more or no more are in use.
    fn give_list(&mut self, blocks: usize) {
        let room = room(self.size);
        assert!((1..=ROUNDS).contains(&room));
        let rest = self.in_use.len() - blocks.min(room).min(self.in_use.len());
        let blocks = self.in_use.split_off(rest);
        let list: Vec<_> = blocks.iter().map(|block| block.cast().as_ptr()).collect();
        let (Some(&first), Some(&last)) = (list.first(), list.last()) else {
            return;
        };
        for (block, next) in list.iter().zip(&list[1..]) {
            let next: *mut Block = *next;
            // SAFETY: a block that was taken, and is used no longer.
            unsafe { block.write(Block { next }) };
        }
        // SAFETY: as above; there is room, and all but the last are linked.
        let ((), tally) = count(|| unsafe { give_list(first, last, list.len(), self.size) });
        assert_eq!(tally, Tally::NOTHING);
        self.kept.extend(blocks);
    }

    /// Takes all that is kept: each of them comes, and nothing else. Then none is kept any longer,
    /// nor in use.
    fn settle(&mut self) {
        self.take_many(self.kept.len());
        assert!(self.kept.is_empty());
        for block in mem::take(&mut self.in_use) {
            // SAFETY: it came from the allocator with this layout, and is used no longer.
            unsafe { dealloc(block.as_ptr(), self.size.layout()) };
        }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.settle();
        }
    }
}

#[test]
fn each_size_has_its_values() {
    let of = |bytes, align| Size::of(Layout::from_size_align(bytes, align).unwrap());
    for bytes in 1..=SIZES * STEP {
        for align in [1, 8, STEP] {
            let layout = of(bytes, align).unwrap().layout();
            assert_eq!(layout.align(), STEP);
            assert!((bytes..bytes + STEP).contains(&layout.size()));
        }
        assert!(of(bytes, 2 * STEP).is_none());
    }
    assert!(of(SIZES * STEP + 1, 8).is_none());
    assert!(of(0, 1).is_none());
}

#[test]
fn at_the_borders_of_magazines() {
    let mut model = Model::new(15);
    for blocks in [
        1,
        ROUNDS - 1,
        ROUNDS,
        ROUNDS + 1,
        2 * ROUNDS - 1,
        2 * ROUNDS,
    ] {
        for more in [blocks, blocks + 1, 5 * ROUNDS] {
            model.take_many(more);
            model.give_many(blocks);
            // To and fro across the border, which must not cost a magazine each time.
            for _ in 0..3 {
                model.take_many(2);
                model.give_many(2);
            }
            model.give_many(more);
        }
        model.settle();
    }
}

#[test]
fn up_to_the_last_slot_of_the_exchange() {
    let mut model = Model::new(14);
    // Both of the thread's magazines are as full as they get, too.
    model.take_many(MOST + ROUNDS - 1);
    model.give_many(MOST + ROUNDS - 1);
    model.settle();
}

#[test]
fn what_nobody_has_room_for_is_freed() {
    let mut model = Model::new(13);
    let size = model.size;
    model.take_many(MOST + ROUNDS + 10);
    let blocks = mem::take(&mut model.in_use);
    let ((), tally) = count(|| {
        for block in &blocks {
            // SAFETY: it was taken, and is used no longer.
            unsafe { give(*block, size) };
        }
    });
    assert_eq!((tally.allocated, tally.freed), (0, ROUNDS));
    // Nobody knows which of them were kept, only how many.
    let (blocks, tally) = count(|| std::array::from_fn::<_, { MOST + 10 }, _>(|_| take(size)));
    assert_eq!(tally, Tally::NOTHING);
    let distinct: BTreeSet<_> = blocks.iter().collect();
    assert_eq!(distinct.len(), blocks.len());
    model.in_use.extend(blocks);
}

#[test]
fn a_list_of_every_length_into_every_room() {
    let mut model = Model::new(12);
    for kept in 0..2 * ROUNDS {
        for list in 1..=ROUNDS - kept % ROUNDS {
            model.take_many(kept + list);
            model.give_many(kept);
            assert_eq!(room(model.size), ROUNDS - kept % ROUNDS);
            model.give_list(list);
            assert!(model.in_use.is_empty());
            assert_eq!(room(model.size), ROUNDS - (kept + list) % ROUNDS);
            model.settle();
            assert_eq!(room(model.size), ROUNDS);
        }
    }
}

#[derive(Debug, Clone)]
enum Op {
    Take(usize),
    Give(usize),
    GiveList(usize),
}

fn op() -> impl Strategy<Value = Op> {
    let blocks = || prop_oneof![1..4_usize, ROUNDS - 2..ROUNDS + 2, 0..3 * ROUNDS];
    prop_oneof![
        blocks().prop_map(Op::Take),
        blocks().prop_map(Op::Give),
        blocks().prop_map(Op::GiveList),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_block_is_lost_or_handed_out_twice(ops in vec(op(), 0..60), seed in 0..1_000_usize) {
        let mut model = Model::new(11);
        for op in ops {
            match op {
                // The exchange has room for all.
                Op::Take(blocks) if model.in_use.len() + blocks > MOST => {}
                Op::Take(blocks) => model.take_many(blocks),
                Op::Give(blocks) => (0..blocks).for_each(|block| model.give(seed * block)),
                Op::GiveList(blocks) => model.give_list(blocks),
            }
        }
    }
}

/// What is done in the destructor of a thread-local value, and where its outcome goes.
struct Late(mpsc::Sender<(bool, Tally)>);

impl Drop for Late {
    fn drop(&mut self) {
        const ITEMS: usize = 200;
        let is_gone = LOCAL.try_with(|_| ()).is_err();
        let ((), tally) = count(|| {
            let (sender, receiver) = channel();
            (0..ITEMS).for_each(|item| sender.send(item).unwrap());
            assert!(receiver.try_iter().eq(0..ITEMS));
            let queue = Queue::new();
            let _first = queue.push(0).unwrap();
            let _queued = queue.push_all(1..ITEMS).unwrap();
            assert!(queue.drain().into_iter().eq(0..ITEMS));
        });
        self.0.send((is_gone, tally)).unwrap();
    }
}

thread_local! {
    static EARLIER: Cell<Option<Late>> = const { Cell::new(None) };
    static LATER: Cell<Option<Late>> = const { Cell::new(None) };
}

/// One of the two destructors runs when the thread's magazines are gone, whichever order the
/// platform has.
#[test]
fn a_thread_s_destructors_may_send_and_receive() {
    let (sender, outcomes) = mpsc::channel();
    let thread = thread::spawn(move || {
        EARLIER.set(Some(Late(sender.clone())));
        drop(Late(sender.clone()));
        LATER.set(Some(Late(sender)));
    });
    thread.join().unwrap();
    let outcomes: Vec<_> = outcomes.iter().collect();
    let [(at_once, _), ends @ ..] = &outcomes[..] else {
        panic!("no destructor ran");
    };
    assert!(!at_once);
    assert_eq!(ends.len(), 2);
    let without = ends.iter().filter(|(is_gone, _)| *is_gone);
    for (_, tally) in without.clone() {
        assert_eq!(tally.bytes, 0, "{tally:?}");
    }
    assert_ne!(without.count(), 0);
}

#[test]
fn a_thread_that_gave_up_everything_has_room_for_as_much_again() {
    let mut model = Model::new(10);
    model.take_many(ROUNDS + 10);
    model.give_many(ROUNDS + 10);
    for magazine in LOCAL.with(|local| local.0[model.size.0].empty()) {
        // SAFETY: the pair has given it up.
        unsafe { free_all(magazine, model.size) };
    }
    model.kept.clear();
    assert_eq!(room(model.size), ROUNDS);
}
