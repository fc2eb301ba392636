//! Claimers against a waiter that gives up, and wake-ups against a waiter on its way to sleep. The
//! model reports a lost wake-up as a deadlock.

use ganger_sync::cell::UnsafeCell;
use ganger_sync::sync::{Arc, Mutex, lock};
use ganger_sync::{model, thread};
use ganger_wait::{Left, WaitQueue, Waiter};

/// A value that the claimer writes before its claim, without a lock.
#[derive(Default)]
struct Given(UnsafeCell<u32>);

// SAFETY: the only claimer writes the value before its claim, and the waiter reads the value after
// the claim. The model checks this order.
unsafe impl Sync for Given {}
// SAFETY: the claimer's write happens before the waiter's read, as for `Sync`.
unsafe impl Send for Given {}

#[test]
fn one_chooser_or_the_waiter_itself_wins() {
    model::check(5, || {
        let waiter = std::sync::Arc::new(Waiter::new());
        let claimers = [0, 1].map(|case| {
            let waiter = std::sync::Arc::clone(&waiter);
            thread::spawn(move || waiter.claim(case))
        });
        let left = waiter.leave();
        let claimed = claimers.map(|it| it.join().unwrap());
        let expected = match left {
            Left::InTime => [false, false],
            Left::Claimed(case) => [case == 0, case == 1],
        };
        assert_eq!(claimed, expected);
    });
}

#[test]
fn a_thread_is_woken_and_sees_what_it_was_given() {
    model::check(5, || {
        let waiter = std::sync::Arc::new(Waiter::new());
        let given = Arc::new(Given::default());
        let claimer = {
            let (waiter, given) = (std::sync::Arc::clone(&waiter), Arc::clone(&given));
            thread::spawn(move || {
                // SAFETY: the waiter reads the value only after the claim.
                given.0.with_mut(|it| unsafe { *it = 42 });
                assert!(waiter.claim(7));
                waiter.wake();
            })
        };
        assert_eq!(waiter.block(None), Some(7));
        // SAFETY: the claimer has written the value before its claim.
        assert_eq!(given.0.with(|it| unsafe { *it }), 42);
        claimer.join().unwrap();
    });
}

/// Checks that a call set during the claim is made once, by either of the two threads.
#[test]
fn a_call_is_made_once() {
    model::check(5, || {
        let waiter = std::sync::Arc::new(Waiter::new());
        let calls = Arc::new(Mutex::new(0));
        let claimer = {
            let waiter = std::sync::Arc::clone(&waiter);
            thread::spawn(move || {
                assert!(waiter.claim(7));
                waiter.wake();
            })
        };
        let counted = Arc::clone(&calls);
        waiter.call_when_claimed(move |case| *lock(&counted) += case);
        claimer.join().unwrap();
        assert_eq!(*lock(&calls), 7);
    });
}

/// Waits for a turn each by two waiters. The first gives up during the claim, and hands its turn
/// on.
#[test]
fn a_turn_is_handed_on() {
    model::check(3, || {
        let queue = Arc::new(Mutex::new(WaitQueue::new()));
        let [first, second] = [0, 1].map(|case| {
            let waiter = std::sync::Arc::new(Waiter::new());
            let key = lock(&queue).push_back(std::sync::Arc::clone(&waiter), case, ());
            (waiter, key)
        });
        let pop = |queue: &Mutex<WaitQueue<()>>| {
            let next = lock(queue).pop();
            if let Some(entry) = next {
                entry.waiter.wake();
            }
        };
        let claimer = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || pop(&queue))
        };
        let leaver = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                let (waiter, key) = first;
                let left = waiter.leave();
                let entry = lock(&queue).remove(key);
                drop(entry);
                if left != Left::InTime {
                    pop(&queue);
                }
            })
        };
        assert_eq!(second.0.block(None), Some(1));
        claimer.join().unwrap();
        leaver.join().unwrap();
        assert!(lock(&queue).is_empty());
    });
}

/// Puts a waiter into two queues, with another waiter behind it in each. Each queue gives one turn.
#[test]
fn one_that_waits_in_two_queues_takes_one_turn() {
    model::check(3, || {
        let both = std::sync::Arc::new(Waiter::new());
        let queues = [0, 1].map(|case| {
            let queue = Arc::new(Mutex::new(WaitQueue::new()));
            let key = lock(&queue).push_back(std::sync::Arc::clone(&both), case, ());
            let behind = std::sync::Arc::new(Waiter::new());
            lock(&queue).push_back(std::sync::Arc::clone(&behind), 2, ());
            (queue, key, behind)
        });
        let claimers = queues.each_ref().map(|(queue, ..)| {
            let queue = Arc::clone(queue);
            thread::spawn(move || {
                let next = lock(&queue).pop().unwrap();
                next.waiter.wake();
                next.case
            })
        });
        let claimed = both.block(None).unwrap();
        let cases = claimers.map(|it| it.join().unwrap());
        let expected = if claimed == 0 { [0, 2] } else { [2, 1] };
        assert_eq!(cases, expected);
        for ((queue, key, behind), case) in queues.iter().zip(cases) {
            assert_eq!(lock(queue).remove(*key).is_some(), case == 2);
            assert_eq!(behind.claimed().is_some(), case == 2);
        }
    });
}
