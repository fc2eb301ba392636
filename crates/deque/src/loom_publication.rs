//! Checks that items left exposed by the owner are published, although light fences publish
//! nothing.
//!
//! On platforms whose light fence is a compiler fence, no fence follows a pop. In these models
//! light fences do nothing, and no thief claims on a tentative word.

use crate::shared::Shared;
use crate::word::{Announcement, Claim};
use crate::{Worker, reclaim};
use ganger_sync::atomic::{AtomicU32, Ordering};
use ganger_sync::sync::Arc;
use ganger_sync::{fence, model, thread};

fn without_light_fences(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    fence::without_light(|| model::check(preemptions, body));
}

/// Claims if the word is settled, as `Stealer::steal_half_into` does, and returns the items.
fn claim_settled(shared: &Shared<u32>) -> Vec<u32> {
    let seen = shared.word.load();
    if !seen.is_open() {
        return Vec::new();
    }
    let bottom = shared.bottom();
    let guard = reclaim::pin();
    let ring = shared.owner.buffer.load(&guard);
    let Claim::Claimed { first, count } = shared.word.claim(seen, bottom, u32::MAX) else {
        return Vec::new();
    };
    let items = (0..count)
        // SAFETY: this thief has claimed the slots, which hold items, and reads them once.
        .map(|offset| unsafe { ring.read(first.wrapping_add(offset)).assume_init() })
        .collect();
    shared.release(count);
    items
}

/// Orders the threads' turns, and publishes nothing. Loom's search alone does not reach the
/// particular order of steps in these models.
struct Turn(AtomicU32);

impl Turn {
    fn pass_to(&self, turn: u32) {
        // Ordering: Relaxed, because no write may be published through it.
        self.0.store(turn, Ordering::Relaxed);
    }

    fn wait_for(&self, turn: u32) {
        // Ordering: Relaxed, because no write may be published through it.
        while self.0.load(Ordering::Relaxed) != turn {
            thread::yield_now();
        }
    }
}

/// Lets a thief look, and then the owner replace the items. The thief announces, and pauses. The
/// owner takes back, and leaves one of the new items exposed.
#[test]
fn what_the_owner_leaves_exposed_is_there() {
    without_light_fences(3, || {
        let worker = Worker::with_capacity(4);
        (0..3).for_each(|item| worker.push(item));
        let shared = worker.shared();
        let turn = Arc::new(Turn(AtomicU32::new(0)));
        let thief = thread::spawn({
            let turn = Arc::clone(&turn);
            move || {
                let (seen, bottom) = (shared.word.load(), shared.bottom());
                turn.pass_to(1);
                turn.wait_for(2);
                let announcement = shared.word.announce(seen, bottom);
                assert!(matches!(announcement, Announcement::Announced(_)));
                turn.pass_to(3);
                turn.wait_for(4);
                claim_settled(&shared)
            }
        });
        turn.wait_for(1);
        let mut all: Vec<u32> = (0..3).filter_map(|_| worker.pop()).collect();
        (10..13).for_each(|item| worker.push(item));
        turn.pass_to(2);
        turn.wait_for(3);
        all.extend(worker.pop());
        turn.pass_to(4);
        all.extend(thief.join().unwrap());
        all.extend(std::iter::from_fn(|| worker.pop()));
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 10, 11, 12]);
    });
}

/// Exposes an item at an index of an earlier item.
#[test]
fn what_the_owner_exposes_is_there() {
    without_light_fences(4, || {
        let worker = Worker::with_capacity(1);
        worker.push(10);
        let shared = worker.shared();
        let thief = thread::spawn({
            let shared = Arc::clone(&shared);
            move || claim_settled(&shared)
        });
        let mut all = Vec::from_iter(worker.pop());
        worker.push(11);
        worker.expose();
        all.extend(thief.join().unwrap());
        all.extend(std::iter::from_fn(|| worker.pop()));
        all.sort_unstable();
        assert_eq!(all, [10, 11]);
    });
}
