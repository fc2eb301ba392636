//! A round of the soak: producers, a consumer, and the account at the end.
//!
//! **A fault ends the round.** The thread that sees a fault sets `over`. The consumer then closes
//! its side, which ends all waiting for room. The watch finds a thread that waits for ever, because
//! a wake-up is lost.
//!
//! **Known of each item.** A producer makes its items in order, and the consumer must get them
//! without a gap. An item returned by a full channel is sent next; items returned by a closed
//! channel come last. So for each producer all items below some number are received, and none
//! above.

mod consumer;
mod drainer;
mod intake;
mod outlet;
pub(crate) mod plan;
mod producer;
pub(crate) mod tally;

use consumer::Consumer;
use drainer::Drainer;
use fastrand::Rng;
use ganger_mpsc::{Receiver, TrySendError, bounded, channel, node_cache};
use ganger_soak::chance::{one_in, yield_at_random};
use ganger_soak::load::{Kind, Load, Nothing, Wide, Word};
use ganger_soak::{Item, Ledger, Watch, message, watch};
use outlet::{Mailbox, Outlet};
use plan::{Ending, Link, Plan};
use producer::Producer;
use std::panic::resume_unwind;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;
use tally::Tally;

/// The longest time of a round, which normally takes milliseconds.
const LIMIT: Duration = Duration::from_secs(60);

/// The shared state of a round's threads.
struct Round<'a> {
    plan: &'a Plan,
    ledger: &'a Ledger,
    watch: &'a Watch,
    start: Barrier,
    /// How many producers have more to send.
    sending: AtomicUsize,
    /// How many items each producer has made. Shared, because a thread that panics returns nothing.
    made: Vec<AtomicUsize>,
    over: AtomicBool,
}

/// Ends the round when its thread panics.
struct Ends<'r, 'a>(&'r Round<'a>);

/// Runs a round. Returns an error if any check fails.
pub(crate) fn run(plan: &Plan) -> Result<Tally, String> {
    let plan = plan.clone();
    watch::within(LIMIT, move |watch| {
        let room = match plan.link {
            Link::Bounded(capacity) => capacity + 1,
            Link::Channel | Link::Queue => 0,
        };
        let ids = if plan.kind.has_ids() {
            plan.producers.len() * plan.items + room
        } else {
            0
        };
        let ledger = Ledger::new(ids);
        match plan.kind {
            Kind::Word => run_with::<Word>(&plan, &ledger, watch),
            Kind::Boxed => run_with::<Item<'_>>(&plan, &ledger, watch),
            Kind::Wide => run_with::<Wide<'_>>(&plan, &ledger, watch),
            Kind::Nothing => run_with::<Nothing>(&plan, &ledger, watch),
        }
    })
}

fn run_with<'a, L: Load<'a>>(
    plan: &'a Plan,
    ledger: &'a Ledger,
    watch: &'a Watch,
) -> Result<Tally, String> {
    let producers = plan.producers.len();
    let round = Round {
        plan,
        ledger,
        watch,
        start: Barrier::new(producers + 1),
        sending: AtomicUsize::new(producers),
        made: (0..producers).map(|_| AtomicUsize::new(0)).collect(),
        over: AtomicBool::new(false),
    };
    let (sum, extra) = match plan.link {
        Link::Channel => {
            let (sender, receiver) = channel::<L>();
            round.run_channel(Outlet::Channel(sender), receiver)
        }
        Link::Bounded(capacity) => {
            let (sender, receiver) = bounded::<L>(capacity);
            round.run_channel(Outlet::Bounded(sender), receiver)
        }
        Link::Queue => (round.run_queue::<L>(), 0),
    };
    if let Some(sum) = &sum {
        round.check_sums::<L>(sum);
    }
    let ids = round.ids(extra).filter(|_| plan.kind.has_ids());
    ledger.settle(ids).map(|()| sum.unwrap_or_default())
}

impl<'a> Round<'a> {
    /// Runs a round with a channel. Returns the sum, unless a thread has panicked, and how many
    /// items were made to measure the room.
    fn run_channel<L: Load<'a>>(
        &self,
        outlet: Outlet<'_, L>,
        receiver: Receiver<L>,
    ) -> (Option<Tally>, usize) {
        let doing = self.watch.thread("consumer", consumer::DOES);
        let kept = self.plan.keeps_sender.then(|| outlet.clone());
        let consumer = Consumer::new(self, receiver, &doing);
        let Some((mut sum, receiver)) = self.drive(outlet, || consumer.run()) else {
            return (None, 0);
        };
        let mut extra = 0;
        if let (Link::Bounded(capacity), Some(sender), Some(receiver), false) =
            (self.plan.link, kept, receiver, self.is_over())
        {
            let sent = self.fill(capacity, &sender, &receiver);
            extra = sent.min(capacity) + 1;
            sum.made += extra;
            sum.received += sent;
            sum.refused += extra - sent;
        }
        (Some(sum), extra)
    }

    fn run_queue<L: Load<'a>>(&self) -> Option<Tally> {
        let mailbox = Mailbox::<L>::new();
        let doing = self.watch.thread("consumer", drainer::DOES);
        let drainer = Drainer::new(self, &mailbox, &doing);
        let outlet = Outlet::Queue(mailbox.pusher());
        let (mut sum, ()) = self.drive(outlet, || (drainer.run(), ()))?;
        let (firsts, push_tokens, seal_tokens) = mailbox.counts();
        sum.chains += u64::from(!mailbox.queue.is_empty());
        if L::ENTERS_ITSELF {
            drop(mailbox);
        } else {
            for item in mailbox.queue.close().batch {
                item.end(self.ledger);
                sum.closed += 1;
            }
        }
        if firsts + push_tokens != sum.chains {
            let Tally { chains, .. } = sum;
            let what = format!(
                "{firsts} pushes were first, {push_tokens} took a token, \
                 and there were {chains} chains"
            );
            self.fault(what);
        }
        if push_tokens + seal_tokens + sum.own_tokens + sum.cancelled != sum.parks {
            let Tally {
                parks,
                cancelled,
                own_tokens,
                ..
            } = sum;
            let what = format!(
                "{parks} parks, of which {push_tokens} were ended by pushes, \
                 {seal_tokens} by a seal, {own_tokens} by a close and {cancelled} were cancelled"
            );
            self.fault(what);
        }
        Some(sum)
    }

    /// Runs the producers, each with its own outlet, and the consumer. Returns the sum of all, and
    /// the consumer's result, unless a thread has panicked.
    fn drive<'r, L: Load<'a>, C: Send>(
        &'r self,
        outlet: Outlet<'r, L>,
        consume: impl FnOnce() -> (Tally, C) + Send,
    ) -> Option<(Tally, C)> {
        let doing: Vec<_> = (0..self.plan.producers.len())
            .map(|index| {
                self.watch
                    .thread(format!("producer {index}"), producer::DOES)
            })
            .collect();
        // The producers borrow their entries of this list for as long as the round.
        thread::scope(|scope| {
            let consumer = scope.spawn(consume);
            let mut producers = Vec::new();
            for (index, doing) in doing.iter().enumerate() {
                let outlet = outlet.clone();
                let produce = move || Producer::new(self, index, outlet, doing).run();
                producers.push(scope.spawn(produce));
            }
            drop(outlet);
            let mut sum = Some(Tally::default());
            for producer in producers {
                let tally = self.join(producer);
                sum = sum.zip(tally).map(|(mut sum, tally)| {
                    sum += tally;
                    sum
                });
            }
            let (mut sum, (tally, rest)) = sum.zip(self.join(consumer))?;
            sum += tally;
            Some((sum, rest))
        })
    }

    fn join<T>(&self, thread: ScopedJoinHandle<'_, T>) -> Option<T> {
        match thread.join() {
            Ok(result) => Some(result),
            Err(panic) => {
                self.fault(format!("a panic: {}", message(&*panic)));
                None
            }
        }
    }

    /// Measures the room when all items are received and no other thread sends: it must be exactly
    /// `capacity` items. Returns how many fitted.
    fn fill<L: Load<'a>>(
        &self,
        capacity: usize,
        sender: &Outlet<'_, L>,
        receiver: &Receiver<L>,
    ) -> usize {
        let first = self.plan.producers.len() * self.plan.items;
        let mut sent = 0;
        for id in first..=first + capacity {
            match sender.try_send(L::new(self.ledger, id)) {
                Ok(()) => sent += 1,
                Err(error) => {
                    if !matches!(error, TrySendError::Full(_)) {
                        self.fault("closed beside a sender");
                    }
                    error.into_inner().end(self.ledger);
                    break;
                }
            }
        }
        if sent != capacity || receiver.len() != sent {
            let len = receiver.len();
            let what = format!("room for {sent} items instead of {capacity}, and then {len} in it");
            self.fault(what);
        }
        for item in receiver.drain() {
            item.end(self.ledger);
        }
        sent
    }

    /// Checks the rest, outside of the ledger: where items ended, and the number of items without
    /// an id.
    fn check_sums<L: Load<'a>>(&self, sum: &Tally) {
        let ended = sum.received + sum.closed + sum.refused;
        let may_drop = L::ENTERS_ITSELF && matches!(self.plan.consumer.ending, Ending::Drop(_));
        if ended > sum.made || ended < sum.made && !may_drop {
            let Tally {
                made,
                received,
                closed,
                refused,
                ..
            } = sum;
            let what = format!(
                "{made} items made, {received} received, {closed} returned by a close, \
                 {refused} refused"
            );
            self.fault(what);
        }
    }

    /// Returns the ids of all items made; `extra` of them measured the room.
    fn ids(&self, extra: usize) -> impl Iterator<Item = usize> {
        let items = self.plan.items;
        let producers = self.made.iter().enumerate().flat_map(move |(index, made)| {
            // Ordering: Relaxed, because the threads have been joined.
            let made = made.load(Ordering::Relaxed);
            (0..made).map(move |number| index * items + number)
        });
        let first = self.made.len() * items;
        producers.chain(first..first + extra)
    }

    /// Reports a fault, and ends the round.
    fn fault(&self, what: impl Into<String>) {
        self.ledger.fault(what);
        // Ordering: Relaxed, because it only tells others when to stop.
        self.over.store(true, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        // Ordering: Relaxed, because it only tells others when to stop.
        self.over.load(Ordering::Relaxed)
    }

    /// Returns whether all producers have sent everything.
    fn all_sent(&self) -> bool {
        // Ordering: Acquire pairs with the Release in `Producer::run`: all sends of the producers
        // happen before.
        self.sending.load(Ordering::Acquire) == 0
    }

    /// Yields or sleeps, now and then.
    fn pause(&self, random: &mut Rng) {
        yield_at_random(random, self.plan.yields);
        if one_in(random, self.plan.sleeps) {
            thread::sleep(Duration::from_micros(random.u64(1..60)));
        }
    }

    /// Changes how much memory of nodes is kept, now and then.
    fn disturb(&self, random: &mut Rng) {
        if one_in(random, self.plan.cache) {
            match random.u32(0..4) {
                0 => node_cache::set_limit(0),
                1 => node_cache::set_limit(random.usize(..node_cache::DEFAULT_LIMIT)),
                2 => node_cache::set_limit(node_cache::DEFAULT_LIMIT),
                _ => node_cache::clear(),
            }
        }
    }
}

impl Drop for Ends<'_, '_> {
    fn drop(&mut self) {
        if thread::panicking() {
            // Ordering: Relaxed, because it only tells others when to stop.
            self.0.over.store(true, Ordering::Relaxed);
        }
    }
}

/// Runs legs until a leg returns false: the first in this thread, each later leg in a new thread.
fn in_legs<S: Send>(mut state: S, leg: impl Fn(&mut S) -> bool + Sync) -> S {
    let mut goes_on = leg(&mut state);
    while goes_on {
        goes_on = thread::scope(|scope| {
            let thread = scope.spawn(|| leg(&mut state));
            thread.join().unwrap_or_else(|panic| resume_unwind(panic))
        });
    }
    state
}
