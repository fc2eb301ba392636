//! Producers that send many items at the price of a single send.

use super::ganger::Ganger;
use super::payload::Payload;
use super::producers::{Producers, consume, poll_all, send_each};
use super::traits::Mailbox;
use crate::contest::{Contest, Run, nanoseconds};

/// How many items are sent at once.
const GROUP: u64 = 16;

/// The time of a message: in all, and of the producers alone. The consumer drains, so that the
/// producers do not wait for it.
#[derive(Clone, Copy, Debug)]
pub struct PushAll(
    /// The sending threads. Each sends a multiple of 16.
    pub Producers,
);

impl PushAll {
    /// Compares groups by `send_all` with single sends.
    #[must_use]
    pub fn contest<P: Payload>(self) -> Contest {
        let name = format!("{} producers, groups of {GROUP}", self.0.producers);
        let entrants = vec![(
            <Ganger<P> as Mailbox<P>>::NAME,
            self.with::<P>(send_groups::<P>),
        )];
        Contest::new(
            super::contest::title::<P>(&name),
            &["wall ns", "producers' CPU ns"],
            entrants,
        )
        .and(
            "ganger-mpsc, one by one",
            self.with::<P>(send_each::<P, Ganger<P>>),
        )
    }

    fn with<P: Payload>(self, send: fn(&ganger_mpsc::Sender<P>, u64)) -> Run {
        let Self(producers) = self;
        assert!(producers.each.is_multiple_of(GROUP));
        Box::new(move || {
            let times = producers.run::<P, Ganger<P>>(send, |mailbox, tally, over| {
                consume(mailbox, tally, over, poll_all::<P, Ganger<P>>);
            });
            let messages = producers.messages();
            vec![
                nanoseconds(times.wall, messages),
                nanoseconds(times.producing, messages),
            ]
        })
    }
}

/// Sends the numbers from 1 on.
fn send_groups<P: Payload>(sender: &ganger_mpsc::Sender<P>, messages: u64) {
    for group in 0..messages / GROUP {
        let first = group * GROUP + 1;
        let items = (first..first + GROUP).map(P::of);
        assert!(sender.send_all(items).is_ok(), "the consumer is gone");
    }
}
