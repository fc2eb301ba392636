//! Models of the receiver's count of items while senders send.

use crate::outcomes::Outcomes;
use ganger_mpsc::{Receiver, Sender, channel};
use ganger_sync::thread::JoinHandle;
use ganger_sync::{model, thread};

fn spawn(sender: &Sender<u32>, items: std::ops::Range<u32>) -> JoinHandle<()> {
    let sender = sender.clone();
    thread::spawn(move || items.for_each(|item| sender.send(item).unwrap()))
}

/// Counts the items, and checks the count against `is_empty`.
fn count(receiver: &Receiver<u32>) -> usize {
    let some = !receiver.is_empty();
    let len = receiver.len();
    assert!(len >= usize::from(some));
    len
}

#[test]
fn counting_against_two_senders() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model::check(4, move || {
        let (sender, receiver) = channel();
        let threads = [spawn(&sender, 0..2), spawn(&sender, 2..3)];
        thread::yield_now();
        let lens = [count(&receiver), count(&receiver)];
        assert!(lens.is_sorted(), "nobody receives, and there are fewer");
        seen.note(lens[0]);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(receiver.len(), 3);
        assert_eq!(receiver.drain().len(), 3);
        assert_eq!(receiver.len(), 0);
    });
    outcomes.check(0..=3);
}

#[test]
fn counting_what_is_drained_and_what_is_not() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model::check(4, move || {
        let (sender, receiver) = channel();
        sender.send_all(0..3).unwrap();
        let thread = spawn(&sender, 3..5);
        thread::yield_now();
        assert_eq!(receiver.recv(), Ok(0));
        let len = count(&receiver);
        seen.note(len);
        assert_eq!(receiver.recv(), Ok(1));
        assert!(count(&receiver) + 1 >= len);
        thread.join().unwrap();
        assert_eq!(receiver.len(), 3);
        assert!(receiver.try_iter().eq(2..5));
        assert_eq!(receiver.len(), 0);
    });
    outcomes.check(2..=4);
}
