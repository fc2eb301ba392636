//! Queues of large items need no stack for items not yet sent.
#![cfg(not(ganger_loom))]

use ganger_mpsc::{Injector, Queue, bounded, channel};
use std::thread;

const LARGE: usize = 320 * 1_024;

#[test]
fn empty_queues_of_large_items_are_made_and_dropped_on_a_stack_smaller_than_an_item() {
    let thread = thread::Builder::new().stack_size(LARGE / 2).spawn(|| {
        let queue = Queue::<[u8; LARGE]>::new();
        assert!(queue.is_empty());
        assert!(Injector::<[u8; LARGE]>::new().is_empty());
        let (unbounded, receiver) = channel::<[u8; LARGE]>();
        assert!(receiver.is_empty());
        drop((unbounded, receiver));
        let (sender, receiver) = bounded::<[u8; LARGE]>(100_000);
        assert!(receiver.is_empty());
        drop((sender, receiver));
    });
    thread.unwrap().join().unwrap();
}
