use super::*;
use crate::Left;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

#[derive(Debug, Clone)]
enum Op {
    PushBack,
    PushFront,
    /// Removes an entry, claimed or not.
    Remove(prop::sample::Index),
    /// Another queue claims a waiter.
    ClaimElsewhere(prop::sample::Index),
    Leave(prop::sample::Index),
    Pop,
    /// Pops only an item divisible by this number.
    PopIf(u32),
    Claim,
    TakeAll,
}

fn op() -> impl Strategy<Value = Op> {
    let any = any::<prop::sample::Index>;
    prop_oneof![
        8 => Just(Op::PushBack),
        4 => Just(Op::PushFront),
        4 => any().prop_map(Op::Remove),
        2 => any().prop_map(Op::ClaimElsewhere),
        2 => any().prop_map(Op::Leave),
        4 => Just(Op::Pop),
        2 => (1..4_u32).prop_map(Op::PopIf),
        2 => Just(Op::Claim),
        1 => Just(Op::TakeAll),
    ]
}

/// The facts about an item in the queue's table.
struct Known {
    key: WaiterKey,
    waiter: Arc<Waiter>,
}

proptest! {
    /// Compares the queue with a `VecDeque` of items.
    #[test]
    fn it_is_a_line(ops in vec(op(), 0..200)) {
        let mut queue = WaitQueue::new();
        let mut line: VecDeque<u32> = VecDeque::new();
        let mut table: BTreeMap<u32, Known> = BTreeMap::new();
        let mut old: Vec<WaiterKey> = Vec::new();
        for (item, op) in (0..).zip(ops) {
            let pick = |at: prop::sample::Index, table: &BTreeMap<u32, Known>| {
                (!table.is_empty()).then(|| *at.get(&table.keys().collect::<Vec<_>>()).to_owned())
            };
            let can = |table: &BTreeMap<u32, Known>, item: u32| {
                let waiter = &table[&item].waiter;
                format!("{waiter:?}") == "Waiting"
            };
            match op {
                Op::PushBack | Op::PushFront => {
                    let waiter = Arc::new(Waiter::new());
                    let key = if matches!(op, Op::PushBack) {
                        line.push_back(item);
                        queue.push_back(Arc::clone(&waiter), item, item)
                    } else {
                        line.push_front(item);
                        queue.push_front(Arc::clone(&waiter), item, item)
                    };
                    table.insert(item, Known { key, waiter });
                }
                Op::Remove(at) => if let Some(item) = pick(at, &table) {
                    let known = table.remove(&item).unwrap();
                    prop_assert_eq!(queue.get(known.key).map(|it| it.item), Some(item));
                    prop_assert_eq!(queue.remove(known.key).map(|it| it.item), Some(item));
                    line.retain(|it| *it != item);
                    old.push(known.key);
                },
                Op::ClaimElsewhere(at) => if let Some(item) = pick(at, &table) {
                    let could = can(&table, item);
                    prop_assert_eq!(table[&item].waiter.claim(1_000), could);
                },
                Op::Leave(at) => if let Some(item) = pick(at, &table) {
                    let could = can(&table, item);
                    let claimed = table[&item].waiter.claimed();
                    let left = table[&item].waiter.leave();
                    prop_assert_eq!(left == Left::InTime, could || claimed.is_none());
                },
                Op::Pop | Op::PopIf(_) | Op::Claim => {
                    let divisor = if let Op::PopIf(it) = op { it } else { 1 };
                    let mut expected = None;
                    while let Some(&first) = line.front() {
                        if first % divisor != 0 {
                            break;
                        }
                        line.pop_front();
                        if can(&table, first) {
                            expected = Some(first);
                            break;
                        }
                    }
                    let is_right = |it: &u32| it.is_multiple_of(divisor);
                    let claimed = if matches!(op, Op::Claim) {
                        let key = queue.claim_if(is_right);
                        key.and_then(|it| queue.get(it)).map(|it| it.item)
                    } else {
                        let popped = queue.pop_if(is_right).map(|it| it.item);
                        if let Some(known) = popped.and_then(|it| table.remove(&it)) {
                            prop_assert_eq!(known.waiter.claimed(), popped);
                            old.push(known.key);
                        }
                        popped
                    };
                    prop_assert_eq!(claimed, expected);
                }
                Op::TakeAll => {
                    let mut expected = Vec::new();
                    for item in line.drain(..) {
                        if can(&table, item) {
                            expected.push(item);
                        }
                        old.push(table.remove(&item).unwrap().key);
                    }
                    let all: Vec<_> = queue.take_all(None).map(|it| it.item).collect();
                    prop_assert_eq!(all, expected);
                }
            }
            prop_assert_eq!((queue.len(), queue.is_empty()), (line.len(), line.is_empty()));
            prop_assert!(old.iter().all(|it| queue.get(*it).is_none()));
        }
        while let Some((_, known)) = table.pop_first() {
            prop_assert!(queue.remove(known.key).is_some());
        }
        prop_assert!(queue.is_empty() && queue.table.capacity() <= FEW);
        prop_assert!(old.iter().all(|it| queue.remove(*it).is_none()));
    }
}

/// Counts its wake-ups. If the flag is set, panics at the first.
struct Counts(AtomicUsize, bool);

impl Wake for Counts {
    fn wake(self: Arc<Self>) {
        // Ordering: Relaxed, because only this thread counts.
        let woken = self.0.fetch_add(1, Ordering::Relaxed);
        assert!(!self.1 || woken > 0, "on purpose");
    }
}

#[test]
fn all_are_told_also_when_a_wake_up_panics() {
    let mut queue = WaitQueue::new();
    let counts = Arc::new(Counts(AtomicUsize::new(0), true));
    let waker = Waker::from(Arc::clone(&counts));
    let waiters = [(); 100].map(|()| {
        let waiter = Arc::new(Waiter::new());
        queue.push_back(Arc::clone(&waiter), 3, ());
        assert!(waiter.poll(&waker).is_pending());
        waiter
    });
    let all = queue.take_all(None);
    assert!(queue.is_empty());
    assert!(catch_unwind(AssertUnwindSafe(|| drop(all))).is_err());
    // Ordering: Relaxed, because only this thread counts.
    assert_eq!(counts.0.load(Ordering::Relaxed), 100);
    assert!(waiters.iter().all(|it| it.claimed() == Some(3)));
}

#[test]
fn the_chooser_may_say_which_case_and_which_end() {
    let mut queue = WaitQueue::new();
    let waiters = [0; 5].map(|case| {
        let waiter = Arc::new(Waiter::new());
        queue.push_back(Arc::clone(&waiter), case, ());
        waiter
    });
    assert!(queue.pop_as(7).is_some() && queue.pop_last_as(0).is_some());
    drop(queue.take_all(Some(9)));
    let cases = waiters.each_ref().map(|it| it.claimed());
    assert_eq!(cases, [7, 9, 9, 9, 0].map(Some));
}

/// The table of an almost empty queue has at most this capacity.
const FEW: usize = 256;

#[test]
fn a_burst_leaves_no_memory() {
    let mut queue = WaitQueue::new();
    let waiter = Arc::new(Waiter::gone());
    let places = [(); 1_000].map(|()| queue.push_back(Arc::clone(&waiter), 0, ()));
    assert!(queue.pop().is_none(), "none of them waits");
    for key in places {
        assert!(queue.remove(key).is_some());
    }
    assert_eq!(Arc::strong_count(&waiter), 1);
    assert!(queue.table.capacity() <= FEW);
}

#[test]
fn a_queue_that_is_never_empty_keeps_no_memory_of_a_burst() {
    let mut queue = WaitQueue::new();
    let mut enter = || queue.push_back(Arc::new(Waiter::new()), 0, ());
    let places = [(); 1_000].map(|()| enter());
    for _ in places {
        let _stays = queue.push_back(Arc::new(Waiter::new()), 0, ());
        assert!(queue.pop().is_some());
    }
    for _ in 1..places.len() {
        assert!(queue.pop().is_some());
    }
    for _ in places {
        let _next = queue.push_back(Arc::new(Waiter::new()), 0, ());
        assert!(queue.pop().is_some());
    }
    assert_eq!(queue.len(), 1);
    assert!(queue.table.capacity() <= FEW, "{}", queue.table.capacity());
}

#[test]
fn a_place_that_was_left_is_not_that_of_the_next_entry() {
    let mut queue = WaitQueue::new();
    let left = queue.push_back(Arc::new(Waiter::new()), 0, "first");
    assert!(queue.remove(left).is_some());
    let next = queue.push_back(Arc::new(Waiter::new()), 0, "next");
    assert_eq!(next.index, left.index, "the slot is used again");
    assert!(queue.get(left).is_none() && queue.get_mut(left).is_none());
    assert!(queue.remove(left).is_none());
    assert_eq!(queue.len(), 1);
    assert!(queue.remove(next).is_some_and(|it| it.item == "next"));
}
