//! Tasks that set timers, and sleep.

use crate::whole::gate::Gate;
use crate::whole::timed::{Nap, churn_time};
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep, timeout_at};

/// Sets a timer and cancels it, this many times.
pub(super) async fn churn(rounds: u64, has_step: bool, gate: &'static Gate) {
    for number in 0..rounds {
        let mut sleep = pin!(sleep(churn_time(number)));
        // The first poll sets it.
        let polled = poll_fn(|context| Poll::Ready(sleep.as_mut().poll(context))).await;
        assert!(polled.is_pending());
        if has_step {
            yield_now().await;
            assert!(!sleep.is_elapsed());
        }
    }
    gate.hit();
}

/// Hits the gate when it starts, and when a message or a timer ends it.
pub(super) async fn wait(due: Instant, mut messages: UnboundedReceiver<u64>, gate: &'static Gate) {
    gate.hit();
    if let Ok(message) = timeout_at(due, messages.recv()).await {
        message.expect("a message");
    }
    gate.hit();
}

/// Sleeps for as long as it is told, again and again.
pub(super) async fn nap(mut nap: Nap, gate: &'static Gate) {
    while let Some(time) = nap.next() {
        sleep(time).await;
    }
    gate.hit();
}
