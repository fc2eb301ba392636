//! The parker's protocol: no wake-up is lost in a race with a thread about to sleep.

use ganger_sync::cell::UnsafeCell;
use ganger_sync::sync::Arc;
use ganger_sync::{Parker, model, thread};
use std::time::Duration;

/// A parker guards a value: the woken thread may read the waker's writes.
struct Handover {
    parker: Parker,
    value: UnsafeCell<u32>,
}

// SAFETY: the value is written before `unpark` and read after `park`. The model checks this order.
unsafe impl Sync for Handover {}

#[test]
fn park_against_unpark() {
    model::check(3, || {
        let shared = Arc::new(Handover {
            parker: Parker::new(),
            value: UnsafeCell::new(0),
        });
        let waker = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                // SAFETY: the reader waits for the token set below.
                shared.value.with_mut(|value| unsafe { *value = 7 });
                shared.parker.unpark();
            })
        };
        shared.parker.park();
        // SAFETY: the writer set the token after its write and does not touch the value again.
        assert_eq!(shared.value.with(|value| unsafe { *value }), 7);
        waker.join().unwrap();
    });
}

#[test]
fn two_unparks_leave_at_least_one_token() {
    model::check(3, || {
        let parker = Arc::new(Parker::new());
        let wakers: Vec<_> = (0..2)
            .map(|_| {
                let parker = Arc::clone(&parker);
                thread::spawn(move || parker.unpark())
            })
            .collect();
        parker.park();
        for waker in wakers {
            waker.join().unwrap();
        }
    });
}

#[test]
fn a_thread_that_stops_waiting_takes_the_token_or_leaves_it() {
    model::check(3, || {
        let parker = Arc::new(Parker::new());
        let waker = {
            let parker = Arc::clone(&parker);
            thread::spawn(move || parker.unpark())
        };
        let has_taken = parker.park_timeout(Duration::ZERO);
        waker.join().unwrap();
        assert_ne!(has_taken, parker.has_token(), "two tokens, or none");
    });
}
