//! A consumer with 64 waiting items. Several queues are filled, and then all are emptied. Only the
//! emptying is measured, with a single pair of clock readings for all of them.

use super::contest::Workload;
use super::payload::{Payload, weight_to};
use super::traits::{Drains, Mailbox};
use crate::contest::{Run, nanoseconds};
use std::time::{Duration, Instant};

/// How many items wait in each queue.
const ITEMS: u64 = 64;

/// Enough to make reading the clock cheap, and few enough for the cache of a core.
const QUEUES: usize = 8;

/// The time of an item, received singly.
#[derive(Clone, Copy, Debug)]
pub struct Drain {
    /// How many times the queues are filled and emptied.
    pub rounds: u64,
}

impl<P: Payload> Workload<P> for Drain {
    fn name(&self) -> String {
        format!("take {ITEMS} that wait, an item")
    }

    fn metrics(&self) -> &'static [&'static str] {
        &["ns"]
    }

    fn prepare<M: Mailbox<P>>(&self) -> Run {
        self.with(|mailboxes: &mut [M], _| {
            let one_by_one = |mailbox: &mut M| -> u64 {
                let items = (0..ITEMS).map(|_| mailbox.try_recv());
                items.map(|item| item.map_or(0, P::weight)).sum()
            };
            mailboxes.iter_mut().map(one_by_one).sum()
        })
    }
}

impl Drain {
    /// The same, all at once: the drain, and taking the items out of the batch.
    #[must_use]
    pub fn at_once<P: Payload, M: Drains<P>>(&self) -> Run {
        self.with(|mailboxes: &mut [M], _| {
            let drained = mailboxes.iter_mut().map(|mailbox| {
                let batch = mailbox.drain().into_iter();
                batch.map(P::weight).sum::<u64>()
            });
            drained.sum()
        })
    }

    /// The drain alone.
    #[must_use]
    pub fn alone<P: Payload, M: Drains<P>>(&self) -> Run {
        let mut batches = Vec::with_capacity(QUEUES);
        self.with(move |mailboxes: &mut [M], time| {
            let start = Instant::now();
            batches.extend(mailboxes.iter_mut().map(M::drain));
            *time = Some(start.elapsed());
            batches.drain(..).flatten().map(P::weight).sum()
        })
    }

    /// Empties the queues by `empty`, which returns the weight of all items, and the time if it
    /// differs from the whole.
    fn with<P: Payload, M: Mailbox<P>>(
        self,
        mut empty: impl FnMut(&mut [M], &mut Option<Duration>) -> u64 + 'static,
    ) -> Run {
        Box::new(move || {
            let (senders, mut mailboxes): (Vec<_>, Vec<M>) =
                (0..QUEUES).map(|_| M::channel()).unzip();
            let mut total = Duration::ZERO;
            // The first round warms the queues up.
            for round in 0..=self.rounds {
                for sender in &senders {
                    for number in 1..=ITEMS {
                        M::send(sender, P::of(number));
                    }
                }
                let mut own_time = None;
                let start = Instant::now();
                let weight = empty(&mut mailboxes, &mut own_time);
                let time = own_time.unwrap_or_else(|| start.elapsed());
                assert_eq!(weight, QUEUES as u64 * weight_to::<P>(ITEMS));
                if round > 0 {
                    total += time;
                }
            }
            vec![nanoseconds(total, self.rounds * QUEUES as u64 * ITEMS)]
        })
    }
}
