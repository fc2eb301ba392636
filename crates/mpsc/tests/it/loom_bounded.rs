//! Models of a bounded channel: waiting senders against a receiver that takes items, or is dropped.
//! The model reports a deadlock if a sender or receiver sleeps without an end.

use crate::outcomes::Outcomes;
use ganger_mpsc::{SendError, TryRecvError, TrySendError, bounded};
use ganger_sync::{model, thread};

#[test]
fn two_senders_have_room_for_one_item() {
    model::check(2, || {
        let (sender, receiver) = bounded(1);
        let threads = [1, 2].map(|item| {
            let sender = sender.clone();
            thread::spawn(move || sender.send(item).unwrap())
        });
        let mut items = [receiver.recv().unwrap(), receiver.recv().unwrap()];
        items.sort_unstable();
        assert_eq!(items, [1, 2]);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(sender.try_send(3), Ok(()), "a place was lost");
        assert_eq!(sender.try_send(4), Err(TrySendError::Full(4)));
    });
}

#[test]
fn a_sender_waits_and_the_receiver_goes() {
    model::check(4, || {
        let (sender, receiver) = bounded(1);
        sender.send(1).unwrap();
        let thread = thread::spawn(move || sender.send(2));
        drop(receiver);
        assert_eq!(thread.join().unwrap(), Err(SendError(2)));
    });
}

/// Checks that each item is received, returned by the close, or given back.
#[test]
fn a_sender_waits_while_one_is_received_and_the_rest_refused() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model::check(4, move || {
        let (sender, receiver) = bounded(1);
        sender.send(1).unwrap();
        let thread = thread::spawn(move || {
            let refused = [2, 3].map(|item| sender.send(item).err().map(SendError::into_inner));
            assert!(sender.is_closed());
            refused
        });
        let mut items = vec![receiver.recv().unwrap()];
        items.extend(receiver.close());
        seen.note(items.len());
        items.extend(thread.join().unwrap().into_iter().flatten());
        assert_eq!(items, [1, 2, 3]);
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    });
    outcomes.check([1, 2]);
}

#[test]
fn trying_to_send_against_trying_to_receive() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model::check(4, move || {
        let (sender, receiver) = bounded(1);
        sender.send(1).unwrap();
        let thread = thread::spawn(move || sender.try_send(2));
        assert_eq!(receiver.try_recv(), Ok(1));
        thread::yield_now();
        let next = receiver.try_recv();
        let sent = thread.join().unwrap();
        match sent {
            Ok(()) => assert_eq!(next.or_else(|_| receiver.try_recv()), Ok(2)),
            Err(refused) => {
                assert_eq!(refused, TrySendError::Full(2));
                assert_eq!(receiver.len(), 0);
            }
        }
        seen.note((sent.is_ok(), next.is_ok()));
    });
    outcomes.check([(false, false), (true, false), (true, true)]);
}
