//! How a waiter is woken.

use ganger_wait::{Left, Waiter};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::task::{Poll, Wake, Waker};
use std::time::Duration;

#[derive(Default)]
struct Counts(AtomicUsize);

impl Wake for Counts {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn the_last_waker_is_woken_once() {
    let waiter = Waiter::new();
    let (first, last) = (Arc::new(Counts::default()), Arc::new(Counts::default()));
    for counts in [&first, &last, &last] {
        let waker = Waker::from(Arc::clone(counts));
        assert!(waiter.poll(&waker).is_pending());
    }
    assert_eq!(Arc::strong_count(&first), 1, "its waker is dropped");
    assert!(waiter.claim(5) && !waiter.claim(6));
    waiter.wake();
    waiter.wake();
    let woken = [&first, &last].map(|it| it.0.load(Ordering::Relaxed));
    assert_eq!(woken, [0, 1]);
    assert_eq!(waiter.poll(Waker::noop()), Poll::Ready(5));
}

#[test]
fn a_call_is_made_once_before_or_after_the_choice() {
    let (sender, receiver) = channel();
    for is_late in [false, true] {
        let waiter = Waiter::new();
        assert!(!is_late || waiter.claim(1));
        let sender = sender.clone();
        waiter.call_when_claimed(move |case| sender.send(case).unwrap());
        assert!(is_late || waiter.claim(1));
        waiter.wake();
        assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [1]);
    }
}

#[test]
fn a_waiter_that_has_left_forgets_what_it_was_told_by() {
    let value = Arc::new(());
    let waiter = Waiter::new();
    let kept = Arc::clone(&value);
    waiter.call_when_claimed(move |_| drop(kept));
    assert_eq!(waiter.leave(), Left::InTime);
    assert_eq!(Arc::strong_count(&value), 2);
    waiter.forget();
    assert_eq!(Arc::strong_count(&value), 1);
    assert!(!waiter.claim(0));
    assert_eq!(Waiter::gone().block(Some(Duration::ZERO)), None);
}

#[test]
fn a_waiter_waits_again_after_a_reset() {
    let waiter = Waiter::new();
    assert!(waiter.claim(0));
    waiter.reset();
    assert!(waiter.poll(Waker::noop()).is_pending());
    assert!(waiter.claim(3));
    assert_eq!(waiter.block(None), Some(3));
    assert_eq!(waiter.leave(), Left::Claimed(3));
}

#[test]
fn threads_are_woken() {
    for _ in 0..1_000 {
        let waiter = Arc::new(Waiter::new());
        let other = Arc::clone(&waiter);
        let thread = std::thread::spawn(move || other.block(Some(Duration::MAX)));
        assert!(waiter.claim(9));
        waiter.wake();
        assert_eq!(thread.join().unwrap(), Some(9));
    }
}
