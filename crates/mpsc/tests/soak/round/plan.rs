//! The parameters of a round of the soak, drawn from its seed.

use fastrand::Rng;
use ganger_soak::Kind;
use ganger_soak::chance::pick;

/// A round's parameters.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) kind: Kind,
    pub(crate) link: Link,
    /// How many items each producer makes at most.
    pub(crate) items: usize,
    pub(crate) producers: Vec<Producer>,
    pub(crate) consumer: Consumer,
    /// Whether a sender is kept until the end, to measure the room of a bounded channel.
    pub(crate) keeps_sender: bool,
    /// How rarely a thread yields; 0 is never. The same for the next two: sleeping, and changing
    /// the memory of nodes.
    pub(crate) yields: u32,
    pub(crate) sleeps: u32,
    pub(crate) cache: u32,
}

/// The link between the producers and the consumer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Link {
    Channel,
    Bounded(usize),
    /// A queue without a channel: producers and consumer wake each other.
    Queue,
}

/// A producer's parameters.
#[derive(Clone, Debug)]
pub(crate) struct Producer {
    pub(crate) seed: u64,
    pub(crate) ops: Vec<Give>,
    /// How many items a call sends at most.
    pub(crate) burst: usize,
    /// How rarely it clones its sender, and goes on with the clone or the original; 0 is never.
    pub(crate) clones: u32,
    /// How rarely it ends early; 0 is never.
    pub(crate) leaves: u32,
    /// After how many refused sends it ends.
    pub(crate) refusals: usize,
    /// After how many calls it goes on in another thread.
    pub(crate) leg: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Give {
    Send,
    SendAll,
    SendTimeout,
    TrySend,
}

/// The consumer's parameters.
#[derive(Clone, Debug)]
pub(crate) struct Consumer {
    pub(crate) seed: u64,
    pub(crate) ops: Vec<Take>,
    /// The highest number of items in a call for single items.
    pub(crate) burst: usize,
    /// Whether it keeps drained items for a while.
    pub(crate) keeps: bool,
    pub(crate) ending: Ending,
    pub(crate) leg: usize,
}

/// How the consumer takes items. The consumer of a queue only drains. For it, the value tells its
/// action on an empty queue: it yields, sleeps, or sleeps for a short time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Take {
    TryRecv,
    Recv,
    RecvTimeout,
    Drain,
    TryIter,
    Len,
}

/// When the consumer stops.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ending {
    /// Stops when no item will come.
    Last,
    /// Closes its side after this many items.
    Close(usize),
    /// Drops its side after this many items.
    Drop(usize),
}

impl ganger_soak::Plan for Plan {
    fn new(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let links = [1, 2, 16, 1_000].map(Link::Bounded);
        let links = [links, [Link::Channel; 4], [Link::Queue; 4]].concat();
        let link = *pick(&mut random, &links);
        // Most rounds are short, for beginnings and ends; some are long, so that memory is reused.
        let mut items = random.usize(1..64) << random.u32(0..9);
        if let Link::Bounded(capacity) = link {
            // A round takes long if the sender waits for nearly every item.
            items = items.min(1_000 * capacity);
        }
        let producers = random.usize(1..=8);
        let all = items * producers;
        Self {
            kind: *pick(&mut random, &Kind::ALL),
            link,
            items,
            producers: (0..producers).map(|_| Producer::new(&mut random)).collect(),
            consumer: Consumer::new(&mut random, all),
            keeps_sender: matches!(link, Link::Bounded(_)) && random.bool(),
            yields: *pick(&mut random, &[8, 64, 1_000]),
            sleeps: *pick(&mut random, &[0, 0, 500, 5_000]),
            cache: *pick(&mut random, &[0, 0, 20, 300]),
        }
    }
}

impl Producer {
    fn new(random: &mut Rng) -> Self {
        const GIVES: [Give; 4] = [Give::Send, Give::SendAll, Give::SendTimeout, Give::TrySend];
        Self {
            seed: random.u64(..),
            ops: mix(random, &GIVES),
            burst: *pick(random, &[1, 3, 100]),
            clones: *pick(random, &[0, 10, 200]),
            leaves: *pick(random, &[0, 0, 300, 5_000]),
            refusals: *pick(random, &[1, 1, 3]),
            leg: leg(random),
        }
    }
}

impl Consumer {
    /// Draws the parameters for a round with at most `all` items.
    fn new(random: &mut Rng, all: usize) -> Self {
        const TAKES: [Take; 5] = [
            Take::TryRecv,
            Take::Recv,
            Take::RecvTimeout,
            Take::Drain,
            Take::TryIter,
        ];
        let mut ops = mix(random, &TAKES);
        if random.bool() {
            ops.push(Take::Len);
        }
        let after = random.usize(0..=all);
        Self {
            seed: random.u64(..),
            ops,
            burst: *pick(random, &[1, 4, 100]),
            keeps: random.bool(),
            ending: *pick(
                random,
                &[
                    Ending::Last,
                    Ending::Last,
                    Ending::Close(after),
                    Ending::Drop(after),
                ],
            ),
            leg: leg(random),
        }
    }
}

/// Draws one to four of `all`, perhaps some more than once.
fn mix<T: Copy>(random: &mut Rng, all: &[T]) -> Vec<T> {
    (0..random.u32(1..=4)).map(|_| *pick(random, all)).collect()
}

fn leg(random: &mut Rng) -> usize {
    *pick(random, &[usize::MAX, usize::MAX, 4_000, 200])
}
