//! The figures of timers and of async functions, with Ganger's targets.

use super::catalog::Goal::{Best, Just, Of};
use super::catalog::{Metric, Peer};

pub(super) const ASYNC_TIME: &[Metric] = &[Metric::new("time", "ns").to(&[Of(Peer::Tokio, 0.5)])];

pub(super) const CHURN: &[Metric] = &[
    Metric::new("alone", "ns").to(&[Of(Peer::Tokio, 0.3), Of(Peer::Go, 0.15)]),
    Metric::new("crowded", "ns").to(&[Of(Peer::Tokio, 0.3), Of(Peer::Go, 0.15)]),
];

pub(super) const FIRE: &[Metric] = &[Metric::new("cpu", "ns").to(&[Of(Peer::Tokio, 0.5)])];

pub(super) const LATE: &[Metric] = &[
    Metric::new("p50", "us"),
    Metric::new("p99", "us").to(&[Of(Peer::Tokio, 0.2), Of(Peer::Go, 1.0)]),
    Metric::new("max", "us"),
];

pub(super) const LATE_BESIDE: &[Metric] = &[
    Metric::new("p50", "us"),
    Metric::new("p99", "us"),
    Metric::new("max", "us"),
];

pub(super) const LATE_BESIDE_10: &[Metric] = &[
    Metric::new("p50", "us"),
    Metric::new("p99", "us").to(&[Just(100.0)]),
    Metric::new("max", "us"),
];

pub(super) const LATE_STUCK: &[Metric] = &[
    Metric::new("p50", "us"),
    Metric::new("p99", "us").to(&[Best(1.0)]),
    Metric::new("max", "us").to(&[Best(0.8)]),
];

pub(super) const WAIT: &[Metric] = &[
    Metric::new("rss", "bytes").to(&[Just(64.0)]),
    Metric::new("cpu", "ms/s").to(&[Best(0.83)]),
    Metric::new("switches", "a second"),
];

pub(super) const ASYNC_SPAWN: &[Metric] = &[Metric::new("time", "ns").to(&[Of(Peer::Tokio, 0.9)])];

pub(super) const ASYNC_IDLE: &[Metric] = &[
    Metric::new("rss", "bytes").to(&[Just(350.0), Of(Peer::Tokio, 0.5)]),
    Metric::new("spawn", "ns").to(&[Of(Peer::Tokio, 0.9)]),
    Metric::new("wake", "ns").to(&[Of(Peer::Tokio, 0.5)]),
];
