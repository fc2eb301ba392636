//! The modes of a mutex: a single owner at a time, which sees the writes of the owner before; no
//! waiter sleeps while the lock is free. A sleep without an end is a deadlock, which the model
//! reports.

use super::Mutex;
use ganger_sync::sync::Arc;
use ganger_sync::{model, thread};
use ganger_wait::block_on;
use std::pin::{Pin, pin};
use std::task::{Context, Waker};

fn add(mutex: &Mutex<u32>) {
    *block_on(mutex.lock()).unwrap() += 1;
}

#[test]
fn two_threads_take_turns() {
    model::check(3, || {
        let mutex = Arc::new(Mutex::new(0));
        let other = Arc::clone(&mutex);
        let other = thread::spawn(move || {
            add(&other);
            add(&other);
        });
        add(&mutex);
        other.join().unwrap();
        assert_eq!(*block_on(mutex.lock()).unwrap(), 3);
    });
}

#[test]
fn three_threads_take_turns() {
    model::check(2, || {
        let mutex = Arc::new(Mutex::new(0));
        let others = [(); 2].map(|()| {
            let mutex = Arc::clone(&mutex);
            thread::spawn(move || add(&mutex))
        });
        add(&mutex);
        for other in others {
            other.join().unwrap();
        }
        assert_eq!(*block_on(mutex.lock()).unwrap(), 3);
    });
}

/// Has a waiter give up while another thread wakes the waiter. The other waiter gets its turn.
#[test]
fn a_waiter_that_gives_up_passes_its_turn_on() {
    model::check(3, || {
        let mutex = Arc::new(Mutex::new(0));
        let guard = mutex.try_lock().unwrap();
        let others = [false, true].map(|gives_up| {
            let mutex = Arc::clone(&mutex);
            thread::spawn(move || {
                if !gives_up {
                    return add(&mutex);
                }
                let mut wait = pin!(mutex.lock());
                let look = |it: Pin<&mut _>| {
                    let poll = Future::poll(it, &mut Context::from_waker(Waker::noop()));
                    poll.is_ready()
                };
                let _ = look(wait.as_mut()) || look(wait.as_mut());
            })
        });
        drop(guard);
        for other in others {
            other.join().unwrap();
        }
        assert_eq!(*block_on(mutex.lock()).unwrap(), 1);
    });
}

/// Runs in starvation mode: the waiter that gives up may be the owner by then.
#[test]
fn an_owner_that_gives_up_hands_the_lock_on() {
    model::check(2, one_that_is_handed_the_lock_gives_up);
}

/// Unlocks by the new owner while the old owner ends starvation mode, because no waiter has waited
/// long.
#[cfg(ganger_loom)]
#[test]
fn the_end_of_starvation_mode_hides_no_waiter() {
    super::word::IS_PATIENT.set(true);
    model::check(3, one_that_is_handed_the_lock_gives_up);
}

fn one_that_is_handed_the_lock_gives_up() {
    let mutex = Arc::new(Mutex::new(0));
    let guard = mutex.try_lock().unwrap();
    mutex.word.starve();
    let others = [false, true].map(|gives_up| {
        let mutex = Arc::clone(&mutex);
        thread::spawn(move || {
            if !gives_up {
                return add(&mutex);
            }
            let mut wait = pin!(mutex.lock());
            let look = |it: Pin<&mut _>| {
                let poll = Future::poll(it, &mut Context::from_waker(Waker::noop()));
                poll.is_ready()
            };
            let _ = look(wait.as_mut()) || look(wait.as_mut());
        })
    });
    drop(guard);
    for other in others {
        other.join().unwrap();
    }
    assert_eq!(*block_on(mutex.lock()).unwrap(), 1);
}

/// Lets the new owner look by itself, and unlock while the old owner is still handing over.
#[test]
fn a_new_owner_may_unlock_before_the_old_one_is_done() {
    model::check(3, || {
        let mutex = Arc::new(Mutex::new(0));
        let guard = mutex.try_lock().unwrap();
        mutex.word.starve();
        let other = {
            let mutex = Arc::clone(&mutex);
            thread::spawn(move || {
                let mut wait = pin!(mutex.lock());
                let mut context = Context::from_waker(Waker::noop());
                let _ = wait.as_mut().poll(&mut context).is_ready()
                    || wait.as_mut().poll(&mut context).is_ready();
            })
        };
        drop(guard);
        other.join().unwrap();
        assert!(mutex.try_lock().is_ok(), "its owner has unlocked it");
    });
}
