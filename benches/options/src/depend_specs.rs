//! The workloads of processes that depend on each other.

use super::catalog::Goal::{Best, Of, OursIn};
use super::catalog::{Id, Metric, Peer, Spec};
use super::specs::SCHEDULERS;

/// Peers whose processes a thread outside can ask.
const OUTSIDE: &[Peer] = &[Peer::Ganger, Peer::Tokio, Peer::Ractor, Peer::Kameo];

/// Peers in which a process is told of the end of a process that it starts.
const MONITORS: &[Peer] = &[Peer::Ganger, Peer::Tokio, Peer::Ractor, Peer::Erlang];

/// Peers with groups, or with a channel to many.
const GROUPS: &[Peer] = &[Peer::Ganger, Peer::Tokio, Peer::Ractor, Peer::Erlang];

/// Peers in which a failure is told, so that another process is started.
const RESTARTS: &[Peer] = &[
    Peer::Ganger,
    Peer::Tokio,
    Peer::Ractor,
    Peer::Kameo,
    Peer::Erlang,
];

/// Peers with a pool that carries out a limited number of jobs at a time.
const POOLS: &[Peer] = &[Peer::Ganger, Peer::Tokio, Peer::Ractor, Peer::Rayon];

pub(super) const CALL: Spec = Spec {
    id: Id::S1,
    name: "call",
    what: "A process asks another one in sequence, by its typed address",
    of: "calls",
    full: 1_000_000,
    quick: 50_000,
    peers: SCHEDULERS,
    metrics: &[Metric::new("time", "ns").to(&[Best(0.5)])],
};

pub(super) const CALL_FROM_OUTSIDE: Spec = Spec {
    id: Id::S1out,
    name: "call_from_outside",
    what: "The main thread asks a process in sequence, and waits for each answer",
    of: "calls",
    full: 100_000,
    quick: 5_000,
    peers: OUTSIDE,
    metrics: &[Metric::new("time", "ns").to(&[Best(1.0)])],
};

pub(super) const SPAWN_MONITORED: Spec = Spec {
    id: Id::S2,
    name: "spawn_monitored",
    what: "A process spawns others, which end at once, and is told of each end",
    of: "processes",
    full: 1_000_000,
    quick: 50_000,
    peers: MONITORS,
    metrics: &[Metric::new("time", "ns").to(&[Of(Peer::Erlang, 0.5)])],
};

pub(super) const RESTART: Spec = Spec {
    id: Id::S3,
    name: "restart",
    what: "A process fails in its first step, and another one is started, again and again",
    of: "restarts",
    full: 500_000,
    quick: 20_000,
    peers: RESTARTS,
    // tokio has no supervisor: its task is the lower bound of the cost.
    metrics: &[Metric::new("time", "ns").to(&[
        Of(Peer::Ractor, 0.3),
        Of(Peer::Kameo, 0.3),
        Of(Peer::Erlang, 0.3),
    ])],
};

pub(super) const RESTART_IN_PLACE: Spec = Spec {
    id: Id::S3in,
    name: "restart_in_place",
    what: "As S3, where each has the PID and the mailbox of the one before it",
    of: "restarts",
    full: 500_000,
    quick: 20_000,
    peers: &[Peer::Ganger, Peer::Kameo],
    metrics: &[Metric::new("time", "ns").to(&[Best(0.3)])],
};

pub(super) const BROADCAST: Spec = Spec {
    id: Id::S4,
    name: "broadcast",
    what: "A process broadcasts numbers to a group of 1,000",
    of: "messages",
    full: 1_000_000,
    quick: 50_000,
    peers: GROUPS,
    metrics: &[Metric::new("time", "ns").to(&[Best(0.5)])],
};

pub(super) const BROADCAST_EACH: Spec = Spec {
    id: Id::S4each,
    name: "broadcast_each",
    what: "As S4, where a peer has a channel for each member",
    of: "messages",
    full: 1_000_000,
    quick: 50_000,
    peers: &[Peer::Ganger, Peer::Tokio],
    metrics: &[Metric::new("time", "ns").to(&[Best(1.0)])],
};

pub(super) const POOL: Spec = Spec {
    id: Id::S5,
    name: "pool",
    what: "100 callers have jobs done, each after the one before, of which 4 are done at a time",
    of: "jobs",
    full: 1_000_000,
    quick: 50_000,
    peers: POOLS,
    metrics: &[Metric::new("time", "ns").to(&[Best(0.7)])],
};

pub(super) const POOL_BUSY: Spec = Spec {
    id: Id::S5us,
    name: "pool_busy",
    what: "As S5, where a job computes for 1 us",
    of: "jobs",
    full: 1_000_000,
    quick: 50_000,
    peers: POOLS,
    metrics: &[Metric::new("time", "ns").to(&[Best(0.7)])],
};

pub(super) const SEND_BLOCKING: Spec = Spec {
    id: Id::Q2,
    name: "send_blocking",
    what: "8 threads send numbers to a process without a limit, and to one that 1,024 messages \
           fill, for which they wait",
    of: "messages",
    full: 800_000,
    quick: 40_000,
    peers: &[Peer::Ganger],
    metrics: &[
        Metric::new("unlimited", "ns"),
        Metric::new("limited", "ns").to(&[OursIn("unlimited", 2.0)]),
    ],
};
