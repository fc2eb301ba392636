//! The queue beside a plain one, and under stress.

use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::thread;

/// A pointer that stands for a number, and leads nowhere.
fn item(number: usize) -> NonNull<u8> {
    NonNull::without_provenance((number + 1).try_into().unwrap())
}

fn number(item: NonNull<u8>) -> usize {
    item.addr().get() - 1
}

fn take(fifo: &Fifo<u8>, most: usize) -> Vec<usize> {
    let mut taken = Vec::new();
    fifo.take(most, |item| taken.push(number(item)));
    taken
}

proptest! {
    // pins: G3
    #[test]
    fn it_is_a_queue(operations in prop::collection::vec((0..2_usize, 0..200_usize), 0..60)) {
        let (fifo, mut plain) = (Fifo::new(), VecDeque::new());
        let mut next = 0;
        for (takes, count) in operations {
            if takes == 1 {
                let expected: Vec<_> = plain.drain(..count.min(plain.len())).collect();
                prop_assert_eq!(take(&fifo, count), expected);
            } else {
                for _ in 0..count {
                    fifo.push(item(next));
                    plain.push_back(next);
                    next += 1;
                }
            }
            prop_assert_eq!((fifo.len(), fifo.is_empty()), (plain.len(), plain.is_empty()));
        }
    }
}

fn kept(fifo: &Fifo<u8>) -> usize {
    lock(&fifo.kept).len()
}

#[test]
fn blocks_are_used_again_and_not_too_many_are_kept() {
    let fifo = Fifo::new();
    let fill = |blocks: usize| (0..blocks * SLOTS).for_each(|number| fifo.push(item(number)));
    fill(10);
    assert_eq!(kept(&fifo), 0);
    assert_eq!(take(&fifo, 10 * SLOTS).len(), 10 * SLOTS);
    assert_eq!(kept(&fifo), 10);
    fill(7);
    assert_eq!(kept(&fifo), 3);
    fill(2 * KEPT);
    take(&fifo, usize::MAX);
    assert_eq!(kept(&fifo), KEPT);
    assert!(fifo.is_empty());
}

/// A process that is left in the queue is no business of the queue's; its blocks are.
#[test]
fn what_is_left_is_dropped_with_it() {
    let fifo = Fifo::new();
    for number in 0..5 * SLOTS {
        fifo.push(item(number));
    }
    take(&fifo, SLOTS + 1);
    drop(fifo);
}

// pins: G3
#[test]
fn of_many_who_push_and_take_each_item_comes_out_once_and_in_order() {
    const PUSHERS: usize = 3;
    const TAKERS: usize = 3;
    const EACH: usize = 40_000;
    let factor = std::env::var("GANGER_STRESS").map_or(1, |text| text.parse().unwrap());
    for round in 0..factor {
        let (fifo, left) = (Fifo::new(), AtomicUsize::new(PUSHERS * EACH));
        let taken: Vec<Vec<usize>> = thread::scope(|scope| {
            for pusher in 0..PUSHERS {
                let fifo = &fifo;
                scope.spawn(move || {
                    (0..EACH).for_each(|nth| fifo.push(item(pusher * EACH + nth)));
                });
            }
            let take_all = |taker: usize| {
                let mut all = Vec::new();
                // Ordering: Relaxed: a count, for the end of the loop.
                while left.load(Ordering::Relaxed) > 0 {
                    let taken = take(&fifo, 1 + (taker + round) % 70);
                    // Ordering: Relaxed, as above.
                    left.fetch_sub(taken.len(), Ordering::Relaxed);
                    all.extend(taken);
                }
                all
            };
            let takers: Vec<_> = (0..TAKERS)
                .map(|taker| scope.spawn(move || take_all(taker)))
                .collect();
            takers.into_iter().map(|it| it.join().unwrap()).collect()
        });
        for taken in &taken {
            for pusher in 0..PUSHERS {
                let of_one = taken.iter().filter(|&&number| number / EACH == pusher);
                assert!(of_one.is_sorted(), "the order of one who pushes");
            }
        }
        let mut all = taken.concat();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..PUSHERS * EACH));
        assert_eq!((fifo.len(), fifo.is_empty()), (0, true));
        assert!(kept(&fifo) <= KEPT);
    }
}
