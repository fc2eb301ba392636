//! Choosers against a waiter that gives up, and wake-ups against a waiter that falls asleep. A lost
//! wake-up is a deadlock, which the model reports.

use ganger_sync::cell::UnsafeCell;
use ganger_sync::sync::{Arc, Mutex, lock};
use ganger_sync::{model, thread};
use ganger_wait::{Left, WaitQueue, Waiter};

/// A value that the chooser writes before its choice, without a lock.
#[derive(Default)]
struct Given(UnsafeCell<u32>);

// SAFETY: one chooser writes it before its choice, and the waiter reads it after the choice. The
// model checks this order.
unsafe impl Sync for Given {}
// SAFETY: the chooser's write happens before the waiter's read, as for `Sync`.
unsafe impl Send for Given {}

#[test]
fn one_chooser_or_the_waiter_itself_wins() {
    model::check(5, || {
        let waiter = std::sync::Arc::new(Waiter::new());
        let choosers = [0, 1].map(|case| {
            let waiter = std::sync::Arc::clone(&waiter);
            thread::spawn(move || waiter.choose(case))
        });
        let left = waiter.leave();
        let chosen = choosers.map(|it| it.join().unwrap());
        let expected = match left {
            Left::InTime => [false, false],
            Left::Chosen(case) => [case == 0, case == 1],
        };
        assert_eq!(chosen, expected);
    });
}

#[test]
fn a_thread_is_woken_and_sees_what_it_was_given() {
    model::check(5, || {
        let waiter = std::sync::Arc::new(Waiter::new());
        let given = Arc::new(Given::default());
        let chooser = {
            let (waiter, given) = (std::sync::Arc::clone(&waiter), Arc::clone(&given));
            thread::spawn(move || {
                // SAFETY: the waiter reads the value only after the choice.
                given.0.with_mut(|it| unsafe { *it = 42 });
                assert!(waiter.choose(7));
                waiter.tell();
            })
        };
        assert_eq!(waiter.block(None), Some(7));
        // SAFETY: the chooser has written the value before its choice.
        assert_eq!(given.0.with(|it| unsafe { *it }), 42);
        chooser.join().unwrap();
    });
}

/// A call set during the choice is made once, by one of the two threads.
#[test]
fn a_call_is_made_once() {
    model::check(5, || {
        let waiter = std::sync::Arc::new(Waiter::new());
        let calls = Arc::new(Mutex::new(0));
        let chooser = {
            let waiter = std::sync::Arc::clone(&waiter);
            thread::spawn(move || {
                assert!(waiter.choose(7));
                waiter.tell();
            })
        };
        let counted = Arc::clone(&calls);
        waiter.call_when_chosen(move |case| *lock(&counted) += case);
        chooser.join().unwrap();
        assert_eq!(*lock(&calls), 7);
    });
}

/// Two waiters wait for a turn each. The first gives up during the choice, and hands its turn on.
#[test]
fn a_turn_is_handed_on() {
    model::check(3, || {
        let queue = Arc::new(Mutex::new(WaitQueue::new()));
        let [first, second] = [0, 1].map(|case| {
            let waiter = std::sync::Arc::new(Waiter::new());
            let place = lock(&queue).push_back(std::sync::Arc::clone(&waiter), case, ());
            (waiter, place)
        });
        let pop = |queue: &Mutex<WaitQueue<()>>| {
            let next = lock(queue).pop();
            if let Some(entry) = next {
                entry.waiter.tell();
            }
        };
        let chooser = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || pop(&queue))
        };
        let leaver = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                let (waiter, place) = first;
                let left = waiter.leave();
                let entry = lock(&queue).remove(place);
                drop(entry);
                if left != Left::InTime {
                    pop(&queue);
                }
            })
        };
        assert_eq!(second.0.block(None), Some(1));
        chooser.join().unwrap();
        leaver.join().unwrap();
        assert!(lock(&queue).is_empty());
    });
}

/// A waiter is in two queues, with another waiter behind it in each. Each queue gives one turn.
#[test]
fn one_that_waits_in_two_queues_takes_one_turn() {
    model::check(3, || {
        let both = std::sync::Arc::new(Waiter::new());
        let queues = [0, 1].map(|case| {
            let queue = Arc::new(Mutex::new(WaitQueue::new()));
            let place = lock(&queue).push_back(std::sync::Arc::clone(&both), case, ());
            let behind = std::sync::Arc::new(Waiter::new());
            lock(&queue).push_back(std::sync::Arc::clone(&behind), 2, ());
            (queue, place, behind)
        });
        let choosers = queues.each_ref().map(|(queue, ..)| {
            let queue = Arc::clone(queue);
            thread::spawn(move || {
                let next = lock(&queue).pop().unwrap();
                next.waiter.tell();
                next.case
            })
        });
        let chosen = both.block(None).unwrap();
        let cases = choosers.map(|it| it.join().unwrap());
        let expected = if chosen == 0 { [0, 2] } else { [2, 1] };
        assert_eq!(cases, expected);
        for ((queue, place, behind), case) in queues.iter().zip(cases) {
            assert_eq!(lock(queue).remove(*place).is_some(), case == 2);
            assert_eq!(behind.chosen().is_some(), case == 2);
        }
    });
}
