//! The time in which a waiting process begins to run: alone and together with other programs, with
//! a sender that parks and with a sender that goes on.

use super::catalog::Goal::{Best, Of};
use super::catalog::{Id, Metric, Peer, Spec};
use super::specs::SCHEDULERS;

/// Peers to whose process a thread of the program sends.
const THREADS: &[Peer] = &[Peer::Ganger, Peer::Tokio];

const AGAINST_TOKIO: &[Metric] = &[
    Metric::new("p50", "us").to(&[Of(Peer::Tokio, 2.0)]),
    Metric::new("p99", "us").to(&[Of(Peer::Tokio, 2.0)]),
    Metric::new("switches", "a sample"),
];

pub(super) const CALM: Spec = Spec {
    id: Id::W10,
    name: "wake_latency",
    what: "All is idle; from a send of the main thread to the process's own look at the clock",
    of: "samples",
    full: 2_000,
    quick: 200,
    peers: SCHEDULERS,
    metrics: &[
        Metric::new("p50", "us").to(&[Best(0.95), Of(Peer::Tokio, 0.4)]),
        Metric::new("p99", "us").to(&[Best(0.95), Of(Peer::Tokio, 0.4)]),
        Metric::new("switches", "a sample"),
    ],
};

pub(super) const CALM_SPINNING: Spec = Spec {
    id: Id::W10spin,
    name: "wake_latency_spin",
    what: "As W10, and the main thread goes on computing until the process has looked",
    of: "samples",
    full: 2_000,
    quick: 200,
    peers: THREADS,
    metrics: AGAINST_TOKIO,
};

pub(super) const BUSY: Spec = Spec {
    id: Id::W10busy,
    name: "wake_latency_busy",
    what: "As W10, beside a program on each processor that computes all the time",
    of: "samples",
    full: 2_000,
    quick: 200,
    peers: THREADS,
    metrics: AGAINST_TOKIO,
};

pub(super) const BUSY_SPINNING: Spec = Spec {
    id: Id::W10busyspin,
    name: "wake_latency_busy_spin",
    what: "As W10busy, and the main thread goes on computing until the process has looked",
    of: "samples",
    full: 2_000,
    quick: 200,
    peers: THREADS,
    metrics: AGAINST_TOKIO,
};

/// Those whose process a thread can wake beside others that keep their threads.
const HERALDS: &[Peer] = &[Peer::Ganger, Peer::Tokio, Peer::Go];

const HERALD: &[Metric] = &[
    Metric::new("p50", "us"),
    Metric::new("p99", "us").to(&[Of(Peer::Tokio, 0.5)]),
];

pub(super) const BY_HERALD: Spec = Spec {
    id: Id::W13d,
    name: "woken_by_herald",
    what: "As W13b, where a thread that is no worker wakes the process that sends",
    of: "rounds",
    full: 30,
    quick: 4,
    peers: HERALDS,
    metrics: HERALD,
};

pub(super) const BY_HERALD_10: Spec = Spec {
    id: Id::W13d10,
    name: "woken_by_herald_10",
    what: "As W13d, with steps of 10 us",
    of: "rounds",
    full: 30,
    quick: 4,
    peers: HERALDS,
    metrics: HERALD,
};
