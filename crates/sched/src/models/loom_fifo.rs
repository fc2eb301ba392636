//! The queue of pointers behind the global queue: blocks of two slots, of which one is kept for those who push.

use crate::fifo::Fifo;
use ganger_sync::atomic::{AtomicBool, Ordering, fence};
use ganger_sync::cell::UnsafeCell;
use ganger_sync::sync::Arc;
use ganger_sync::{model, thread};
use std::ptr::NonNull;

/// What is queued: written by who pushes it, and read by who takes it.
struct Item(UnsafeCell<u32>);

struct Queue(Fifo<Item>);

impl Queue {
    fn new() -> Arc<Self> {
        Arc::new(Self(Fifo::new()))
    }

    fn push(&self, value: u32) {
        let item = Box::new(Item(UnsafeCell::new(0)));
        // SAFETY: nobody else has it.
        item.0.with_mut(|place| unsafe { *place = value });
        self.0.push(NonNull::from(Box::leak(item)));
    }

    fn take(&self, most: usize, taken: &mut Vec<u32>) {
        self.0.take(most, |item| {
            // SAFETY: it came from a box, and is taken once.
            let item = unsafe { Box::from_raw(item.as_ptr()) };
            // SAFETY: nobody else has it any more.
            taken.push(item.0.with(|place| unsafe { *place }));
        });
    }

    /// Takes what is left; nobody pushes any more.
    fn rest(&self, mut taken: Vec<u32>) -> Vec<u32> {
        let left = self.0.len();
        let before = taken.len();
        self.take(usize::MAX, &mut taken);
        assert_eq!(taken.len(), before + left);
        assert!(self.0.is_empty());
        taken
    }
}

fn pushes<const N: usize>(queue: &Arc<Queue>, values: [u32; N]) -> thread::JoinHandle<()> {
    let queue = Arc::clone(queue);
    thread::spawn(move || values.into_iter().for_each(|value| queue.push(value)))
}

/// Who pushes first is open, and what each pushes stays in order.
fn assert_merged(taken: &[u32], first: &[u32], second: &[u32]) {
    let of = |values: &[u32]| -> Vec<u32> {
        taken
            .iter()
            .copied()
            .filter(|it| values.contains(it))
            .collect()
    };
    assert_eq!(taken.len(), first.len() + second.len(), "{taken:?}");
    assert_eq!(
        (of(first), of(second)),
        (first.to_vec(), second.to_vec()),
        "{taken:?}"
    );
}

// pins: G3
#[test]
fn two_who_push_against_one_who_takes() {
    model::check(4, || {
        let queue = Queue::new();
        let pushers = [[1, 2], [11, 12]].map(|values| pushes(&queue, values));
        let mut taken = Vec::new();
        queue.take(1, &mut taken);
        queue.take(2, &mut taken);
        for pusher in pushers {
            pusher.join().unwrap();
        }
        assert_merged(&queue.rest(taken), &[1, 2], &[11, 12]);
    });
}

/// The block that is left first is the one that is put behind the second.
// pins: G3
#[test]
fn a_block_is_used_again_while_it_is_left() {
    model::check(4, || {
        let queue = Queue::new();
        queue.push(1);
        queue.push(2);
        let pusher = pushes(&queue, [3, 4, 5]);
        let mut taken = Vec::new();
        queue.take(2, &mut taken);
        queue.take(2, &mut taken);
        pusher.join().unwrap();
        assert_eq!(queue.rest(taken), [1, 2, 3, 4, 5]);
    });
}

// pins: G3
#[test]
fn two_who_take_against_one_who_pushes() {
    model::check(4, || {
        let queue = Queue::new();
        queue.push(1);
        let pusher = pushes(&queue, [2, 3]);
        let taker = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                let mut taken = Vec::new();
                queue.take(2, &mut taken);
                taken
            })
        };
        let mut own = Vec::new();
        queue.take(2, &mut own);
        pusher.join().unwrap();
        let others = taker.join().unwrap();
        let ordered = |taken: &[u32]| taken.is_sorted();
        assert!(ordered(&own) && ordered(&others), "{own:?} {others:?}");
        let mut all = queue.rest(own);
        all.extend(others);
        all.sort_unstable();
        assert_eq!(all, [1, 2, 3]);
    });
}

/// With fences as in `idle.rs`: somebody pushes and then looks whether all sleep; somebody says that it sleeps
/// and then looks whether something is queued, while a third one takes what was there.
// pins: G2
#[test]
fn who_falls_asleep_sees_what_is_queued_or_is_seen() {
    model::check(4, || {
        let queue = Queue::new();
        queue.push(1);
        let is_asleep = Arc::new(AtomicBool::new(false));
        let pusher = {
            let (queue, is_asleep) = (Arc::clone(&queue), Arc::clone(&is_asleep));
            thread::spawn(move || {
                queue.push(2);
                // Ordering: SeqCst, as in `Idle::notify_from_outside`.
                fence(Ordering::SeqCst);
                // Ordering: Relaxed, because the fence orders it.
                is_asleep.load(Ordering::Relaxed)
            })
        };
        let taker = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                let mut taken = Vec::new();
                queue.take(1, &mut taken);
                taken
            })
        };
        // Ordering: Relaxed, because the fence orders it.
        is_asleep.store(true, Ordering::Relaxed);
        // Ordering: SeqCst, as the heavy fence in `Idle::sleep`.
        fence(Ordering::SeqCst);
        let is_empty = queue.0.is_empty();
        let is_seen = pusher.join().unwrap();
        let taken = taker.join().unwrap();
        assert!(
            !is_empty || is_seen,
            "a worker sleeps beside what was pushed"
        );
        assert_eq!(queue.rest(taken), [1, 2]);
    });
}
