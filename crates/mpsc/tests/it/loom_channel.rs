//! Models of a blocking receive against sends, and against drops of senders: the receiver wakes for
//! every item and for the end. The model reports a lost wake-up as a deadlock.

use crate::outcomes::Outcomes;
use ganger_mpsc::{RecvError, SendError, TryRecvError, channel};
use ganger_sync::cell::UnsafeCell;
use ganger_sync::sync::Arc;
use ganger_sync::{model, thread};

/// A value that a sender writes before its drop.
struct Farewell(UnsafeCell<u32>);

// SAFETY: the value is written before its sender is dropped, and read after the end; the model
// checks that these are ordered.
unsafe impl Sync for Farewell {}

#[test]
fn recv_against_send_and_drop() {
    model::check(3, || {
        let (sender, receiver) = channel();
        let thread = thread::spawn(move || {
            sender.send(1).unwrap();
            sender.send(2).unwrap();
        });
        assert_eq!(receiver.recv(), Ok(1));
        assert_eq!(receiver.recv(), Ok(2));
        assert_eq!(receiver.recv(), Err(RecvError));
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
        thread.join().unwrap();
    });
}

#[test]
fn recv_against_two_senders_that_go() {
    model::check(3, || {
        let (sender, receiver) = channel();
        let threads = [1, 2].map(|item| {
            let sender = sender.clone();
            thread::spawn(move || sender.send(item).unwrap())
        });
        drop(sender);
        let mut items: Vec<u32> = receiver.iter().collect();
        items.sort_unstable();
        assert_eq!(items, [1, 2]);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

/// Checks that the end happens after all actions of every sender.
#[test]
fn the_last_sender_goes_without_a_word() {
    model::check(3, || {
        let (sender, receiver) = channel::<u32>();
        let other = sender.clone();
        let threads = [sender, other].map(|sender| {
            let farewell = Arc::new(Farewell(UnsafeCell::new(0)));
            let written = Arc::clone(&farewell);
            let thread = thread::spawn(move || {
                // SAFETY: the receiver reads it after this sender is gone.
                written.0.with_mut(|farewell| unsafe { *farewell = 7 });
                drop(sender);
            });
            (thread, farewell)
        });
        assert_eq!(receiver.recv(), Err(RecvError));
        for (thread, farewell) in threads {
            // SAFETY: the end has come, so both senders are gone.
            assert_eq!(farewell.0.with(|farewell| unsafe { *farewell }), 7);
            thread.join().unwrap();
        }
    });
}

/// Checks that the receiver gets an item that comes between its drain and the end.
#[test]
fn try_recv_against_send_and_drop() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model::check(4, move || {
        let (sender, receiver) = channel();
        let thread = thread::spawn(move || sender.send(1).unwrap());
        thread::yield_now();
        let first = receiver.try_recv();
        let second = receiver.try_recv();
        seen.note((
            first.ok(),
            second.is_ok(),
            second == Err(TryRecvError::Empty),
        ));
        thread.join().unwrap();
        match first {
            Ok(_) => assert!(second.is_err()),
            Err(TryRecvError::Empty) => assert_eq!(second.or(receiver.try_recv()), Ok(1)),
            Err(TryRecvError::Disconnected) => panic!("an item was taken for the end"),
        }
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    });
    outcomes.check([
        (None, false, true),
        (None, true, false),
        (Some(1), false, true),
        (Some(1), false, false),
    ]);
}

#[test]
fn a_receiver_that_goes_against_sends() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model::check(4, move || {
        let counter = Arc::new(());
        let (sender, receiver) = channel();
        let thread = {
            let counter = Arc::clone(&counter);
            thread::spawn(move || {
                let first = sender.send(Arc::clone(&counter)).is_ok();
                let second = sender.send(counter).map_err(SendError::into_inner).is_ok();
                (first, second)
            })
        };
        drop(receiver);
        seen.note(thread.join().unwrap());
        assert_eq!(Arc::strong_count(&counter), 1);
    });
    outcomes.check([(false, false), (true, false), (true, true)]);
}

#[test]
fn a_close_against_sends() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model::check(4, move || {
        let (sender, receiver) = channel();
        let thread = thread::spawn(move || {
            let refused = [1, 2].map(|item| sender.send(item).err().map(SendError::into_inner));
            assert!(refused[1].is_none() || sender.is_closed());
            refused
        });
        thread::yield_now();
        let mut items: Vec<u32> = receiver.try_recv().into_iter().collect();
        let received = items.len();
        items.extend(receiver.close());
        assert_eq!(receiver.recv(), Err(RecvError));
        seen.note((received, items.len()));
        items.extend(thread.join().unwrap().into_iter().flatten());
        assert_eq!(items, [1, 2]);
    });
    outcomes.check([(0, 0), (0, 1), (0, 2), (1, 1), (1, 2)]);
}
