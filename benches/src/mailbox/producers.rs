//! Several producers, each a thread, and a consumer that polls, drains, or sleeps.
//!
//! Threads run where the system puts them: with more threads than processors a producer shares a
//! processor with the consumer or with another producer, as in programs.

use super::peers::{AsyncChannel, Crossbeam, Flume, Ganger, Kanal, Std, Tokio};
use super::{Drains, Mailbox, Payload, Waits, Workload, title, weight_to};
use crate::contest::cpu::Clocks;
use crate::contest::{Contest, Run, nanoseconds};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use std::{hint, thread};

/// The number of the consumer's empty looks before it lets other threads run.
const SPINS: u32 = 64;

/// The time of a message, from the first send to the last receive.
#[derive(Clone, Copy)]
pub(super) struct Producers {
    /// How many threads send.
    pub(super) producers: usize,
    /// How many messages each sends.
    pub(super) each: u64,
}

/// The items of the consumer so far.
#[derive(Debug, Default)]
struct Tally {
    items: u64,
    weight: u64,
}

/// The times of a run.
struct Times {
    /// Until the consumer had everything.
    wall: Duration,
    /// The processor time of all producers.
    producing: Duration,
}

impl<P: Payload> Workload<P> for Producers {
    fn prepare<M: Mailbox<P>>(&self) -> Run {
        self.with(poll::<P, M>)
    }
}

impl Producers {
    /// Prepares the run with a consumer that drains.
    pub(super) fn draining<P: Payload, M: Drains<P>>(&self) -> Run {
        self.with(poll_all::<P, M>)
    }

    fn with<P: Payload, M: Mailbox<P>>(
        self,
        take: impl Fn(&mut M, &mut Tally) -> bool + Copy + 'static,
    ) -> Run {
        Box::new(move || {
            let times = self.run::<P, M>(send_each::<P, M>, |mailbox, tally, over| {
                consume(mailbox, tally, over, take);
            });
            vec![nanoseconds(times.wall, self.messages())]
        })
    }

    /// Returns how many messages all producers send.
    fn messages(self) -> u64 {
        self.producers as u64 * self.each
    }

    /// Starts the producers, each with its number of messages, and a consumer here. The consumer
    /// receives until it has all messages or until no more can come.
    fn run<P: Payload, M: Mailbox<P>>(
        self,
        produce: impl Fn(&M::Sender, u64) + Copy + Send,
        consume: impl FnOnce(&mut M, &mut Tally, &Over),
    ) -> Times {
        let (sender, mut mailbox) = M::channel();
        let start = Barrier::new(self.producers + 1);
        let over = Over {
            producers: AtomicUsize::new(self.producers),
            messages: self.messages(),
        };
        thread::scope(|scope| {
            let producer = |_| {
                let (sender, start, over) = (sender.clone(), &start, &over);
                scope.spawn(move || {
                    let _leaving = Leaving(over);
                    start.wait();
                    let clocks = Clocks::start();
                    produce(&sender, self.each);
                    clocks.thread()
                })
            };
            let producers: Vec<_> = (0..self.producers).map(producer).collect();
            drop(sender);
            let mut tally = Tally::default();
            start.wait();
            let clocks = Clocks::start();
            consume(&mut mailbox, &mut tally, &over);
            let wall = clocks.wall();
            let joined = producers.into_iter().map(thread::ScopedJoinHandle::join);
            let producing = joined
                .map(|time| time.expect("a producer does not panic"))
                .sum();
            let weight = self.producers as u64 * weight_to::<P>(self.each);
            assert_eq!((tally.items, tally.weight), (over.messages, weight));
            Times { wall, producing }
        })
    }
}

/// When the consumer is done.
#[derive(Debug)]
struct Over {
    /// How many producers have not left.
    producers: AtomicUsize,
    /// How many messages all send.
    messages: u64,
}

/// Tells the consumer that a producer has left, whether it returned or panicked.
struct Leaving<'a>(&'a Over);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        // Ordering: Release, pairs with the Acquire in `consume`: a consumer that sees all
        // producers gone sees their messages.
        self.0.producers.fetch_sub(1, Ordering::Release);
    }
}

impl Tally {
    #[inline]
    fn add<P: Payload>(&mut self, item: P) {
        self.items += 1;
        self.weight += item.weight();
    }

    /// Returns whether all messages have come.
    #[inline]
    fn is_full(&self, over: &Over) -> bool {
        self.items >= over.messages
    }
}

/// Sends the numbers from 1 on, singly.
fn send_each<P: Payload, M: Mailbox<P>>(sender: &M::Sender, messages: u64) {
    for number in 1..=messages {
        M::send(sender, P::of(number));
    }
}

/// Polls until everything has come, or nothing more will. `take` says whether there was something.
#[inline(never)]
fn consume<M>(
    mailbox: &mut M,
    tally: &mut Tally,
    over: &Over,
    take: impl Fn(&mut M, &mut Tally) -> bool,
) {
    let mut misses = 0;
    while !tally.is_full(over) {
        if take(mailbox, tally) {
            misses = 0;
        } else if misses < SPINS {
            misses += 1;
            hint::spin_loop();
        } else {
            // Ordering: Acquire, pairs with the Release of `Leaving`.
            let all_left = over.producers.load(Ordering::Acquire) == 0;
            if all_left && !take(mailbox, tally) {
                return;
            }
            thread::yield_now();
        }
    }
}

/// Takes an item.
#[inline]
fn poll<P: Payload, M: Mailbox<P>>(mailbox: &mut M, tally: &mut Tally) -> bool {
    let item = mailbox.try_recv();
    item.map(|item| tally.add(item)).is_some()
}

/// Takes all items.
#[inline]
fn poll_all<P: Payload, M: Drains<P>>(mailbox: &mut M, tally: &mut Tally) -> bool {
    let batch = mailbox.drain();
    let is_something = !batch.is_empty();
    batch.into_iter().for_each(|item| tally.add(item));
    is_something
}

/// The time of a message of a stream. The consumer sleeps whenever it is faster than the producers.
#[derive(Clone, Copy)]
pub(super) struct Blocking {
    /// The number of messages.
    pub(super) messages: u64,
}

impl Blocking {
    /// Returns the contest of all queues whose consumer can sleep.
    pub(super) fn contest<P: Payload>(self) -> Contest {
        let entrants = vec![
            self.entrant::<P, Ganger<P>>(),
            self.entrant::<P, Std<P>>(),
            self.entrant::<P, Crossbeam<P>>(),
            self.entrant::<P, Flume<P>>(),
            self.entrant::<P, Kanal<P>>(),
            self.entrant::<P, Tokio<P>>(),
            self.entrant::<P, AsyncChannel<P>>(),
        ];
        Contest::new(title::<P>("1 producer, blocking"), &["ns"], entrants)
    }

    fn entrant<P: Payload, M: Waits<P>>(self) -> (&'static str, Run) {
        let producers = Producers {
            producers: 1,
            each: self.messages,
        };
        let run = move || {
            let times = producers.run::<P, M>(send_each::<P, M>, |mailbox, tally, over| {
                while !tally.is_full(over) {
                    let Some(item) = mailbox.recv() else { break };
                    tally.add(item);
                }
            });
            vec![nanoseconds(times.wall, producers.messages())]
        };
        (M::NAME, Box::new(run))
    }
}

/// How many items are sent at once.
const GROUP: u64 = 16;

/// The time of a message: in all, and of the producers alone. The consumer drains, so that the
/// producers do not wait for it.
#[derive(Clone, Copy)]
pub(super) struct PushAll(
    /// The sending threads. Each sends a multiple of 16.
    pub(super) Producers,
);

impl PushAll {
    /// Compares groups by `send_all` with single sends.
    pub(super) fn contest<P: Payload>(self) -> Contest {
        let name = format!("{} producers, groups of {GROUP}", self.0.producers);
        let entrants = vec![(
            <Ganger<P> as Mailbox<P>>::NAME,
            self.with::<P>(send_groups::<P>),
        )];
        Contest::new(
            title::<P>(&name),
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// Loses the number 7.
    struct Lossy(Receiver<[u64; 1]>);

    impl Mailbox<[u64; 1]> for Lossy {
        const NAME: &'static str = "lossy";
        type Sender = Sender<[u64; 1]>;

        fn channel() -> (Self::Sender, Self) {
            let (sender, receiver) = channel();
            (sender, Self(receiver))
        }

        fn send(sender: &Self::Sender, item: [u64; 1]) {
            if item != [7] {
                sender.send(item).unwrap();
            }
        }

        fn try_recv(&mut self) -> Option<[u64; 1]> {
            self.0.try_recv().ok()
        }
    }

    #[test]
    fn a_lost_message_is_noticed() {
        let outcome = |each| {
            let producers = Producers { producers: 2, each };
            catch_unwind(|| Workload::<[u64; 1]>::prepare::<Lossy>(&producers)())
        };
        assert!(outcome(6).is_ok());
        assert!(outcome(100).is_err());
    }
}
