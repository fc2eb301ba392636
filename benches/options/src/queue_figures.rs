//! The workloads of queues: the figures that count, and their targets.
//!
//! A run of queues measures further figures: how often thieves succeed, an owner's wall-clock time
//! in addition to its own time, and figures that repeat another figure. Such figures are shown, but
//! counting them would count a thing several times. A test of the runs checks every figure that
//! peers have, too: it counts, or has a reason not to.

use super::catalog::Goal::{Best, BestIn, Just, Of, OursIn};
use super::catalog::{Goal, Id, Metric, Peer, Spec};

/// With light fences, which Linux has. With full fences the target is a tie with crossbeam-deque.
const PUSH_POP: &[Goal] = &[Of(Peer::CrossbeamDeque, 0.35), Of(Peer::St3, 0.45)];

const STEAL: &[Goal] = &[Of(Peer::CrossbeamDeque, 0.15), Of(Peer::St3, 1.1)];

/// Of deques.
const DEQUE_FIGURES: &[Metric] = &[
    Metric::new("push+pop, depth 1", "ns").to(PUSH_POP),
    Metric::new("push+pop, depth 8", "ns").to(PUSH_POP),
    Metric::new("push+pop, depth 64", "ns").to(PUSH_POP),
    Metric::new("push+pop, depth 256", "ns").to(PUSH_POP),
    Metric::new("push+pop, depth 1024", "ns"),
    Metric::new("steal 32 of 64, pushed by the same thread, an item", "ns").to(STEAL),
    Metric::new("steal 32 of 64, pushed by another core, an item", "ns").to(STEAL),
    Metric::new("steal from an empty deque", "ns"),
    Metric::new("owner, depth 8, 1 thief stealing: CPU ns", "ns"),
    Metric::new("owner, depth 8, 3 thieves stealing: CPU ns", "ns"),
    Metric::new("owner, depth 8, 1 thief looking: CPU ns", "ns"),
    Metric::new("owner, depth 8, 3 thieves looking: CPU ns", "ns"),
    Metric::new("owner, depth 64, 1 thief stealing: CPU ns", "ns"),
    Metric::new("owner, depth 64, 3 thieves stealing: CPU ns", "ns"),
    Metric::new("owner, depth 64, 1 thief looking: CPU ns", "ns"),
    Metric::new("owner, depth 64, 3 thieves looking: CPU ns", "ns"),
    Metric::new("tree of tasks that do nothing: ms", "ms"),
    Metric::new("tree of tasks of 6 multiplications: ms", "ms"),
    Metric::new("fib, a task a call: ms", "ms"),
];

/// Figures of mailboxes. A `Queue` with a single message is a node on the heap: 16 or 64 bytes, and
/// its share of a slab's header.
const MAILBOX_FIGURES: &[Metric] = &[
    Metric::new("heap, u64: bytes with one message", "bytes"),
    Metric::new("heap, u64 (Queue): bytes with one message", "bytes").to(&[Just(16.8)]),
    Metric::new("heap, u64: allocations in a million messages", "").to(&[Just(0.0)]),
    Metric::new("one thread, bursts of 100, u64", "ns").to(&[Best(0.7)]),
    Metric::new("take 64 that wait, an item, u64", "ns"),
    Metric::new("take 64 that wait, an item, u64 (drain)", "ns")
        .to(&[BestIn("take 64 that wait, an item, u64", 0.4)]),
    Metric::new("2 producers, polling, u64", "ns").to(&[Best(0.8)]),
    Metric::new("4 producers, polling, u64", "ns").to(&[Best(0.8)]),
    Metric::new("2 producers, groups of 16, u64: producers' CPU ns", "ns").to(&[OursIn(
        "2 producers, groups of 16, u64 (one by one): producers' CPU ns",
        0.33,
    )]),
    Metric::new(
        "2 producers, groups of 16, u64 (one by one): producers' CPU ns",
        "ns",
    ),
    Metric::new("1 producer, blocking, u64", "ns"),
    Metric::new("heap, 48 bytes: bytes with one message", "bytes"),
    Metric::new("heap, 48 bytes (Queue): bytes with one message", "bytes").to(&[Just(67.2)]),
    Metric::new("heap, 48 bytes: allocations in a million messages", "").to(&[Just(0.0)]),
    Metric::new("one thread, bursts of 100, 48 bytes", "ns").to(&[Best(0.7)]),
    Metric::new("take 64 that wait, an item, 48 bytes", "ns"),
    Metric::new("take 64 that wait, an item, 48 bytes (drain)", "ns")
        .to(&[BestIn("take 64 that wait, an item, 48 bytes", 0.4)]),
    Metric::new("2 producers, polling, 48 bytes", "ns").to(&[Best(0.8)]),
    Metric::new("4 producers, polling, 48 bytes", "ns").to(&[Best(0.8)]),
    Metric::new(
        "2 producers, groups of 16, 48 bytes: producers' CPU ns",
        "ns",
    )
    .to(&[OursIn(
        "2 producers, groups of 16, 48 bytes (one by one): producers' CPU ns",
        0.33,
    )]),
    Metric::new(
        "2 producers, groups of 16, 48 bytes (one by one): producers' CPU ns",
        "ns",
    ),
    Metric::new("1 producer, blocking, 48 bytes", "ns"),
    Metric::new("bounded 16, 1 producer, strings", "ns").to(&[Best(1.0)]),
    Metric::new("bounded 16, 2 producers, strings", "ns").to(&[Best(1.0)]),
    Metric::new("bounded 16, 8 producers, strings", "ns").to(&[Best(1.0)]),
    Metric::new("bounded 1024, 1 producer, strings", "ns").to(&[Best(1.0)]),
    Metric::new("bounded 1024, 2 producers, strings", "ns").to(&[Best(1.0)]),
    Metric::new("bounded 1024, 8 producers, strings", "ns").to(&[Best(1.0)]),
    Metric::new("bounded 16384, 1 producer, strings", "ns").to(&[Best(1.0)]),
    Metric::new("bounded 16384, 2 producers, strings", "ns").to(&[Best(1.0)]),
    Metric::new("bounded 16384, 8 producers, strings", "ns").to(&[Best(1.0)]),
];

const DEQUES: &[Peer] = &[Peer::Ganger, Peer::CrossbeamDeque, Peer::St3];

const MAILBOXES: &[Peer] = &[
    Peer::Ganger,
    Peer::Std,
    Peer::CrossbeamChannel,
    Peer::Flume,
    Peer::Kanal,
    Peer::Tokio,
    Peer::AsyncChannel,
    Peer::ConcurrentQueue,
    Peer::CrossbeamQueue,
];

pub(super) const DEQUE: Spec = Spec {
    id: Id::Deque,
    name: "deque",
    what: "Work-stealing deques: push and pop, steal, an owner with thieves, trees of 2^21-1 \
           tasks and fib(32) on two workers; quick 2^13-1 and fib(18)",
    of: "repetitions",
    full: 1,
    quick: 1,
    peers: DEQUES,
    metrics: DEQUE_FIGURES,
};

pub(super) const MAILBOX: Spec = Spec {
    id: Id::Mailbox,
    name: "mailbox",
    what: "Queues from many threads to one: what is on the heap, one thread, taking what \
           waits, several producers, many items at once, a consumer that sleeps",
    of: "repetitions",
    full: 1,
    quick: 1,
    peers: MAILBOXES,
    metrics: MAILBOX_FIGURES,
};
