//! Models of the injector: threads that push, threads that pop, and a thread that checks for items.

use super::Injector;
use ganger_sync::atomic::{AtomicBool, Ordering, fence};
use ganger_sync::sync::Arc;
use ganger_sync::{model, thread};

type Queue = Arc<Injector<u32>>;

fn queue() -> Queue {
    Arc::new(Injector::new())
}

fn pushes<const N: usize>(queue: &Queue, values: [u32; N]) -> thread::JoinHandle<()> {
    let queue = Arc::clone(queue);
    thread::spawn(move || values.into_iter().for_each(|value| queue.push(value)))
}

fn take(queue: &Queue, most: usize, taken: &mut Vec<u32>) {
    taken.extend(queue.pop_batch(most));
}

/// Takes the remaining items, when all pushers have ended.
fn rest(queue: &Queue, mut taken: Vec<u32>) -> Vec<u32> {
    let all = taken.len() + queue.len();
    take(queue, usize::MAX, &mut taken);
    assert_eq!((taken.len(), queue.is_empty()), (all, true));
    taken
}

// pins: G3
#[test]
fn two_pushers_against_one_popper() {
    model::check(3, || {
        let queue = queue();
        let pushers = [[1, 2], [11, 12]].map(|values| pushes(&queue, values));
        let mut taken = Vec::new();
        take(&queue, 1, &mut taken);
        take(&queue, 2, &mut taken);
        for pusher in pushers {
            pusher.join().unwrap();
        }
        let taken = rest(&queue, taken);
        for values in [[1, 2], [11, 12]] {
            let of_one = taken.iter().filter(|value| values.contains(value));
            assert!(of_one.eq(&values), "{taken:?}");
        }
        assert_eq!(taken.len(), 4);
    });
}

// pins: G3
#[test]
fn two_poppers_against_one_pusher() {
    model::check(3, || {
        let queue = queue();
        queue.push(1);
        let pusher = pushes(&queue, [2, 3]);
        let popper = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                let mut taken = Vec::new();
                take(&queue, 2, &mut taken);
                taken
            })
        };
        let mut own = Vec::new();
        take(&queue, 2, &mut own);
        pusher.join().unwrap();
        let others = popper.join().unwrap();
        assert!(own.is_sorted() && others.is_sorted(), "{own:?} {others:?}");
        let mut all = rest(&queue, own);
        all.extend(others);
        all.sort_unstable();
        assert_eq!(all, [1, 2, 3]);
    });
}

/// Lets a pusher push, and then look for sleepers. A sleeper announces its sleep, and then checks
/// for an item. A third thread pops the first item, and so moves the other items to the front.
// pins: G2
#[test]
fn a_thread_that_falls_asleep_sees_the_item_or_is_seen() {
    model::check(4, || {
        let queue = queue();
        queue.push(1);
        let is_asleep = Arc::new(AtomicBool::new(false));
        let pusher = {
            let (queue, is_asleep) = (Arc::clone(&queue), Arc::clone(&is_asleep));
            thread::spawn(move || {
                queue.push(2);
                // Ordering: SeqCst pairs with the fence of the sleeper.
                fence(Ordering::SeqCst);
                // Ordering: Relaxed, because the fence orders it.
                is_asleep.load(Ordering::Relaxed)
            })
        };
        let popper = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.pop())
        };
        // Ordering: Relaxed, because the fence orders it.
        is_asleep.store(true, Ordering::Relaxed);
        // Ordering: SeqCst pairs with the fence of the pusher.
        fence(Ordering::SeqCst);
        let is_empty = queue.is_empty();
        let is_seen = pusher.join().unwrap();
        assert_eq!(popper.join().unwrap(), Some(1));
        assert!(!is_empty || is_seen, "a thread sleeps beside an item");
        assert_eq!(rest(&queue, Vec::new()), [2]);
    });
}

/// Counts the items while another thread pops, and a third pushes.
#[test]
fn counting_finds_no_more_than_there_have_been() {
    model::check(4, || {
        let queue = queue();
        queue.push(1);
        let pusher = pushes(&queue, [2]);
        let popper = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.pop())
        };
        assert!(queue.len() <= 2);
        pusher.join().unwrap();
        assert_eq!(popper.join().unwrap(), Some(1));
        assert_eq!(rest(&queue, Vec::new()), [2]);
    });
}
