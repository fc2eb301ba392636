//! The room of a bounded channel: no sender sleeps while there is a place, or after the end. A
//! sleep without an end is a deadlock, which the model reports.

use super::room::Room;
use ganger_sync::atomic::{AtomicBool, Ordering};
use ganger_sync::cell::UnsafeCell;
use ganger_sync::sync::Arc;
use ganger_sync::thread::JoinHandle;
use ganger_sync::{model, thread};

/// A room, whether it is over, and a value that belongs to the owner of the one place.
struct Hall {
    room: Room,
    is_over: AtomicBool,
    place: UnsafeCell<u32>,
}

// SAFETY: the owner of the place uses the value; the model checks that the uses are ordered.
unsafe impl Sync for Hall {}

impl Hall {
    fn with_places(places: usize) -> Arc<Self> {
        Arc::new(Self {
            room: Room::new(places),
            is_over: AtomicBool::new(false),
            place: UnsafeCell::new(0),
        })
    }

    /// Takes a place, or waits for one. Says whether it got one before the end.
    fn take(&self) -> bool {
        // Ordering: Relaxed, because it is the room that has to order it.
        self.room.take(|| self.is_over.load(Ordering::Relaxed))
    }

    fn end(&self) {
        // Ordering: Relaxed, because it is the room that has to order it.
        self.is_over.store(true, Ordering::Relaxed);
        self.room.wake_all();
    }

    fn write(&self, value: u32) {
        // SAFETY: the caller has the place.
        self.place.with_mut(|place| unsafe { *place = value });
    }
}

fn spawn<R: Send + 'static>(
    hall: &Arc<Hall>,
    body: impl FnOnce(&Hall) -> R + Send + 'static,
) -> JoinHandle<R> {
    let hall = Arc::clone(hall);
    thread::spawn(move || body(&hall))
}

#[test]
fn one_waits_for_a_place() {
    model::check(6, || {
        let hall = Hall::with_places(0);
        let waiter = spawn(&hall, Hall::take);
        hall.room.give(1);
        assert!(waiter.join().unwrap());
        assert_eq!(hall.room.free(), 0);
    });
}

#[test]
fn two_wait_for_a_place_each() {
    model::check(3, || {
        let hall = Hall::with_places(0);
        let waiters = [(); 2].map(|()| spawn(&hall, Hall::take));
        hall.room.give(1);
        hall.room.give(1);
        assert!(waiters.into_iter().all(|waiter| waiter.join().unwrap()));
        assert_eq!(hall.room.free(), 0);
    });
}

#[test]
fn two_wait_for_two_places_at_once() {
    model::check(3, || {
        let hall = Hall::with_places(0);
        let waiters = [(); 2].map(|()| spawn(&hall, Hall::take));
        hall.room.give(2);
        assert!(waiters.into_iter().all(|waiter| waiter.join().unwrap()));
        assert_eq!(hall.room.free(), 0);
    });
}

/// A sender that does not wait may be faster: then the sender that waits gets the next place.
#[test]
fn a_place_is_taken_away_from_a_sender_that_waits() {
    model::check(3, || {
        let hall = Hall::with_places(0);
        let waiter = spawn(&hall, Hall::take);
        let other = spawn(&hall, |hall| hall.room.try_take());
        hall.room.give(1);
        if other.join().unwrap() {
            hall.room.give(1);
        }
        assert!(waiter.join().unwrap());
        assert_eq!(hall.room.free(), 0);
    });
}

#[test]
fn one_waits_when_the_end_comes() {
    model::check(6, || {
        let hall = Hall::with_places(0);
        let waiter = spawn(&hall, Hall::take);
        hall.end();
        assert!(!waiter.join().unwrap());
    });
}

#[test]
fn two_wait_when_the_end_comes() {
    model::check(3, || {
        let hall = Hall::with_places(0);
        let waiters = [(); 2].map(|()| spawn(&hall, Hall::take));
        hall.end();
        assert_eq!(waiters.map(|waiter| waiter.join().unwrap()), [false; 2]);
    });
}

#[test]
fn two_wait_when_a_place_and_the_end_come() {
    model::check(3, || {
        let hall = Hall::with_places(0);
        let waiters = [(); 2].map(|()| spawn(&hall, Hall::take));
        hall.room.give(1);
        hall.end();
        let taken = waiters.map(|waiter| waiter.join().unwrap());
        let taken = taken.into_iter().filter(|taken| *taken).count();
        assert_eq!(taken + hall.room.free(), 1, "a place was lost or doubled");
    });
}

/// What the receiver did before it gave a place happens before what the next sender does with it.
#[test]
fn a_place_is_handed_over() {
    model::check(4, || {
        let hall = Hall::with_places(0);
        let others = [1, 2].map(|value| {
            spawn(&hall, move |hall| {
                let taken = hall.room.try_take();
                if taken {
                    hall.write(value);
                    hall.room.give(1);
                }
                taken
            })
        });
        hall.write(3);
        hall.room.give(1);
        let _taken = others.map(|other| other.join().unwrap());
        assert_eq!(hall.room.free(), 1);
    });
}
