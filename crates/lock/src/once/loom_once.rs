//! Calls for the same key that leave: the last call takes the key away.

use super::SingleFlight;
use ganger_sync::sync::Arc;
use ganger_sync::{model, thread};
use std::future::pending;
use std::pin::pin;
use std::task::{Context, Waker};

#[test]
fn the_last_call_that_leaves_without_a_value_takes_the_key_away() {
    model::check(3, || {
        let flights = Arc::new(SingleFlight::<u8, ()>::new());
        let leaves = |flights: &SingleFlight<u8, ()>| {
            let run = pin!(flights.run(7, async || pending().await));
            let polled = run.poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_pending());
        };
        let other = Arc::clone(&flights);
        let other = thread::spawn(move || leaves(&other));
        leaves(&flights);
        other.join().unwrap();
        assert!(flights.is_empty());
    });
}
