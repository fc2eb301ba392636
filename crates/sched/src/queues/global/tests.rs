//! The queue beside a plain one, and under stress.

use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::thread;

fn take(queue: &GlobalQueue<usize>, most: usize) -> Vec<usize> {
    let mut taken = Vec::new();
    queue.take(most, |item| taken.push(item));
    taken
}

proptest! {
    // pins: G3
    #[test]
    fn it_is_a_queue(operations in prop::collection::vec((0..3_usize, 0..40_usize), 0..60)) {
        let (queue, mut plain) = (GlobalQueue::new(), VecDeque::new());
        let mut next = 0;
        for (operation, count) in operations {
            match operation {
                0 => for _ in 0..count {
                    queue.push(next);
                    plain.push_back(next);
                    next += 1;
                },
                1 => {
                    let expected: Vec<_> = plain.drain(..count.min(plain.len())).collect();
                    prop_assert_eq!(take(&queue, count), expected);
                }
                _ => prop_assert_eq!(queue.len(), plain.len()),
            }
            prop_assert_eq!(queue.is_empty(), plain.is_empty());
        }
        prop_assert_eq!(queue.pop(), plain.pop_front());
    }
}

/// Somebody looks at the scheduler while a thread is suspended that takes.
// pins: P15
#[test]
fn who_counts_waits_for_nobody() {
    let queue = GlobalQueue::new();
    (0..3).for_each(|item| queue.push(item));
    assert_eq!(queue.pop(), Some(0));
    let _taking = lock(&queue.front.batch);
    assert_eq!((queue.len(), queue.is_empty()), (2, false));
}

// pins: G3
#[test]
fn of_many_who_push_and_take_each_item_comes_out_once_and_in_order() {
    const PUSHERS: usize = 3;
    const TAKERS: usize = 3;
    const EACH: usize = 40_000;
    let factor = std::env::var("GANGER_STRESS").map_or(1, |text| text.parse().unwrap());
    for round in 0..factor {
        let (queue, left) = (GlobalQueue::new(), AtomicUsize::new(PUSHERS * EACH));
        let taken: Vec<Vec<usize>> = thread::scope(|scope| {
            for pusher in 0..PUSHERS {
                let queue = &queue;
                scope.spawn(move || {
                    (0..EACH).for_each(|nth| queue.push(pusher * EACH + nth));
                });
            }
            let take_all = |taker: usize| {
                let mut all = Vec::new();
                // Ordering: Relaxed: a count, for the end of the loop.
                while left.load(Ordering::Relaxed) > 0 {
                    let taken = take(&queue, 1 + (taker + round) % 70);
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
                let of_one = taken.iter().filter(|&&item| item / EACH == pusher);
                assert!(of_one.is_sorted(), "the order of one who pushes");
            }
        }
        let mut all = taken.concat();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..PUSHERS * EACH));
        assert_eq!((queue.len(), queue.is_empty()), (0, true));
    }
}
