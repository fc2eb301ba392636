//! Workloads of the layers above, where processes are async functions.

use super::catalog::Goal::Of;
use super::catalog::{Id, Metric, Peer, Spec};
use super::time_figures::ASYNC_TIME;

/// Peers whose processes are async functions. The rest run the same in their own idiom.
pub(super) const ASYNC: &[Peer] = &[Peer::Ganger, Peer::Tokio];

const CHURN: &[Metric] = &[
    Metric::new("alone", "ns").to(&[Of(Peer::Tokio, 0.7)]),
    Metric::new("crowded", "ns").to(&[Of(Peer::Tokio, 0.7)]),
];

const FIRE: &[Metric] = &[Metric::new("cpu", "ns").to(&[Of(Peer::Tokio, 0.8)])];

pub(super) const CALL: Spec = Spec {
    id: Id::A9,
    name: "async_call",
    what: "As S1, where processes are async functions",
    of: "calls",
    full: 1_000_000,
    quick: 50_000,
    peers: ASYNC,
    metrics: ASYNC_TIME,
};

pub(super) const TIMER_CHURN: Spec = Spec {
    id: Id::A10,
    name: "async_timer_churn",
    what: "As W14, where processes are async functions, and the timer is a sleep that is given up",
    of: "timers",
    full: 1_000_000,
    quick: 50_000,
    peers: ASYNC,
    metrics: CHURN,
};

pub(super) const TIMER_CHURN_STEP: Spec = Spec {
    id: Id::A10step,
    name: "async_timer_churn_step",
    what: "As A10, and the task gives way before it gives the sleep up",
    of: "timers",
    full: 1_000_000,
    quick: 50_000,
    peers: ASYNC,
    metrics: CHURN,
};

pub(super) const TIMER_FIRE: Spec = Spec {
    id: Id::A11,
    name: "async_timer_fire",
    what: "As W15, where processes are async functions",
    of: "processes",
    full: 1_000_000,
    quick: 20_000,
    peers: ASYNC,
    metrics: FIRE,
};
