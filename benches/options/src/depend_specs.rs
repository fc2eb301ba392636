//! The workloads of processes that depend on one another.

use super::catalog::Goal::{Best, Of};
use super::catalog::{Id, Metric, Peer, Spec};
use super::specs::SCHEDULERS;

/// Those whose processes a thread outside can ask.
const OUTSIDE: &[Peer] = &[Peer::Ganger, Peer::Tokio, Peer::Ractor, Peer::Kameo];

/// Those in which a process is told of the end of another one that it starts.
const MONITORS: &[Peer] = &[Peer::Ganger, Peer::Tokio, Peer::Ractor, Peer::Erlang];

/// Those with groups, or with a channel to many.
const GROUPS: &[Peer] = &[Peer::Ganger, Peer::Tokio, Peer::Ractor, Peer::Erlang];

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
