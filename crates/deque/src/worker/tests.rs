//! Tests of the owner's end of a deque.

use super::*;
use crate::word::{Announcement, Claim};

/// Suspends a thief while it copies: the thief keeps the slots below `head` taken. The owner moves
/// to rings of the same size while they are large enough.
#[test]
fn a_suspended_thief_does_not_make_the_ring_grow_without_end() {
    let worker = Worker::with_capacity(8);
    worker.push(0);
    worker.expose();
    let shared = &worker.shared;
    // The thief is pinned, like every real thief.
    let guard = crate::reclaim::pin();
    let claim = shared.word.claim(shared.word.load(), shared.bottom(), 1);
    assert!(matches!(claim, Claim::Claimed { count: 1, .. }));
    for item in 0..10_000 {
        worker.push(item);
        assert_eq!(worker.stealer().steal().success(), Some(item));
    }
    assert_eq!(worker.capacity(), 8);

    shared.release(1);
    drop(guard);
    let ring = worker.shared.owner.buffer.owned();
    for item in 0..10_000 {
        worker.push(item);
        assert_eq!(worker.stealer().steal().success(), Some(item));
    }
    let now = worker.shared.owner.buffer.owned();
    assert_eq!(now, ring, "all slots are free: no new ring");
}

#[test]
fn the_largest_ring_is_replaced_by_its_like() {
    let worker = Worker::<()>::with_capacity(MAX_CAPACITY as usize);
    worker.push(());
    worker.expose();
    let guard = crate::reclaim::pin();
    let shared = &worker.shared;
    let claim = shared.word.claim(shared.word.load(), shared.bottom(), 1);
    assert!(matches!(claim, Claim::Claimed { count: 1, .. }));
    let bottom = worker.bottom.get();
    worker.grow(bottom, bottom.wrapping_add(MAX_CAPACITY - 1), 1);
    assert_eq!(worker.capacity(), MAX_CAPACITY as usize);
    shared.release(1);
    drop(guard);
}

/// Announces the thief's view, which is more than the ring to which the owner has moved since. The
/// thief claims items that exist by then.
#[test]
fn an_announcement_larger_than_the_ring() {
    let worker = Worker::new();
    (0..100).for_each(|item| worker.push(item));
    let shared = Arc::clone(&worker.shared);
    let (seen, bottom) = (shared.word.load(), shared.bottom());
    let popped: Vec<_> = (0..96).filter_map(|_| worker.pop()).collect();
    assert!(popped.iter().copied().eq((4..100).rev()));
    let Announcement::Announced(seen) = shared.word.announce(seen, bottom) else {
        panic!("nobody else changes the word");
    };
    worker.shrink_to_fit();
    assert_eq!(worker.capacity(), 16);
    (4..200).for_each(|item| worker.push(item));
    let guard = crate::reclaim::pin();
    let ring = shared.owner.buffer.load(&guard);
    let claim = shared.word.claim(seen, shared.bottom(), u32::MAX);
    let Claim::Claimed { first, count: 100 } = claim else {
        panic!("{claim:?}");
    };
    for item in 0..100 {
        // SAFETY: the slots are claimed, and each is read once.
        let stolen = unsafe { ring.read(first.wrapping_add(item)).assume_init() };
        assert_eq!(stolen, item);
    }
    shared.release(100);
    for item in (100..200).rev() {
        assert_eq!(worker.pop(), Some(item));
    }
    assert_eq!(worker.pop(), None);
}

#[test]
fn a_ring_grows_to_what_is_asked_for() {
    let worker = Worker::with_capacity(4);
    for item in 0..3 {
        worker.push(item);
    }
    assert_eq!(worker.reserve(1), 1);
    assert_eq!(worker.capacity(), 4);
    assert_eq!(worker.reserve(100), 125);
    assert_eq!(worker.capacity(), 128);
    assert_eq!(worker.pop(), Some(2));
}
