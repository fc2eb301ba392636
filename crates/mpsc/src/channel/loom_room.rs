//! Models of a bounded channel's room: no sender sleeps beside room or after the end, and the
//! channel never has an item too many. A sleep without an end is a deadlock, which the model
//! reports.

use super::room::{Giver, Room, Waited, Waiting};
use ganger_sync::atomic::{AtomicBool, Ordering};
use ganger_sync::cell::UnsafeCell;
use ganger_sync::thread::JoinHandle;
use ganger_sync::{model, thread};
use std::sync::Arc;
use std::task::Waker;

/// A room, whether it is over, and a value that the receiver writes before it gives places.
struct Hall {
    room: Arc<Room>,
    is_over: AtomicBool,
    value: UnsafeCell<u32>,
}

// SAFETY: the receiver writes the value before it gives the only places, and senders read it after
// they have taken a place; the model checks that these are ordered.
unsafe impl Sync for Hall {}

impl Hall {
    /// Returns a room whose places are all taken, and its receiver, which may give them back.
    fn full(capacity: usize) -> (Arc<Self>, Giver) {
        let room = Arc::new(Room::new(capacity));
        assert!((0..capacity).all(|_| room.try_take()));
        let giver = Giver::new(Arc::clone(&room));
        let hall = Self {
            room,
            is_over: AtomicBool::new(false),
            value: UnsafeCell::new(0),
        };
        (Arc::new(hall), giver)
    }

    /// Takes a place, or waits for a place. Returns whether it got a place before the end.
    fn take(&self) -> bool {
        // Ordering: Relaxed, because the room must order it.
        let is_over = || self.is_over.load(Ordering::Relaxed);
        Waiting::new(&self.room).block(None, is_over) == Waited::Place
    }

    fn end(&self, giver: &Giver) {
        // Ordering: Relaxed, because the room must order it.
        self.is_over.store(true, Ordering::Relaxed);
        giver.end();
    }

    fn read(&self) -> u32 {
        // SAFETY: the caller has a place that the receiver gave after its last write.
        self.value.with(|value| unsafe { *value })
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
    model::check(5, || {
        let (hall, giver) = Hall::full(1);
        let waiter = spawn(&hall, Hall::take);
        giver.give(1);
        assert!(waiter.join().unwrap());
        assert_eq!(hall.room.free(), 0);
    });
}

#[test]
fn two_wait_for_a_place_each() {
    model::check(2, || {
        let (hall, giver) = Hall::full(2);
        let waiters = [(); 2].map(|()| spawn(&hall, Hall::take));
        giver.give(1);
        giver.give(1);
        assert!(waiters.into_iter().all(|waiter| waiter.join().unwrap()));
        assert_eq!(hall.room.free(), 0);
    });
}

/// Wakes a waiter by the receiver, and the other waiter by the woken waiter.
#[test]
fn two_wait_for_two_places_at_once() {
    model::check(3, || {
        let (hall, giver) = Hall::full(2);
        let waiters = [(); 2].map(|()| spawn(&hall, Hall::take));
        giver.give(2);
        assert!(waiters.into_iter().all(|waiter| waiter.join().unwrap()));
        assert_eq!(hall.room.free(), 0);
    });
}

/// Gives a lot of two places. The receiver looks for waiters after it has given a lot.
#[test]
fn one_waits_for_a_lot() {
    model::check(4, || {
        let (hall, giver) = Hall::full(5);
        let waiter = spawn(&hall, Hall::take);
        giver.give(1);
        giver.give(1);
        assert!(waiter.join().unwrap());
        assert_eq!(hall.room.free(), 1);
    });
}

/// Gives one place of a lot of two, after which the receiver finds the queue empty. A sender then
/// waits for no more than the available places.
#[test]
fn one_waits_for_less_than_a_lot_until_the_queue_is_empty() {
    model::check(4, || {
        let (hall, giver) = Hall::full(5);
        giver.give(4);
        giver.look();
        assert!((0..4).all(|_| hall.room.try_take()));
        let waiter = spawn(&hall, Hall::take);
        giver.give(1);
        giver.look();
        // If the waiter came after the look, it waits until the next item is received.
        giver.give(1);
        giver.look();
        assert!(waiter.join().unwrap());
        assert_eq!(hall.room.free(), 1);
    });
}

/// Lets a sender that does not wait be faster: then the waiting sender gets the next place.
#[test]
fn a_place_is_taken_away_from_a_sender_that_waits() {
    model::check(3, || {
        let (hall, giver) = Hall::full(2);
        let waiter = spawn(&hall, Hall::take);
        let other = spawn(&hall, |hall| hall.room.try_take());
        giver.give(1);
        if other.join().unwrap() {
            giver.give(1);
        }
        assert!(waiter.join().unwrap());
        assert_eq!(hall.room.free(), 0);
    });
}

#[test]
fn two_take_the_last_place() {
    model::check(4, || {
        let (hall, giver) = Hall::full(2);
        let senders = [(); 2].map(|()| spawn(&hall, |hall| hall.room.try_take()));
        giver.give(1);
        let taken = senders.map(|sender| sender.join().unwrap());
        let taken = taken.into_iter().filter(|taken| *taken).count();
        assert_eq!(taken + hall.room.free(), 1, "a place was lost or doubled");
    });
}

/// Checks that a task that gives up, woken or not, leaves its wake-up to the next.
#[test]
fn one_gives_up_and_another_waits_on() {
    model::check(3, || {
        let (hall, giver) = Hall::full(1);
        let quitter = spawn(&hall, |hall| {
            let mut waiting = Waiting::new(&hall.room);
            let waited = waiting.wait(Waker::noop(), || false);
            waited.is_some()
        });
        let waiter = spawn(&hall, Hall::take);
        giver.give(1);
        if quitter.join().unwrap() {
            giver.give(1);
        }
        assert!(waiter.join().unwrap());
        assert_eq!(hall.room.free(), 0);
    });
}

/// Gives a lot of two places, of which a sender that does not wait takes one. So a task that gives
/// up may leave the next waiter without a wake-up; it then waits for the receiver.
#[test]
fn one_gives_up_beside_less_than_a_lot() {
    model::check(2, || {
        let (hall, giver) = Hall::full(5);
        let quitter = spawn(&hall, |hall| {
            let mut waiting = Waiting::new(&hall.room);
            let waited = waiting.wait(Waker::noop(), || false);
            waited.is_some()
        });
        let waiter = spawn(&hall, Hall::take);
        giver.give(2);
        let is_faster = hall.room.try_take();
        let has_place = quitter.join().unwrap();
        giver.give(usize::from(is_faster) + usize::from(has_place));
        giver.look();
        assert!(waiter.join().unwrap());
        assert_eq!(hall.room.free(), 1);
    });
}

#[test]
fn one_waits_when_the_end_comes() {
    model::check(5, || {
        let (hall, giver) = Hall::full(1);
        let waiter = spawn(&hall, Hall::take);
        hall.end(&giver);
        assert!(!waiter.join().unwrap());
    });
}

#[test]
fn two_wait_when_the_end_comes() {
    model::check(3, || {
        let (hall, giver) = Hall::full(1);
        let waiters = [(); 2].map(|()| spawn(&hall, Hall::take));
        hall.end(&giver);
        assert_eq!(waiters.map(|waiter| waiter.join().unwrap()), [false; 2]);
    });
}

#[test]
fn two_wait_when_a_place_and_the_end_come() {
    model::check(3, || {
        let (hall, giver) = Hall::full(1);
        let waiters = [(); 2].map(|()| spawn(&hall, Hall::take));
        giver.give(1);
        hall.end(&giver);
        let taken = waiters.map(|waiter| waiter.join().unwrap());
        let taken = taken.into_iter().filter(|taken| *taken).count();
        assert_eq!(taken + hall.room.free(), 1, "a place was lost or doubled");
    });
}

/// Checks that the receiver's actions before it gave places happen before the senders' actions with
/// them, also with a place whose limit another sender has read.
#[test]
fn places_are_handed_over() {
    model::check(4, || {
        let (hall, giver) = Hall::full(2);
        let senders =
            [(); 2].map(|()| spawn(&hall, |hall| hall.room.try_take().then(|| hall.read())));
        // SAFETY: no sender has a place.
        hall.value.with_mut(|value| unsafe { *value = 3 });
        giver.give(2);
        for sender in senders {
            let seen = sender.join().unwrap();
            assert!(seen.is_none_or(|value| value == 3));
        }
    });
}
