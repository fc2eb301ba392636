//! The injector compared with a plain queue, and under stress.

use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::thread;

fn pop_many(injector: &Injector<usize>, at_most: usize) -> Vec<usize> {
    injector.pop_batch(at_most).into_iter().collect()
}

proptest! {
    // pins: G3
    #[test]
    fn it_is_a_queue(operations in prop::collection::vec((0..4_usize, 0..40_usize), 0..60)) {
        let (queue, mut plain) = (Injector::new(), VecDeque::new());
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
                    prop_assert_eq!(pop_many(&queue, count), expected);
                }
                2 => prop_assert_eq!(queue.len(), plain.len()),
                _ => prop_assert_eq!(queue.pop(), plain.pop_front()),
            }
            prop_assert_eq!(queue.is_empty(), plain.is_empty());
        }
        prop_assert_eq!(queue.pop(), plain.pop_front());
    }
}

/// Counts the items while another thread is suspended in a pop.
// pins: P15
#[test]
fn counting_waits_for_no_other_thread() {
    let queue = Injector::new();
    (0..3).for_each(|item| queue.push(item));
    assert_eq!(queue.pop(), Some(0));
    let _popping = lock(&queue.front.batch);
    assert_eq!((queue.len(), queue.is_empty()), (2, false));
}

// pins: G3
#[test]
fn among_many_pushers_and_poppers_each_item_comes_out_once_and_in_order() {
    const PUSHERS: usize = 3;
    const POPPERS: usize = 3;
    const EACH: usize = 40_000;
    let factor = std::env::var("GANGER_STRESS").map_or(1, |text| text.parse().unwrap());
    for round in 0..factor {
        let (queue, left) = (Injector::new(), AtomicUsize::new(PUSHERS * EACH));
        let taken: Vec<Vec<usize>> = thread::scope(|scope| {
            for pusher in 0..PUSHERS {
                let queue = &queue;
                scope.spawn(move || {
                    (0..EACH).for_each(|nth| queue.push(pusher * EACH + nth));
                });
            }
            let pop_all = |popper: usize| {
                let mut all = Vec::new();
                // Ordering: Relaxed, because the number is only a count.
                while left.load(Ordering::Relaxed) > 0 {
                    let taken = pop_many(&queue, 1 + (popper + round) % 70);
                    // Ordering: Relaxed, because the number is only a count.
                    left.fetch_sub(taken.len(), Ordering::Relaxed);
                    all.extend(taken);
                }
                all
            };
            let poppers: Vec<_> = (0..POPPERS)
                .map(|popper| scope.spawn(move || pop_all(popper)))
                .collect();
            poppers.into_iter().map(|it| it.join().unwrap()).collect()
        });
        for taken in &taken {
            for pusher in 0..PUSHERS {
                let of_one = taken.iter().filter(|&&item| item / EACH == pusher);
                assert!(of_one.is_sorted(), "the order of one pusher");
            }
        }
        let mut all = taken.concat();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..PUSHERS * EACH));
        assert_eq!((queue.len(), queue.is_empty()), (0, true));
    }
}
