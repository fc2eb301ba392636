//! The memory that a channel holds after a burst, measured with a counting allocator.
//!
//! The tests share the count, so they run one after the other.
#![cfg(not(ganger_loom))]
#![allow(missing_docs)]

use ganger_channel::{Receiver, broadcast, channel, select, unbounded, watch};
use std::alloc::{GlobalAlloc, Layout, System};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Waker};

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
/// The sum of all allocations so far.
static SUM: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system allocator does the work; the counters change nothing in its results.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Ordering: Relaxed, because the counters are only sums.
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        SUM.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of this function, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // Ordering: Relaxed, because the counter is only a sum.
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of this function, which is the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

const BURST: usize = 40_000;

/// The memory left over at most: small collections do not shrink, and the harness allocates on
/// other threads.
const LITTLE: usize = 64 << 10;

fn live() -> usize {
    // Ordering: Relaxed, because the counter is only a sum.
    LIVE.load(Ordering::Relaxed)
}

fn sum() -> usize {
    // Ordering: Relaxed, because the counter is only a sum.
    SUM.load(Ordering::Relaxed)
}

/// Polls once.
fn poll<F: Future + Unpin>(future: &mut F) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    Pin::new(future).poll(&mut context).is_ready()
}

/// Runs the bursts. Checks that each leaves little memory while its channel lives, and allocates in
/// total at most a few times its own size.
fn assert_flat(mut burst: impl FnMut()) {
    for turn in 0..3 {
        let (before, sum_before) = (live(), sum());
        let most = peak_of(&mut burst);
        let (left, moved) = (live().saturating_sub(before), sum() - sum_before);
        assert!(left <= LITTLE, "turn {turn}: {left} bytes are left");
        assert!(most > 4 * LITTLE, "turn {turn}: {most} bytes are no burst");
        assert!(moved <= 8 * most, "turn {turn}: {moved} for {most} bytes");
    }
}

/// Returns the peak memory of the burst.
fn peak_of(burst: &mut impl FnMut()) -> usize {
    let before = live();
    PEAK.store(0, Ordering::Relaxed); // Ordering: Relaxed, as the tests take turns.
    burst();
    PEAK.load(Ordering::Relaxed).saturating_sub(before) // Ordering: Relaxed, as tests take turns.
}

/// The peak seen by a burst.
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn at_the_top() {
    // Ordering: Relaxed, as the tests take turns.
    PEAK.fetch_max(live(), Ordering::Relaxed);
}

fn alone() -> impl Drop {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

// pins: Q11
#[test]
fn values_that_have_been_received_leave_no_room() {
    let _alone = alone();
    for (sender, receiver) in [unbounded::<u64>(), channel(BURST)] {
        assert_flat(|| {
            for number in 0..BURST {
                sender.try_send(number as u64).unwrap();
            }
            at_the_top();
            for number in 0..BURST {
                assert_eq!(receiver.try_recv(), Ok(number as u64));
            }
        });
    }
}

// pins: Q11
#[test]
fn receivers_that_wait_leave_no_room() {
    let _alone = alone();
    let (sender, receiver) = unbounded::<u64>();
    assert_flat(|| {
        let wait = || {
            let mut recv = Box::pin(receiver.recv());
            assert!(!poll(&mut recv));
            recv
        };
        let mut waits: Vec<_> = (0..BURST).map(|_| wait()).collect();
        at_the_top();
        // Half of the waits are served, and half give up.
        waits.truncate(BURST / 2);
        for wait in &mut waits {
            sender.try_send(1).unwrap();
            assert!(poll(wait));
        }
    });
}

// pins: Q11
#[test]
fn senders_that_wait_leave_no_room() {
    let _alone = alone();
    let (sender, receiver) = channel::<[u64; 16]>(1);
    sender.try_send([0; 16]).unwrap();
    assert_flat(|| {
        let wait = || {
            let mut send = Box::pin(sender.send([1; 16]));
            assert!(!poll(&mut send));
            send
        };
        let mut waits: Vec<_> = (0..BURST).map(|_| wait()).collect();
        at_the_top();
        waits.truncate(BURST / 2);
        for wait in &mut waits {
            assert!(receiver.try_recv().is_ok());
            assert!(poll(wait));
        }
    });
}

// pins: Q11
#[test]
fn selects_that_wait_leave_no_room() {
    let _alone = alone();
    let (_one, from_one) = unbounded::<u64>();
    let (_other, from_other) = unbounded::<u64>();
    assert_flat(|| {
        let wait = || {
            let wait = select().recv(&from_one, |_| ()).recv(&from_other, |_| ());
            let mut wait = Box::pin(wait);
            assert!(!poll(&mut wait));
            wait
        };
        let waits: Vec<_> = (0..BURST).map(|_| wait()).collect();
        at_the_top();
        drop(waits);
    });
}

// pins: Q11
#[test]
fn subscribers_and_watchers_that_wait_leave_no_room() {
    let _alone = alone();
    let (broadcaster, subscriber) = broadcast::<u64>(4);
    assert_flat(|| {
        let mut subscribers = vec![subscriber.clone(); BURST];
        let wait = |it| {
            let mut recv = Box::pin(ganger_channel::Subscriber::recv(it));
            assert!(!poll(&mut recv));
            recv
        };
        let waits: Vec<_> = subscribers.iter_mut().map(wait).collect();
        at_the_top();
        drop(waits);
    });
    drop(broadcaster);
    let (_publisher, watcher) = watch(1_u64);
    assert_flat(|| {
        let mut watchers = vec![watcher.clone(); BURST];
        let wait = |it| {
            let mut changed = Box::pin(ganger_channel::Watcher::changed(it));
            assert!(!poll(&mut changed));
            changed
        };
        let waits: Vec<_> = watchers.iter_mut().map(wait).collect();
        at_the_top();
        drop(waits);
    });
}

// pins: Q10
#[test]
fn a_broadcast_keeps_no_value_that_all_have_received() {
    let _alone = alone();
    let (broadcaster, mut subscriber) = broadcast::<Vec<u8>>(BURST);
    assert_flat(|| {
        for _ in 0..BURST {
            broadcaster.send(vec![0; 16]);
        }
        at_the_top();
        for _ in 0..BURST {
            assert!(subscriber.try_recv().is_ok());
        }
    });
    let before = live();
    drop(subscriber);
    for _ in 0..BURST {
        broadcaster.send(vec![0; 16]);
    }
    let left = live().saturating_sub(before);
    assert!(left <= LITTLE, "{left} bytes without a subscriber");
}

// pins: Q11
#[test]
fn one_that_waits_on_keeps_no_room_of_others() {
    let _alone = alone();
    let (sender, receiver) = unbounded::<u64>();
    let first = |receiver: &Receiver<u64>| {
        // The future has its own receiver, so that `waits` can be exchanged.
        let receiver = receiver.clone();
        let mut recv = Box::pin(async move { receiver.recv().await });
        assert!(!poll(&mut recv));
        recv
    };
    let mut stays = first(&receiver);
    assert_flat(|| {
        let mut waits: Vec<_> = (0..BURST).map(|_| first(&receiver)).collect();
        at_the_top();
        sender.try_send(1).unwrap();
        assert!(poll(&mut stays));
        stays = waits.pop().unwrap();
        waits.clear();
        // The remaining wait is the last in the table, and others come and go.
        let next = first(&receiver);
        sender.try_send(1).unwrap();
        assert!(poll(&mut stays));
        stays = next;
    });
}
