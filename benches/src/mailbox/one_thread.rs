//! A single thread that sends a burst to itself, and receives it.

use super::contest::Workload;
use super::payload::{Payload, weight_to};
use super::traits::Mailbox;
use crate::contest::{Run, nanoseconds};
use std::time::Instant;

/// The time of a message, sent and received.
#[derive(Clone, Copy, Debug)]
pub struct OneThread {
    /// How many messages are sent before the first is received.
    pub burst: u64,
    /// How many bursts.
    pub rounds: u64,
}

impl<P: Payload> Workload<P> for OneThread {
    fn name(&self) -> String {
        format!("one thread, bursts of {}", self.burst)
    }

    fn metrics(&self) -> &'static [&'static str] {
        &["ns"]
    }

    fn prepare<M: Mailbox<P>>(&self) -> Run {
        let Self { burst, rounds } = *self;
        Box::new(move || {
            let (sender, mut mailbox) = M::channel();
            cycle(&sender, &mut mailbox, burst, 1);
            let start = Instant::now();
            let weight = cycle(&sender, &mut mailbox, burst, rounds);
            let time = start.elapsed();
            assert_eq!(weight, rounds * weight_to::<P>(burst));
            vec![nanoseconds(time, burst * rounds)]
        })
    }
}

/// Sends the numbers from 1 to `burst`, and receives as many, `rounds` times. Returns the weight of
/// the received messages.
#[inline(never)]
pub(super) fn cycle<P: Payload, M: Mailbox<P>>(
    sender: &M::Sender,
    mailbox: &mut M,
    burst: u64,
    rounds: u64,
) -> u64 {
    let mut weight = 0;
    for _ in 0..rounds {
        for number in 1..=burst {
            M::send(sender, P::of(number));
        }
        for _ in 0..burst {
            weight += mailbox.try_recv().map_or(0, P::weight);
        }
    }
    weight
}
