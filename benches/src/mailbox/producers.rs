//! Several producers, each a thread, and a consumer that polls.
//!
//! Threads run where the system puts them: with more threads than processors a producer shares a
//! processor with the consumer or with another producer, as in programs.

use super::contest::Workload;
use super::payload::{Payload, weight_to};
use super::traits::{Drains, Mailbox};
use crate::contest::cpu::Clocks;
use crate::contest::{Run, nanoseconds};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use std::{hint, thread};

/// The number of the consumer's empty looks before it lets other threads run.
const SPINS: u32 = 64;

/// The time of a message, from the first send to the last receive.
#[derive(Clone, Copy, Debug)]
pub struct Producers {
    /// How many threads send.
    pub producers: usize,
    /// How many messages each sends.
    pub each: u64,
}

/// The items that the consumer got.
#[derive(Debug, Default)]
pub(super) struct Tally {
    items: u64,
    weight: u64,
}

/// How long it took.
pub(super) struct Times {
    /// Until the consumer had everything.
    pub(super) wall: Duration,
    /// The processors' time that all producers used.
    pub(super) producing: Duration,
}

impl<P: Payload> Workload<P> for Producers {
    fn name(&self) -> String {
        format!("{} producers, polling", self.producers)
    }

    fn metrics(&self) -> &'static [&'static str] {
        &["ns"]
    }

    fn prepare<M: Mailbox<P>>(&self) -> Run {
        self.with(poll::<P, M>)
    }
}

impl Producers {
    /// The same with a consumer that drains.
    #[must_use]
    pub fn draining<P: Payload, M: Drains<P>>(&self) -> Run {
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

    /// How many messages all send.
    pub(super) fn messages(self) -> u64 {
        self.producers as u64 * self.each
    }

    /// Starts the producers, each with its number of messages, and a consumer here. The consumer
    /// receives until it has all messages or until no more can come.
    pub(super) fn run<P: Payload, M: Mailbox<P>>(
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
pub(super) struct Over {
    /// How many producers have not left.
    producers: AtomicUsize,
    /// How many messages all send.
    messages: u64,
}

/// Tells the consumer that a producer has left, whether it returned or panicked.
struct Leaving<'a>(&'a Over);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        // Ordering: Release, pairs with the Acquire in `consume`: a consumer that sees that all
        // have left sees their messages.
        self.0.producers.fetch_sub(1, Ordering::Release);
    }
}

impl Tally {
    #[inline]
    pub(super) fn add<P: Payload>(&mut self, item: P) {
        self.items += 1;
        self.weight += item.weight();
    }

    /// Whether everything has come.
    #[inline]
    pub(super) fn is_full(&self, over: &Over) -> bool {
        self.items >= over.messages
    }
}

/// Sends the numbers from 1 on, singly.
pub(super) fn send_each<P: Payload, M: Mailbox<P>>(sender: &M::Sender, messages: u64) {
    for number in 1..=messages {
        M::send(sender, P::of(number));
    }
}

/// Polls until everything has come, or nothing more will. `take` says whether there was something.
#[inline(never)]
pub(super) fn consume<M>(
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
pub(super) fn poll_all<P: Payload, M: Drains<P>>(mailbox: &mut M, tally: &mut Tally) -> bool {
    let batch = mailbox.drain();
    let is_something = !batch.is_empty();
    batch.into_iter().for_each(|item| tally.add(item));
    is_something
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// Loses the number 7.
    struct Lossy(Receiver<u64>);

    impl Mailbox<u64> for Lossy {
        const NAME: &'static str = "lossy";
        type Sender = Sender<u64>;

        fn channel() -> (Self::Sender, Self) {
            let (sender, receiver) = channel();
            (sender, Self(receiver))
        }

        fn send(sender: &Self::Sender, item: u64) {
            if item != 7 {
                sender.send(item).unwrap();
            }
        }

        fn try_recv(&mut self) -> Option<u64> {
            self.0.try_recv().ok()
        }
    }

    #[test]
    fn a_lost_message_is_noticed() {
        let outcome = |each| {
            let producers = Producers { producers: 2, each };
            catch_unwind(|| Workload::<u64>::prepare::<Lossy>(&producers)())
        };
        assert!(outcome(6).is_ok());
        assert!(outcome(100).is_err());
    }
}
